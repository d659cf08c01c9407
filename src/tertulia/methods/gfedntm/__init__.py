"""gFedNTM: federated neural topic models."""

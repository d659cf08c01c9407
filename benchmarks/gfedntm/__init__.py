"""gFedNTM's figures."""

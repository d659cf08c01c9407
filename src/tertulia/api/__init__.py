"""The public API: federated methods, and LDA and neural models on one machine."""

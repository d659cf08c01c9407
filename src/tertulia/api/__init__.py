"""What users call: federated methods, LDA and neural models on one machine, and how their documents come in."""

"""Neural models on one machine."""

"""The inner loops of neural topic models."""

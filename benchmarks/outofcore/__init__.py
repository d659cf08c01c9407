"""LDA from disk."""

"""LDA on a corpus that stays on disk."""

"""LDA trained until it settles."""

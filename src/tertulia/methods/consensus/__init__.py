"""Consensus: find first topics together, then count together."""

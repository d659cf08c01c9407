"""Consensus: merge once, then count together."""

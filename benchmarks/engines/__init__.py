"""Engines beside each other: the same runs, their speed, their bytes, and what kills do to them."""

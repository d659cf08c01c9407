"""Comparisons of engines: the same runs, their speed, their bytes, and their recovery from kills."""

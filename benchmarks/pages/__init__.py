"""Sizes, speed and accessibility of the pages."""

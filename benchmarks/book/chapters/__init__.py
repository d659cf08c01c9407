"""Chapters: the panels of one paper each, declared."""

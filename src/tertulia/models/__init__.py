"""Trained topic models."""

from tertulia.models.topics import Topics, UnknownWordsWarning

__all__ = ["Topics", "UnknownWordsWarning"]

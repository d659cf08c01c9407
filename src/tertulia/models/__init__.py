"""What users hold: a trained topic model."""

from tertulia.models.topics import Topics, UnknownWordsWarning

__all__ = ["Topics", "UnknownWordsWarning"]

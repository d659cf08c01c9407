"""Measures of topics (held-out perplexity, coherence, diversity, similarity, recovery) and of a run's history.

A metric's module, and the compiler behind it, is loaded when its name is first used.
"""

from tertulia._lazy import public_names

__all__, __getattr__, __dir__ = public_names(__name__, __file__)

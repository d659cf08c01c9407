"""How good topics are: held-out perplexity, coherence, diversity, and how alike two sets of topics are.

A metric's module, and the compiler behind it, loads when its name is first used.
"""

from tertulia._lazy import public_names

__all__, __getattr__, __dir__ = public_names(__name__, __file__)

"""How good topics are: held-out perplexity, coherence, diversity, and how alike two sets of topics are.

Importing this package is free: a metric's module, and the compiler behind it, loads when its name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tertulia.metrics.coherence import Coherence, c_v, npmi, topic_coherence, umass, umass_gensim
    from tertulia.metrics.communication import Communication, communication
    from tertulia.metrics.diversity import topic_diversity
    from tertulia.metrics.perplexity import Completion, completion, perplexity_plugin, unigram
    from tertulia.metrics.recovery import amwmd, dss, hellinger_similarity, tss
    from tertulia.metrics.similarity import Pairs, Tops, match, similar_pairs, top_words_sparse, weighted_jaccard

__all__ = [
    "Coherence",
    "Communication",
    "Completion",
    "Pairs",
    "Tops",
    "amwmd",
    "c_v",
    "communication",
    "completion",
    "dss",
    "hellinger_similarity",
    "match",
    "npmi",
    "perplexity_plugin",
    "similar_pairs",
    "top_words_sparse",
    "topic_coherence",
    "topic_diversity",
    "tss",
    "umass",
    "umass_gensim",
    "unigram",
    "weighted_jaccard",
]

_HOMES = {
    "coherence": {"Coherence", "c_v", "npmi", "topic_coherence", "umass", "umass_gensim"},
    "communication": {"Communication", "communication"},
    "diversity": {"topic_diversity"},
    "perplexity": {"Completion", "completion", "perplexity_plugin", "unigram"},
    "recovery": {"amwmd", "dss", "hellinger_similarity", "tss"},
    "similarity": {"Pairs", "Tops", "match", "similar_pairs", "top_words_sparse", "weighted_jaccard"},
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__

"""Tertulia: federated topic modelling. One topic model from documents that never leave the house.

>>> import tertulia as tt
>>> model = tt.FTM(topics=50, rounds=5).fit({"north": texts, "south": more_texts})  # doctest: +SKIP
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tertulia.api.federated import FTM, PCTD, Centralised, Consensus, FedLDA, GFedNTM, NonCollaborative, federate
    from tertulia.api.lda import LDA
    from tertulia.api.neural import CombinedTM, ProdLDA, ZeroShotTM
    from tertulia.corpus import Corpus, TextOptions, Vocabulary, read
    from tertulia.errors import TertuliaError
    from tertulia.models import Topics
    from tertulia.runs.rehearsal import best_for
    from tertulia.runs.results import FederatedTopics

__version__ = "0.1.0"
_HOME = {
    "FTM": "tertulia.api.federated",
    "PCTD": "tertulia.api.federated",
    "Centralised": "tertulia.api.federated",
    "Consensus": "tertulia.api.federated",
    "FedLDA": "tertulia.api.federated",
    "GFedNTM": "tertulia.api.federated",
    "NonCollaborative": "tertulia.api.federated",
    "federate": "tertulia.api.federated",
    "Corpus": "tertulia.corpus",
    "TextOptions": "tertulia.corpus",
    "Vocabulary": "tertulia.corpus",
    "read": "tertulia.corpus",
    "TertuliaError": "tertulia.errors",
    "Topics": "tertulia.models",
    "FederatedTopics": "tertulia.runs.results",
    "best_for": "tertulia.runs.rehearsal",
    "LDA": "tertulia.api.lda",
    "CombinedTM": "tertulia.api.neural",
    "ProdLDA": "tertulia.api.neural",
    "ZeroShotTM": "tertulia.api.neural",
}
__all__ = [
    "FTM",
    "LDA",
    "PCTD",
    "Centralised",
    "CombinedTM",
    "Consensus",
    "Corpus",
    "FedLDA",
    "FederatedTopics",
    "GFedNTM",
    "NonCollaborative",
    "ProdLDA",
    "TertuliaError",
    "TextOptions",
    "Topics",
    "Vocabulary",
    "ZeroShotTM",
    "__version__",
    "best_for",
    "federate",
    "read",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that `import tertulia` costs next to nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'tertulia' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__

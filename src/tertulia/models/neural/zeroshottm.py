"""ZeroShotTM: ProdLDA whose encoder reads a sentence embedding instead of words.

Bianchi et al. 2021, "Cross-lingual Contextualized Topic Models with Zero-shot Learning" (EACL). Words are only decoded,
so a model can infer topics of texts in any language that the embedding knows.
"""

from __future__ import annotations

from torch import Tensor

from tertulia.models.neural.prodlda import Inputs, Weights, body
from tertulia.models.neural.sizes import Sizes
from tertulia.models.neural.sparse import SlopesByName


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """All weights, in the order in which they travel."""
    return {"sentence": (sizes.embedding, sizes.hidden[0]), **body(sizes)}


def first_layer(weights: Weights, inputs: Inputs) -> Tensor:
    """Read an embedding."""
    return inputs.sentences @ weights["sentence"]


def first_slopes(weights: Weights, inputs: Inputs, slopes: Tensor) -> SlopesByName:
    """The gradient by its weights, from that by its output."""
    return {"sentence": (inputs.sentences.T @ slopes).numpy()}

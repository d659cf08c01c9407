"""ZeroShotTM: ProdLDA whose encoder reads a sentence embedding instead of words.

Bianchi et al. 2021, "Cross-lingual Contextualized Topic Models with Zero-shot Learning" (EACL). Only the decoder uses
words, so a model can infer topics of texts in any language of the embedding.
"""

from __future__ import annotations

from torch import Tensor

from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.prodlda import Inputs, Weights, body
from tertulia.models.neural.sparse import SlopesByName


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights, in the order of the flat array."""
    return {"sentence": (sizes.embedding, sizes.hidden[0]), **body(sizes)}


def first_layer(weights: Weights, inputs: Inputs) -> Tensor:
    """Compute the first layer, from embeddings."""
    return inputs.sentences @ weights["sentence"]


def first_slopes(weights: Weights, inputs: Inputs, slopes: Tensor) -> SlopesByName:
    """Compute the gradient by the first layer's weights, from the gradient by its output."""
    return {"sentence": (inputs.sentences.T @ slopes).numpy()}

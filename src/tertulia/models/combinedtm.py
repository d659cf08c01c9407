"""CombinedTM: ProdLDA whose encoder also reads a sentence embedding.

Bianchi, Terragni and Hovy 2021, "Pre-training is a Hot Topic" (ACL). As published, the embedding passes an E x V linear
layer and then, beside the bag of words, the first 2V x H one. Two linear layers in a row are one: folded, the embedding
passes an E x H layer, which can express the same and is V / H times smaller. `literal_adapter` is the published form.
"""

from __future__ import annotations

from torch import Tensor

from tertulia.errors import InputError
from tertulia.models.prodlda import Inputs, Sizes, Weights, body

# The one layer takes larger steps than each of the two: chosen among 1, 4 and 16 by the loss on newsgroup posts.
GAIN = 16.0


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """All weights, in the order in which they travel."""
    E, V, H = sizes.embedding, sizes.words, sizes.hidden[0]
    adapter = (
        {"adapter": (E, V), "adapter_bias": (V,), "adapted": (V, H)} if sizes.literal_adapter else {"folded": (E, H)}
    )
    return {"words": (V, H), **adapter, **body(sizes)}


def first_layer(weights: Weights, inputs: Inputs) -> Tensor:
    """Read a bag of words and an embedding."""
    words = inputs.bow.times(weights["words"])
    embeddings = inputs.embeddings
    if embeddings is None:
        raise InputError("CombinedTM reads sentence embeddings: give a corpus that keeps its texts, or with_embeddings")
    if "folded" in weights:
        return words + (GAIN * embeddings) @ weights["folded"]
    return words + (embeddings @ weights["adapter"] + weights["adapter_bias"]) @ weights["adapted"]

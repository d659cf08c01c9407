"""CombinedTM: ProdLDA whose encoder also reads a sentence embedding.

Bianchi, Terragni and Hovy 2021, "Pre-training is a Hot Topic" (ACL). As published, the embedding passes an E x V linear
layer and then, beside the bag of words, the first 2V x H one. Two linear layers in a row can be folded into one E x H
layer, which can express the same and is V / H times smaller. `literal_adapter` is the published form.
"""

from __future__ import annotations

from torch import Tensor

from tertulia.models.neural.architecture import Sizes
from tertulia.models.neural.prodlda import Inputs, Weights, body
from tertulia.models.neural.sparse import SlopesByName

# The folded layer needs larger steps than each of the two: chosen among 1, 4 and 16 by the loss on newsgroup posts.
GAIN = 16.0


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights, in the order of the flat array."""
    E, V, H = sizes.embedding, sizes.words, sizes.hidden[0]
    adapter = (
        {"adapter": (E, V), "adapter_bias": (V,), "adapted": (V, H)} if sizes.literal_adapter else {"folded": (E, H)}
    )
    return {"words": (V, H), **adapter, **body(sizes)}


def first_layer(weights: Weights, inputs: Inputs) -> Tensor:
    """Compute the first layer, from bags of words and embeddings."""
    words, embeddings = inputs.bow.times(weights["words"]), inputs.sentences
    if "folded" in weights:
        return words + (GAIN * embeddings) @ weights["folded"]
    return words + (embeddings @ weights["adapter"] + weights["adapter_bias"]) @ weights["adapted"]


def first_slopes(weights: Weights, inputs: Inputs, slopes: Tensor) -> SlopesByName:
    """Compute the gradient by the first layer's weights, from the gradient by its output."""
    words, embeddings = inputs.bow.times_slopes(slopes), inputs.sentences
    if "folded" in weights:
        return {"words": words, "folded": ((GAIN * embeddings).T @ slopes).numpy()}
    adapted = embeddings @ weights["adapter"] + weights["adapter_bias"]
    by_adapted = slopes @ weights["adapted"].T
    dense = {
        "adapter": embeddings.T @ by_adapted, "adapter_bias": by_adapted.sum(dim=0), "adapted": adapted.T @ slopes
    }  # fmt: skip
    return {"words": words, **{name: slope.numpy() for name, slope in dense.items()}}

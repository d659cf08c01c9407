"""The architecture of a neural model, and its checks. This module does not import torch: settings use it too."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tertulia._arrays import Array
from tertulia._kinds import check_fields, fits
from tertulia.errors import FormatError

if TYPE_CHECKING:
    from tertulia.models.neural.network import Network

Kind = Literal["prodlda", "combinedtm", "zeroshottm"]
Normalisation = Literal["batch", "sync", "layer"]
Precision = Literal["float32", "float64"]
_WIDEST = 1 << 31  # features of a layer


class Sizes(NamedTuple):
    """The sizes of a network and its other fixed numbers."""

    words: int  # V
    topics: int  # K
    embedding: int = 0  # E: width of the sentence embeddings, if the model reads them
    hidden: tuple[int, ...] = (100, 100)
    dropout: float = 0.2
    alpha: float = 1.0  # of each topic, in the Dirichlet prior of theta
    learn_prior: bool = True
    literal_adapter: bool = False  # CombinedTM as published, with an E x V layer before the first
    shifts: bool = False  # whether the norms keep means: LayerNorm does, BatchNorm does not


def architecture_of(network: Network) -> dict[str, Any]:
    """Convert a network's architecture to plain data, for messages and files."""
    sizes = {**network.sizes._asdict(), "hidden": list(network.sizes.hidden)}
    return {
        "kind": network.kind,
        "sizes": sizes,
        "normalisation": network.normalisation,
        "precision": network.precision,
    }


def network_of(architecture: dict[str, Any]) -> Network:
    """Rebuild a network from plain data; raise `FormatError` if it cannot be one."""
    from tertulia.models.neural.network import Network

    try:
        given = {**architecture["sizes"], "hidden": tuple(architecture["sizes"]["hidden"])}
        check_fields(Sizes, given)
        network = Network(
            architecture["kind"], Sizes(**given), architecture["normalisation"], architecture["precision"]
        )
        for name, kind in (("kind", Kind), ("normalisation", Normalisation), ("precision", Precision)):
            if not fits(getattr(network, name), kind):
                raise FormatError(f"this is no neural model that we know ({name}): save it again, or upgrade")
        sizes = network.sizes
        widths = (sizes.words, sizes.topics, *sizes.hidden)
        sound = all(1 <= width < _WIDEST for width in widths) and 0 <= sizes.embedding < _WIDEST
        if not (sound and 0 < len(sizes.hidden) < 100):
            raise FormatError("this is no neural model that we know (sizes): save it again, or upgrade")
        if not (0 <= sizes.dropout < 1 and 0 < sizes.alpha < 1e9):
            raise FormatError("this is no neural model that we know (dropout or alpha): save it again, or upgrade")
        return network
    except (KeyError, TypeError) as error:
        raise FormatError(f"this is no neural model that we know ({error}): save it again, or upgrade") from error


def check_network(network: Network, weights: Array, statistics: Array, V: int) -> None:
    """Raise `FormatError` unless weights, statistics and vocabulary fit the network: kernels trust their sizes."""
    if network.sizes.words != V:
        raise FormatError("the network's sizes do not fit its words")
    same = weights.shape == (sum(map(prod, network.shapes.values())),) and str(weights.dtype) == network.precision
    if not same or statistics.shape != (2, sum(network.features)):
        raise FormatError("weights or statistics are not those of the network")

"""Messages about neural models, which several methods send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from tertulia.federation import fields
from tertulia.federation.fields import Between, Capped
from tertulia.federation.types import message
from tertulia.models.neural.architecture import Kind, Normalisation, Precision, architecture_of, network_of
from tertulia.models.neural.encoder import Encoder

if TYPE_CHECKING:
    from tertulia.models.neural.network import Network

_WIDEST = 2**31 - 1  # features of a layer
Width = Annotated[int, Between(0, _WIDEST)]  # weights that arrive must have it


@message
class Architecture:
    """The architecture of a network: the fields of `models.neural.architecture.Sizes`, and its other choices."""

    kind: Kind
    words: Annotated[int, Capped("max_words")]
    topics: Annotated[int, Capped("max_topics", axis="K")]
    embedding: Width
    hidden: Annotated[tuple[int, ...], Between(1, _WIDEST)]
    dropout: fields.Fraction
    alpha: Annotated[float, Between(fields.LEAST_PRIOR, fields.MOST_PRIOR)]
    learn_prior: bool
    literal_adapter: bool
    shifts: bool
    normalisation: Normalisation
    precision: Precision

    @classmethod
    def of(cls, architecture: dict[str, Any]) -> Self:
        """Make it from a model's plain data."""
        sizes = {**architecture["sizes"], "hidden": tuple(architecture["sizes"]["hidden"])}
        return cls(**{name: value for name, value in architecture.items() if name != "sizes"}, **sizes)

    @classmethod
    def of_network(cls, network: Network) -> Self:
        """Return the architecture of a network."""
        return cls.of(architecture_of(network))

    def plain(self) -> dict[str, Any]:
        """Convert it to plain data, as a model stores it."""
        own = ("kind", "normalisation", "precision")
        sizes = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in own}
        return {name: getattr(self, name) for name in own} | {"sizes": {**sizes, "hidden": list(self.hidden)}}

    def network(self) -> Network:
        """Build the network; raise `FormatError` if there can be none."""
        return network_of(self.plain())

    def check(self) -> None:
        """Refuse sizes and choices of no network."""
        self.network()


@message
class NeuralEncoder:
    """The encoder of a neural model."""

    architecture: Architecture
    weights: fields.Flat
    statistics: fields.Pairs  # [2, 2K + V]
    embedding: str | None

    @classmethod
    def of(cls, encoder: Encoder) -> Self:
        """Return the message of a model's encoder."""
        architecture = Architecture.of(encoder.architecture)
        return cls(architecture, encoder.weights, encoder.statistics, encoder.embedding)

    def encoder(self) -> Encoder:
        """Return the encoder, for a model."""
        return Encoder(self.architecture.plain(), self.weights, self.statistics, self.embedding)

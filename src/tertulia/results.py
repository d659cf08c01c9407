"""What a federated run gives: the shared topics, and each party's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tertulia.corpus import TextOptions
from tertulia.methods.trained import Trained
from tertulia.metrics.communication import Communication, communication
from tertulia.models import Topics


@dataclass(eq=False, repr=False)
class FederatedTopics(Topics):
    """The shared model of a run; `save` stores it as plain `Topics`.

    >>> model.local["north"].top_words()  # doctest: +SKIP
    """

    local: dict[str, Topics] = field(default_factory=dict)  # each party's own model, composed from the shared one
    history: Sequence[Mapping[str, Any]] = ()  # a dict a round: metrics, seconds, bytes by party as [down, up]
    directory: Path | None = None  # where the run was

    @classmethod
    def of(
        cls,
        trained: Trained,
        text: Mapping[str, Any],
        provenance: dict[str, Any],
        history: Sequence[Mapping[str, Any]],
        directory: Path,
    ) -> FederatedTopics:
        """Add to a method's result where it comes from."""
        shared, options = trained.topics, TextOptions.from_dict(text)
        local = {
            party: replace(topics, options=options, provenance=provenance | {"party": party})
            for party, topics in trained.local.items()
        }
        return cls(
            shared.topic_word, shared.vocabulary, shared.alpha, shared.beta, shared.weights, options, provenance,
            shared.encoder, local, history, directory,
        )  # fmt: skip

    @property
    def communication(self) -> Communication:
        """Rounds and bytes."""
        return communication(self.history)

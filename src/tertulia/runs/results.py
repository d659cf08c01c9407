"""What a federated run gives: the shared topics, and each party's own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tertulia.corpus import TextOptions
from tertulia.corpus.tokens import Tokenizer
from tertulia.errors import InputError
from tertulia.methods.common.choosing import Choice
from tertulia.methods.common.result import Trained
from tertulia.metrics.communication import Communication
from tertulia.models import Topics
from tertulia.models.reading import who_took_part

_RULE = re.compile(r"refused by rule '([\w-]{1,40})'")


class AbsentPartyWarning(UserWarning):
    """A party never took part in a run."""


@dataclass(eq=False, repr=False)
class FederatedTopics(Topics):
    """The shared model of a run; `save` stores it as plain `Topics`.

    >>> model.local["north"].top_words()  # doctest: +SKIP
    """

    local: dict[str, Topics] = field(default_factory=dict)  # each party's own model, composed from the shared one
    history: Sequence[Mapping[str, Any]] = ()  # a dict per round: metrics, seconds, bytes by party as [down, up]
    directory: Path | None = None  # where the run was
    choices: dict[str, Choice] = field(default_factory=dict)  # of parties with validation documents

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
        own = shared.provenance  # of a run that went on from another, how topics have drifted
        local = {
            party: replace(topics, options=options, provenance=provenance | {"party": party})
            for party, topics in trained.local.items()
        }
        return cls(
            shared.topic_word, shared.vocabulary, shared.alpha, shared.beta, shared.weights, options, provenance | own,
            shared.encoder, shared.ids, shared.retired, shared.names, shared.hidden, local, history, directory,
        )  # fmt: skip

    def best_for(self, party: str) -> Topics:
        """The model that serves a party's own documents best, as it found out itself on its validation documents.

        It is the party's own (`alone`), its composed one, the global one, or a mixture of its own and the global
        topics; `provenance["chosen"]` says which, and `provenance["validation_perplexity"]` why.
        """
        if party not in self.choices:
            known = f"only {sorted(self.choices)} did" if self.choices else "fit with a share `validation`, such as 0.1"
            raise InputError(f"party '{party}' had no validation documents to choose a model by: {known}")
        return self.choices[party].best

    def keep_tokenizer(self, function: Tokenizer) -> None:
        """Give all models of the run the function that cut texts into tokens, which runs know only by its name."""
        chosen = [model for choice in self.choices.values() for model in choice]
        for model in (self, *self.local.values(), *chosen):
            model.options = model.options.with_tokenizer(function)

    @property
    def communication(self) -> Communication:
        """Rounds and bytes."""
        return Communication.of(self.history)


def reason_of(why: str) -> str:
    """Why a party never took part, as may stand in a model: by which rule, and nothing else that it wrote."""
    found = _RULE.search(why)
    return f"refused ({found[1]})" if found else "never answered"


def warn_of_absent(provenance: Mapping[str, Any]) -> None:
    """Say whose documents the model has not seen."""
    if provenance.get("absent"):
        text = f"{who_took_part(provenance)}: the model knows nothing of the others. See their policies and logs"
        warnings.warn(text, AbsentPartyWarning, stacklevel=3)

"""The result of a federated run: the shared topics, and each party's own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tertulia.corpus import TextOptions
from tertulia.corpus.tokens import Tokenizer
from tertulia.errors import InputError
from tertulia.methods.common.model_choice import Choice
from tertulia.methods.common.rounds import Trained
from tertulia.methods.common.settings import has_mark
from tertulia.metrics.history import Communication, Participation, describe_answers, missed_warning, participation_in
from tertulia.models import Topics
from tertulia.runs.settings import RunSettings

_RULE = re.compile(r"refused by rule '([\w-]{1,40})'")


class AbsentPartyWarning(UserWarning):
    """The category of warnings about parties that never took part, or missed more than a tenth of the rounds."""


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
        """Make a model of a method's result and its provenance."""
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
        """Return the model that the party has chosen for its own documents, by its validation documents.

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

    @property
    def participation(self) -> dict[str, Participation]:
        """The rounds in which each party took part: `print(model.participation["north"])`, "rounds 1-22 of 121"."""
        return participation_in(self.provenance)


def reason_of(why: str) -> str:
    """Return why a party never took part, for a model's provenance: the rule's name, and no other text of the party."""
    found = _RULE.search(why)
    return f"refused ({found[1]})" if found else "never answered"


def warn_of_absent(provenance: Mapping[str, Any]) -> None:
    """Warn of parties whose documents the model has not seen, or has missed in many rounds."""
    if provenance.get("absent"):
        text = f"{describe_answers(provenance)}: the model knows nothing of the others. See their policies and logs"
        warnings.warn(text, AbsentPartyWarning, stacklevel=3)
    if text := missed_warning(provenance):
        warnings.warn(text, AbsentPartyWarning, stacklevel=3)


_PRIVATE = ("directory", "address", "parties", "data")  # places, homes, policies, and what parties chose for themselves


def public_settings(settings: RunSettings) -> dict[str, Any]:
    """Return the settings of a run as plain data, without paths and without the parties' own settings."""
    return without_paths(settings, leave_out=_PRIVATE)


def without_paths(settings: BaseModel, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return settings as plain data, without those that name a file."""
    plain, found = settings.model_dump(mode="json"), {}
    for name, setting in type(settings).model_fields.items():
        value = getattr(settings, name)
        is_path = (has_mark(setting, "path") and not isinstance(value, tuple | list)) or has_mark(setting, "paths")
        if name not in leave_out and not is_path:
            found[name] = without_paths(value) if isinstance(value, BaseModel) else plain[name]
    return found

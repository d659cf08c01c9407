"""The progress of a run, read from its journal for reports, the live page and `status`.

Nothing is written, no party is asked, and the run may be in progress meanwhile.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F64
from tertulia.corpus import Vocabulary
from tertulia.errors import TertuliaError
from tertulia.federation.server.journal import Journal
from tertulia.methods.common.rounds import TopicsSoFar
from tertulia.methods.common.settings import MethodSettings
from tertulia.methods.registry import METHODS, entry_of
from tertulia.models import Topics
from tertulia.runs.directory import Run
from tertulia.runs.driver import settings_of
from tertulia.runs.results import FederatedTopics

_MOST_CELLS = 50_000_000  # of topics by words: beyond, topics are shown when the run is finished


@dataclass(frozen=True)
class Progress:
    """The contents of the newest commit."""

    round: int
    history: tuple[Mapping[str, Any], ...]
    state: Any  # the method's own
    method: MethodSettings

    @cached_property
    def topics(self) -> TopicsSoFar | None:
        """The topics in the state, by the method's own `topics_so_far`; None where it has none, or none yet."""
        return topics_so_far_or_none(self.method, self.state)


class FormingTopics(NamedTuple):
    """Topics as they are after a round."""

    words: tuple[str, ...]
    topic_word: F64  # [K, V], rows sum to 1
    weights: F64 | None  # [K] sizes, where the state has them


def progress_or_none(run: Run) -> Progress | None:
    """Read the newest commit of a run; None if there is none, or if its method is not installed."""
    server = run.directory / "server"
    if not server.exists():
        return None
    method = settings_of(run).method
    if method.name in METHODS:  # the messages that its state is made of
        importlib.import_module(entry_of(method).module)
    try:
        commit, _ = Journal(server, durable=False).last()
    except (TertuliaError, FileNotFoundError):  # a commit that was replaced while it was read
        return None
    return None if commit is None else Progress(commit.round, commit.history, commit.state, method)


def topics_so_far_or_none(method: MethodSettings, state: Any) -> TopicsSoFar | None:
    """Return the topics in a state, by the method's own `topics_so_far`; None where it has none, or none yet."""
    if method.name not in METHODS:  # a run's directory may not name code that is run here
        return None
    module = importlib.import_module(entry_of(method).module)
    found: TopicsSoFar | None = module.topics_so_far(method, state) if hasattr(module, "topics_so_far") else None
    return found if found is not None and found.words else None


def forming_or_none(method: MethodSettings, state: Any) -> FormingTopics | None:
    """Return the shared topics as they are after a round; None before there are any."""
    found = topics_so_far_or_none(method, state)
    if found is None or not len(found.rows) or found.rows.size > _MOST_CELLS:
        return None
    return _normal(found.words, found.rows, found.sizes)


def _normal(words: tuple[str, ...], rows: Any, weights: Any) -> FormingTopics:
    shares = np.maximum(np.asarray(rows, dtype=np.float64), 0.0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    known = None if weights is None or len(weights) != len(shares) else np.asarray(weights, dtype=np.float64)
    return FormingTopics(words, shares, known)


def with_released(model: Topics, run: Run) -> Topics:
    """Add the topics of single parties to a run's saved model, if the server has received any."""
    so_far = progress_or_none(run)
    found = so_far.topics if so_far else None
    rows = {party: own for party, own in found.by_party.items() if len(own)} if found else {}
    if found is None or not rows:
        return model
    vocabulary = Vocabulary(found.words)
    local = {party: Topics(np.asarray(own, dtype=np.float64), vocabulary) for party, own in rows.items()}
    return FederatedTopics(**{part.name: getattr(model, part.name) for part in fields(Topics)}, local=local)

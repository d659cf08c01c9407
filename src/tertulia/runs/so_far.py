"""A run as far as it has come, read from its journal, by whoever shows it: reports, the live page, `status`.

Nothing is written, nobody is asked, and the run goes on meanwhile.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F64
from tertulia.corpus import Vocabulary
from tertulia.errors import TertuliaError
from tertulia.federation.server.journal import Journal
from tertulia.methods import METHODS, entry_of
from tertulia.methods.common.settings import MethodSettings
from tertulia.models import Topics
from tertulia.runs.driver import settings_of
from tertulia.runs.layout import Run
from tertulia.runs.results import FederatedTopics

_MOST_CELLS = 50_000_000  # of topics by words: beyond, topics are shown when the run is finished


class SoFar(NamedTuple):
    """What the newest commit holds."""

    round: int
    history: tuple[Mapping[str, Any], ...]
    state: Any  # the method's own


class Forming(NamedTuple):
    """Topics as they are after a round."""

    words: tuple[str, ...]
    topic_word: F64  # [K, V], rows sum to 1
    weights: F64 | None  # [K] sizes, where the state has them


def so_far_or_none(run: Run) -> SoFar | None:
    """The newest commit of a run; None if there is none, or if it is of a method that is not at hand."""
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
    return None if commit is None else SoFar(commit.round, commit.history, commit.state)


def forming_or_none(method: MethodSettings, state: Any) -> Forming | None:
    """The topics in a method's state; None before there are any, and for methods that keep none."""
    words = getattr(state, "words", None)
    if not isinstance(words, tuple) or not words:
        return None
    if method.name == "gfedntm":
        from tertulia.methods.gfedntm.results import shared_model

        found = shared_model(method, state).topics  # type: ignore[arg-type]
        return _normal(words, found.topic_word, found.weights)
    for name in ("topic_word", "counts"):
        array = getattr(state, name, None)
        if isinstance(array, np.ndarray) and array.ndim == 2 and array.shape[1] == len(words) and len(array):
            sizes = getattr(state, "weights", getattr(state, "sizes", None))
            known = array.sum(axis=1) if name == "counts" else sizes
            return _normal(words, array, known) if array.size <= _MOST_CELLS else None
    return None


def _normal(words: tuple[str, ...], rows: Any, weights: Any) -> Forming:
    shares = np.maximum(np.asarray(rows, dtype=np.float64), 0.0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    known = None if weights is None or len(weights) != len(shares) else np.asarray(weights, dtype=np.float64)
    return Forming(words, shares, known)


def released_models(state: Any) -> dict[str, F64]:
    """Single parties' topics [K_p, V] that the server was sent, by party; methods that only see sums have none."""
    found = getattr(state, "composed", None)
    if not isinstance(found, dict):
        return {}
    return {party: np.asarray(rows, dtype=np.float64) for party, rows in found.items() if np.ndim(rows) == 2}


def with_released(model: Topics, run: Run) -> Topics:
    """A run's saved model, with those of single parties that the server was sent, if it was sent any."""
    so_far = so_far_or_none(run)
    rows = released_models(so_far.state) if so_far else {}
    if not any(map(len, rows.values())):
        return model
    vocabulary = Vocabulary(so_far.state.words)  # type: ignore[union-attr]
    local = {party: Topics(own, vocabulary) for party, own in rows.items() if len(own)}
    return FederatedTopics(**{part.name: getattr(model, part.name) for part in fields(Topics)}, local=local)

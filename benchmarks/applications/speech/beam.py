"""Beam search over any model that predicts the next token, to make n-best lists for rescoring.

`step` may be a neural decoder with its caches, or a table of three tokens in a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.errors import InputError

# (parent of each beam among the previous beams, last token of each) -> ln P(next token) [beams, tokens].
# A model with a state keeps it for all beams in one array, and first reorders its rows by the parents.
Step = Callable[[I64, I64], Array]


class Beam(NamedTuple):
    """A sequence of tokens without the start and end, and its ln P, the end included."""

    tokens: tuple[int, ...]
    score: float


class _Live(NamedTuple):
    tokens: tuple[int, ...]
    score: float
    is_greedy: bool  # each token was the likeliest


def beam_search(step: Step, start: int, end: int, *, width: int, most_tokens: int, n_best: int = 1) -> list[Beam]:
    """Find the n best sequences that end within `most_tokens` tokens, best first.

    The greedy sequence always stays in the beam. So the best sequence is never worse than the greedy one, and width 1
    is greedy search. Scores only fall, so the search stops when no live sequence can enter the n best. If none has
    ended by then, the live ones are returned.
    """
    if width < 1 or most_tokens < 1 or n_best < 1:
        raise InputError(f"width = {width}, most_tokens = {most_tokens}, n_best = {n_best}: each must be at least 1")
    live, ended = [_Live((), 0.0, True)], list[Beam]()
    parents, tokens = np.zeros(1, np.int64), np.full(1, start, np.int64)
    for _ in range(most_tokens):
        chosen = _extend(live, np.asarray(step(parents, tokens), np.float64), width)
        ended += [Beam(beam.tokens[:-1], beam.score) for _, beam in chosen if beam.tokens[-1] == end]
        ended = sorted(ended, key=lambda beam: -beam.score)[:n_best]
        going = [(parent, beam) for parent, beam in chosen if beam.tokens[-1] != end]
        live = [beam for _, beam in going]
        if not live or (len(ended) == n_best and max(beam.score for beam in live) <= ended[-1].score):
            break
        parents = np.array([parent for parent, _ in going], np.int64)
        tokens = np.array([beam.tokens[-1] for beam in live], np.int64)
    return ended or [Beam(beam.tokens, beam.score) for beam in sorted(live, key=lambda beam: -beam.score)[:n_best]]


def _extend(live: Sequence[_Live], log_probs: Array, width: int) -> list[tuple[int, _Live]]:
    """Find the best continuations and their parents; among equal ones, the first beam's first token comes first."""
    scores = np.array([beam.score for beam in live])[:, None] + log_probs
    flat, V = scores.ravel(), scores.shape[1]
    if len(flat) > width:
        threshold = np.partition(flat, -width)[-width]
        best = np.flatnonzero(flat >= threshold)
    else:
        best = np.arange(len(flat))
    best = best[np.argsort(-flat[best], kind="stable")][:width]
    greedy = next((b for b, beam in enumerate(live) if beam.is_greedy), None)
    keep = None if greedy is None else greedy * V + int(np.argmax(log_probs[greedy]))
    if keep is not None and keep not in best:
        best[-1] = keep
    return [
        (int(i) // V, _Live((*live[i // V].tokens, int(i) % V), float(flat[i]), int(i) == keep))
        for i in best
        if np.isfinite(flat[i])
    ]

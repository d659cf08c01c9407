"""Speech recognition that knows the subject: n-best lists rescored by topics, compared fairly (extra `asr`).

>>> from tertulia.applications import speech
>>> heldout = speech.read_nbest("heldout.jsonl")  # doctest: +SKIP
>>> weights = speech.tune(heldout, topics)  # doctest: +SKIP
>>> for choice in speech.rescore(speech.read_nbest("calls.jsonl"), topics, weights):  # doctest: +SKIP
...     print(" ".join(choice.words))

`compare` never shows topics alone: beside them stand the decoder without topics, and two controls. A plain unigram of
the domain shows what is gained by knowing its words; topics of a wrong document show what any topics of it would gain.
Only what is gained beyond both is due to the topics of the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tertulia._arrays import I64
from tertulia.applications.arpa import NGrams
from tertulia.applications.beam import Beam, beam_search
from tertulia.applications.nbest import Hypothesis, Utterance, write_nbest
from tertulia.applications.nbest_formats import read_nbest
from tertulia.applications.rescoring import Choice, Prepared, Weights, contexts, prepare, rescore, with_language
from tertulia.applications.wer import Interval, error_rate, word_errors
from tertulia.corpus.inputs import Documents
from tertulia.errors import InputError
from tertulia.models import Topics

__all__ = [
    "Beam",
    "Choice",
    "Grid",
    "Hypothesis",
    "Interval",
    "NGrams",
    "Score",
    "Utterance",
    "Weights",
    "beam_search",
    "compare",
    "contexts",
    "error_rate",
    "read_nbest",
    "rescore",
    "tune",
    "unigram",
    "with_language",
    "word_errors",
    "write_nbest",
    "wrong_contexts",
]


@dataclass(frozen=True)
class Grid:
    """What `tune` tries, each with each."""

    mix: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
    lm_weight: tuple[float, ...] = (0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 5.0, 7.0, 9.5, 13.0, 18.0)
    penalty: tuple[float, ...] = (-6.0, -4.0, -2.0, 0.0, 2.0)


@dataclass(frozen=True)
class Score:
    """How a way of rescoring did on test utterances."""

    wer: Interval
    difference: Interval  # its word error rate minus that without topics, paired: below 0 it helps
    weights: Weights
    topics: Topics | None = field(repr=False)  # the model, or that of several which held-out utterances chose
    errors: I64 = field(repr=False)  # of each utterance


def unigram(documents: Documents, like: Topics) -> Topics:
    """The control that knows the domain's words and no topics: word shares over the vocabulary of a model."""
    corpus = like.encode(documents)
    counts = np.bincount(corpus.words, minlength=len(like.vocabulary)) + max(like.beta, 1e-9)
    return Topics((counts / counts.sum())[None], like.vocabulary, options=like.options)


def wrong_contexts(utterances: Sequence[Utterance], shift: int = 1) -> list[str]:
    """The first pass over another document, for each utterance: that so many places further on, in order."""
    documents: dict[str, list[str]] = {}
    for i, utterance in enumerate(utterances):
        documents.setdefault(utterance.document or f"\0{i}", []).append(" ".join(utterance.first_pass))
    names = list(documents)
    if shift % len(names) == 0:
        raise InputError(f"shift = {shift} of {len(names)} documents leads back to the same one: choose another")
    place = {name: n for n, name in enumerate(names)}
    return [
        " ".join(documents[names[(place[utterance.document or f"\0{i}"] + shift) % len(names)]])
        for i, utterance in enumerate(utterances)
    ]


def tune(
    utterances: Sequence[Utterance],
    topics: Topics | None,
    *,
    context: Sequence[str] | None = None,
    grid: Grid | None = None,
) -> Weights:
    """Find the weights with the fewest word errors on held-out utterances, whose references must be known.

    Every point of the grid is tried; of equally good ones the first wins, so the smallest lambda. Use utterances of
    other documents than those that you report on.
    """
    return _tune(prepare(utterances, topics, context), _all_errors(utterances), grid or Grid(), topics is None)[0]


def compare(
    models: Mapping[str, Topics | Sequence[Topics]],
    heldout: Sequence[Utterance],
    test: Sequence[Utterance],
    *,
    control: Topics,
    wrong: Mapping[str, int] | None = None,
    grid: Grid | None = None,
    window: int | None = None,
) -> dict[str, Score]:
    """Word error rates of models with intervals, beside `none` and both controls; all tuned on held-out utterances.

    Of several models under one name, with different numbers of topics, say, held-out utterances choose. `control` is
    the domain's `unigram`. The wrong documents' topics are the first model's; `wrong` may name other `wrong_contexts`
    by their shift.
    """
    if not models:
        raise InputError("there are no models to compare: give a mapping from a name to topics")
    right = contexts(heldout, window), contexts(test, window)
    tried: dict[str, tuple[Sequence[Topics | None], tuple[list[str], list[str]]]]
    tried = {"none": ([None], right), "unigram_control": ([control], right)}
    given = {name: [found] if isinstance(found, Topics) else list(found) for name, found in models.items()}
    for name, shift in (wrong or {"wrong_topic_control": 1}).items():
        tried[name] = next(iter(given.values())), (wrong_contexts(heldout, shift), wrong_contexts(test, shift))
    tried |= {name: (candidates, right) for name, candidates in given.items()}
    errors, found = (_all_errors(heldout), _all_errors(test)), dict[str, Score]()
    lengths, documents = _lengths(test), [utterance.document or utterance.id for utterance in test]
    for name, (candidates, (context_heldout, context)) in tried.items():
        ways = [_tune(prepare(heldout, c, context_heldout), errors[0], grid or Grid(), c is None) for c in candidates]
        best = int(np.argmin([fewest for _, fewest in ways]))
        weights, topics = ways[best][0], candidates[best]
        chosen = errors[1][prepare(test, topics, context).best(weights)]
        difference = chosen - (found["none"].errors if found else chosen)
        found[name] = Score(
            error_rate(chosen, lengths, documents), error_rate(difference, lengths, documents), weights, topics, chosen
        )
    return found


def _tune(prepared: Prepared, errors: I64, grid: Grid, alone: bool) -> tuple[Weights, int]:
    """The best weights of a grid, and how many words are wrong with them; alone: without topics."""
    best, fewest = Weights(0.0, known_share=prepared.known_share), np.inf
    for mix in (0.0,) if alone else grid.mix:
        log_probs = prepared.log_probs(Weights(mix, known_share=prepared.known_share))
        for lm_weight in grid.lm_weight:
            for penalty in grid.penalty:
                weights = Weights(mix, lm_weight, penalty, prepared.known_share)
                if (wrong := errors[prepared.best(weights, log_probs)].sum()) < fewest:
                    best, fewest = weights, wrong
    return best, int(fewest)


def _all_errors(utterances: Sequence[Utterance]) -> I64:
    """Word errors of every hypothesis of every utterance, in one row."""
    references = []
    for utterance in utterances:
        if utterance.reference is None:
            raise InputError(f"utterance '{utterance.id}' has no reference: errors can only be counted against one")
        references += [utterance.reference] * len(utterance.hypotheses)
    return word_errors(references, [h.words for utterance in utterances for h in utterance.hypotheses])


def _lengths(utterances: Sequence[Utterance]) -> list[int]:
    return [len(utterance.reference or ()) for utterance in utterances]

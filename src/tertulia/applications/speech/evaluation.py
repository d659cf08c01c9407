"""Word error rates with intervals, tuning of the weights, and a comparison with controls.

jiwer aligns words; the bootstrap gives intervals. Utterances of one document share a speaker and a subject, so whole
documents are drawn, not single utterances.

`compare` never shows topics alone: it also shows the decoder without topics, and two controls. A unigram of the domain
shows the gain from knowing its words; topics of a wrong document show the gain from any topics. Only a gain beyond both
is due to the topics of the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tertulia._arrays import I64
from tertulia.applications.speech.nbest import Utterance
from tertulia.applications.speech.rescoring import (
    ScoreTable,
    Weights,
    contexts,
    prepare,
)
from tertulia.corpus.inputs import Documents
from tertulia.errors import InputError
from tertulia.models import Topics

Words = Sequence[str]


class Interval(NamedTuple):
    """An estimate with its 95 % interval."""

    mean: float
    low: float
    high: float


def word_errors(references: Sequence[Words], hypotheses: Sequence[Words]) -> I64:
    """Count the substituted, missing and added words of each utterance."""
    if len(references) != len(hypotheses):
        raise InputError(f"{len(references)} references, {len(hypotheses)} hypotheses: give one for each utterance")
    try:
        from jiwer import process_words
    except ModuleNotFoundError as error:
        raise InputError("word error rates need jiwer: pip install 'tertulia[asr]'") from error
    errors = np.array([len(words) for words in hypotheses], np.int64)  # against an empty reference, all are insertions
    spoken = [i for i, words in enumerate(references) if words]
    if not spoken:
        return errors
    output = process_words([" ".join(references[i]) for i in spoken], [" ".join(hypotheses[i]) for i in spoken])
    for i, chunks in zip(spoken, output.alignments, strict=True):
        errors[i] = sum(
            max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx)
            for chunk in chunks
            if chunk.type != "equal"
        )
    return errors


def error_rate(
    errors: Sequence[int] | I64,
    lengths: Sequence[int] | I64,
    documents: Sequence[str],
    *,
    draws: int = 2000,
    seed: int = 0,
) -> Interval:
    """Estimate the share of wrong words, from utterances' errors and numbers of spoken words.

    For a paired difference, give the differences of two systems' errors: both then have the same draws.
    """
    wrong, spoken = np.asarray(errors, np.float64), np.asarray(lengths, np.float64)
    if not (len(wrong) == len(spoken) == len(documents)) or spoken.sum() <= 0:
        raise InputError(f"{len(wrong)} errors, {len(spoken)} lengths, {len(documents)} documents: give one for each")
    _, group = np.unique(np.asarray(documents), return_inverse=True)
    by_document = np.stack([np.bincount(group, wrong), np.bincount(group, spoken)])
    G = by_document.shape[1]
    times = np.random.default_rng(seed).multinomial(G, np.full(G, 1.0 / G), size=draws)  # how often each is drawn
    totals = by_document @ times.T.astype(np.float64)
    rates = np.divide(totals[0], totals[1], out=np.zeros(draws), where=totals[1] > 0)
    low, high = np.percentile(rates, [2.5, 97.5])
    return Interval(float(wrong.sum() / spoken.sum()), float(low), float(high))


@dataclass(frozen=True)
class Grid:
    """The values that `tune` tries, in all combinations."""

    mix: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
    lm_weight: tuple[float, ...] = (0.05, 0.1, 0.2, 0.35, 0.5, 1.0, 2.0, 5.0, 7.0, 9.5, 13.0, 18.0)
    penalty: tuple[float, ...] = (-6.0, -4.0, -2.0, 0.0, 2.0)


@dataclass(frozen=True)
class Score:
    """The result of one way of rescoring on test utterances."""

    wer: Interval
    difference: Interval  # word error rate minus that without topics, paired: below 0 is better
    weights: Weights
    topics: Topics | None = field(repr=False)  # the model; of several, the one that held-out utterances chose
    errors: I64 = field(repr=False)  # of each utterance


def unigram(documents: Documents, like: Topics) -> Topics:
    """Make the control without topics: word frequencies of the domain over the vocabulary of a model."""
    corpus = like.encode(documents)
    counts = np.bincount(corpus.words, minlength=len(like.vocabulary)) + max(like.beta, 1e-9)
    return Topics((counts / counts.sum())[None], like.vocabulary, options=like.options)


def wrong_contexts(utterances: Sequence[Utterance], shift: int = 1) -> list[str]:
    """Return for each utterance the first pass over a wrong document: the one `shift` places later."""
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

    Every point of the grid is tried; among equally good ones the first wins, which has the smallest lambda. Use
    utterances of other documents than those that you report on.
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
    """Compare the word error rates of models, `none` and both controls; all are tuned on held-out utterances.

    If a name has several models, with different numbers of topics for example, held-out utterances choose one.
    `control` is the domain's `unigram`. The control with wrong documents uses the first model; `wrong` maps further
    names to shifts of `wrong_contexts`.
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


def _tune(prepared: ScoreTable, errors: I64, grid: Grid, alone: bool) -> tuple[Weights, int]:
    """Find the best weights of a grid, and the number of word errors with them; `alone` means without topics."""
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
    """Count the word errors of every hypothesis of every utterance, in one row."""
    references = []
    for utterance in utterances:
        if utterance.reference is None:
            raise InputError(f"utterance '{utterance.id}' has no reference: errors can only be counted against one")
        references += [utterance.reference] * len(utterance.hypotheses)
    return word_errors(references, [h.words for utterance in utterances for h in utterance.hypotheses])


def _lengths(utterances: Sequence[Utterance]) -> list[int]:
    return [len(utterance.reference or ()) for utterance in utterances]

"""Word error rates with intervals: jiwer aligns, the bootstrap says how sure one can be.

Utterances of one document share a speaker and a subject, so whole documents are drawn, not single utterances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tertulia._arrays import I64
from tertulia.errors import InputError

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
    errors = np.array([len(words) for words in hypotheses], np.int64)  # against an empty reference all are added
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

    For a paired difference give the differences of two systems' errors: both are then judged on the same draws.
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

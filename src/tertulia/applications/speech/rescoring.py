"""Language-model adaptation by topics: equations (30) and (31) of iFTM (Jiang et al., TIST 2021) on n-best lists.

    P_TM(w|C) = sum_z P(w|z) P(z|C)                                  (30)
    P(w|C) = lambda P_TM(w|C) + (1 - lambda) P_LM(w|C)               (31)

C is the context of the utterance, such as the other utterances of a call; `Topics.transform` infers its topic shares
P(z|C). The score of a hypothesis is acoustic + lm_weight * sum_w (ln P(w|C) + penalty); the best one is chosen.

**Words that the topics lack** (mostly stop words) keep P_LM(w|C). So that probabilities still add up to one, P_TM is
scaled by `known_share`, the share of running words that the topics know. Topics then redistribute only the mass that
the language model gives to their words, instead of favouring each of them over every stop word.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from tertulia._arrays import F64, I64, Bool
from tertulia.applications.speech.nbest import Hypothesis, Utterance
from tertulia.applications.speech.ngrams import END
from tertulia.errors import InputError
from tertulia.models import Topics
from tertulia.models.topics import UnknownWordsWarning


class LanguageModel(Protocol):
    """A language model that gives ln P_LM of each word of a sentence and of its end, such as `NGrams`."""

    def log_probs(self, words: Sequence[str]) -> tuple[float, ...]:
        """List ln P_LM of each word, and of the end."""


@dataclass(frozen=True)
class Weights:
    """The weights of a score; `tune` finds them on held-out utterances."""

    mix: float = 0.1  # lambda of (31); the paper's value
    lm_weight: float = 1.0
    penalty: float = 0.0  # added to ln P of each word: below 0 it disfavours long sentences
    known_share: float | None = None  # None: that of the first pass

    def __post_init__(self) -> None:
        if not 0.0 <= self.mix <= 1.0:
            raise InputError(f"mix = {self.mix}: lambda is a share, from 0 (no topics) to 1 (topics alone)")


class Choice(NamedTuple):
    """The hypothesis that rescoring chose for an utterance."""

    words: tuple[str, ...]
    rank: int  # its place in the decoder's own order, from 0
    score: float


def with_language(utterances: Sequence[Utterance], model: LanguageModel) -> list[Utterance]:
    """Replace the decoder's P_LM of every hypothesis by that of another language model, such as `NGrams`."""
    return [
        Utterance(
            utterance.id,
            tuple(Hypothesis(h.words, h.acoustic, model.log_probs(h.words)) for h in utterance.hypotheses),
            utterance.document,
            utterance.reference,
        )
        for utterance in utterances
    ]


def contexts(utterances: Sequence[Utterance], window: int | None = None) -> list[str]:
    """Return the context of each utterance: the first pass over the other utterances of its document.

    With a `window`, only that number of utterances before it count, as in live recognition. The utterance's own first
    pass is left out, because errors would confirm themselves. The context of a single utterance is empty.
    """
    places: dict[str, list[int]] = {}
    for i, utterance in enumerate(utterances):
        places.setdefault(utterance.document or f"\0{i}", []).append(i)
    found = [""] * len(utterances)
    for members in places.values():
        for n, i in enumerate(members):
            others = members[:n] + members[n + 1 :] if window is None else members[max(0, n - window) : n]
            found[i] = " ".join(" ".join(utterances[j].first_pass) for j in others)
    return found


@dataclass(frozen=True)
class ScoreTable:
    """The words of all hypotheses in one row, with the probabilities that (31) needs."""

    lm: F64  # [words] P_LM
    topics: F64  # [words] P_TM, 0 where the topics lack the word
    known: Bool  # [words]
    ends: I64  # [hypotheses + 1] where the words of each begin
    acoustic: F64  # [hypotheses]
    lengths: I64  # [hypotheses] words, without the end
    first: I64  # [utterances + 1] where the hypotheses of each begin
    known_share: float

    def log_probs(self, weights: Weights) -> F64:
        """Sum ln P(w|C) over the words of each hypothesis, by (31)."""
        share = self.known_share if weights.known_share is None else weights.known_share
        mixed = weights.mix * share * self.topics + (1.0 - weights.mix) * self.lm  # (31)
        with np.errstate(divide="ignore"):  # with lambda 1 a word may have probability 0
            logs = np.log(np.where(self.known, mixed, self.lm))
        sums: F64 = np.where(np.diff(self.ends) > 0, np.add.reduceat(np.append(logs, 0.0), self.ends[:-1]), 0.0)
        return sums

    def scores(self, weights: Weights, log_probs: F64 | None = None) -> F64:
        """Compute the total score of each hypothesis; `log_probs` depend only on lambda, and may be given."""
        if not weights.lm_weight:
            return self.acoustic  # without weight, even a probability of 0 does not count
        sums = self.log_probs(weights) if log_probs is None else log_probs
        total: F64 = self.acoustic + weights.lm_weight * (sums + weights.penalty * self.lengths)
        return total

    def best(self, weights: Weights, log_probs: F64 | None = None) -> I64:
        """Find the place of each utterance's best hypothesis; among equal ones the first."""
        scores = self.scores(weights, log_probs)
        highest = np.repeat(np.maximum.reduceat(scores, self.first[:-1]), np.diff(self.first))
        places = np.flatnonzero(scores == highest)
        utterances = np.searchsorted(self.first, places, side="right")
        return places[np.unique(utterances, return_index=True)[1]]


def prepare(utterances: Sequence[Utterance], topics: Topics | None, context: Sequence[str] | None = None) -> ScoreTable:
    """Look up P_LM and P_TM of every word; without topics only P_LM. The default context is `contexts(...)`."""
    if not utterances:
        raise InputError("there are no utterances to rescore: give at least one")
    hypotheses = [h for utterance in utterances for h in utterance.hypotheses]
    words, scores = [], []
    for h in hypotheses:
        if h.language is None:
            raise InputError(
                f"'{' '.join(h.words)[:40]}' has no language-model score: use with_language(utterances, ...)"
            )
        words.append((*h.words, END) if len(h.language) > len(h.words) else h.words)
        scores.append(h.language)
    counts = np.array([len(utterance.hypotheses) for utterance in utterances], np.int64)
    sizes = np.array([len(row) for row in words], np.int64)
    row = [word for sentence in words for word in sentence]
    found, known, share = np.zeros(len(row)), np.zeros(len(row), bool), 1.0
    if topics is not None:
        index = topics.vocabulary.index
        columns = np.array([index.get(word, -1) for word in row], np.int64)
        known = columns >= 0
        theta = topic_shares(topics, contexts(utterances) if context is None else context, len(utterances))
        which = np.repeat(np.repeat(np.arange(len(counts)), counts), sizes)
        found[known] = _mixtures(theta, topics, which[known], columns[known])
        heard = [word in index for utterance in utterances for word in utterance.first_pass]
        share = float(np.mean(heard)) if heard else 1.0
    return ScoreTable(
        lm=np.exp(np.array([value for row in scores for value in row], np.float64)),
        topics=found,
        known=known,
        ends=_starts(sizes),
        acoustic=np.array([h.acoustic for h in hypotheses], np.float64),
        lengths=np.array([len(h.words) for h in hypotheses], np.int64),
        first=_starts(counts),
        known_share=share,
    )


def topic_shares(topics: Topics, context: Sequence[str], expected: int) -> F64:
    """Infer P(z|C) of each context; one without a known word gets the shares of the prior."""
    if len(context) != expected:
        raise InputError(f"{len(context)} contexts for {expected} utterances: give one for each")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownWordsWarning)  # contexts may be empty
        return topics.transform(list(context))


def rescore(
    utterances: Sequence[Utterance],
    topics: Topics | None,
    weights: Weights | None = None,
    *,
    context: Sequence[str] | None = None,
) -> list[Choice]:
    """Choose the best hypothesis of each utterance by (31); without topics, only by the language model.

    >>> from tertulia.corpus import Vocabulary
    >>> topics = Topics(np.array([[0.9, 0.1], [0.1, 0.9]]), Vocabulary(("bonds", "bones")))
    >>> nbest = (Hypothesis(("bones",), -1.0, (-7.0,)), Hypothesis(("bonds",), -1.1, (-7.0,)))
    >>> rescore([Utterance("a", nbest)], topics, context=["bonds and bonds"])[0].words
    ('bonds',)
    """
    prepared = prepare(utterances, topics, context)
    weights = weights or Weights(mix=0.0 if topics is None else Weights.mix)
    best, scores = prepared.best(weights), prepared.scores(weights)
    hypotheses = [h for utterance in utterances for h in utterance.hypotheses]
    return [
        Choice(hypotheses[b].words, int(b - first), float(scores[b]))
        for b, first in zip(best, prepared.first[:-1], strict=True)
    ]


def _mixtures(theta: F64, topics: Topics, which: I64, columns: I64, chunk: int = 50_000) -> F64:
    """Compute (30) for pairs of an utterance and a word."""
    words = np.ascontiguousarray(topics.topic_word.T, np.float64)
    parts = [slice(i, i + chunk) for i in range(0, len(which), chunk)]
    found = [np.einsum("nk,nk->n", theta[which[part]], words[columns[part]]) for part in parts]
    return np.concatenate(found) if found else np.zeros(0)


def _starts(sizes: I64) -> I64:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)

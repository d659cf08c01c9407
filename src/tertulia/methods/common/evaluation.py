"""Held-out quality, measured where the documents are: parties score, only the totals are added up.

A server chooses the model that is scored, and a party cannot tell a crafted one from one that was trained: a score may
read out the count of any word. So a score is a release like any other. It leaves as it is where a party's policy allows
clear metrics; where the policy says `score_epsilon` instead, it leaves under noise, charged, once in a round: each
document counts for at most MOST_TOKENS tokens of at most WORST nats each, on a grid of 2^-GRID_BITS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.rounds import Rounds
from tertulia.metrics.perplexity import by_document, completion
from tertulia.privacy.mechanisms import Clear, Derived, DiscreteLaplace
from tertulia.privacy.mechanisms.things import thing

WHAT = thing("held-out log likelihood", "score of held-out documents")
SCORE = Clear(WHAT, metric=True)
MOST_TOKENS, WORST, GRID_BITS = 64, 16.0, 10  # e^16 words: no sensible model is more surprised than that
_UNIT = int(MOST_TOKENS * WORST) << GRID_BITS  # what one document can add to either number, in steps of the grid


def noisy_score(epsilon: float) -> DiscreteLaplace:
    """Return the mechanism of a noisy score: two numbers, which a document moves by 2 _UNIT together at most."""
    return DiscreteLaplace(WHAT, sensitivity=2 * _UNIT, epsilon=epsilon, metric=True)


@message
class Candidate:
    """A model to be scored."""

    words: fields.Words
    topic_word: fields.TopicWord  # [K, V]
    alpha: fields.Prior  # [K]
    smoothing: fields.Fraction


@message
class Score:
    """Document-completion log likelihood and the number of tokens it is over."""

    log_likelihood: fields.Scalar
    tokens: fields.Total


@step(doing="scoring", metric=True, replies="standing")
def score(party: Party, state: Any, ask: Candidate) -> tuple[Any, Score]:
    """Score a model on this party's held-out documents."""
    documents = party.documents(Vocabulary.of(ask.words), "heldout")
    epsilon = party.score_epsilon
    if epsilon is not None:
        return state, _release_noisy(party, documents, ask, epsilon)
    log_likelihood, tokens = 0.0, 0
    if (documents.lengths >= 2).any():  # else there is nothing to complete
        found = completion(ask.topic_word, ask.alpha, documents, smoothing=ask.smoothing)
        log_likelihood, tokens = found.log_likelihood, found.tokens
    return state, Score(
        party.release(np.array(log_likelihood), SCORE),
        party.release(np.array(tokens), SCORE),
    )


def _release_noisy(party: Party, documents: Corpus, ask: Candidate, epsilon: float) -> Score:
    """Clip each document's score, add up, and release the sum with noise."""
    steps = np.zeros(2, dtype=np.int64)
    if (documents.lengths >= 2).any():
        steps = clipped_sum(*by_document(ask.topic_word, ask.alpha, documents, smoothing=ask.smoothing))
    noisy = party.release(steps, noisy_score(epsilon))
    likelihood, tokens = -noisy[0] * 2.0**-GRID_BITS, max(noisy[1], 0) / (WORST * 2**GRID_BITS)
    derived = Derived(WHAT, parents=(noisy,), metric=True)
    return Score(party.release(np.array(likelihood), derived), party.release(np.array(tokens), derived))


def clipped_sum(likelihood: F64, tokens: Array) -> I64:
    """Sum surprise, and WORST times the tokens, over documents, in steps of the grid [2].

    Under any model a document adds no less than 0 and no more than _UNIT to either number.
    """
    share = np.minimum(1.0, MOST_TOKENS / np.maximum(tokens, 1))
    weight = tokens * share
    surprise = np.nan_to_num(-likelihood * share, nan=np.inf, posinf=np.inf, neginf=0.0)
    surprise = np.clip(surprise, 0.0, WORST * weight)
    both = np.stack([surprise, WORST * weight]) * 2**GRID_BITS
    steps: I64 = np.minimum(np.floor(both), _UNIT).astype(np.int64).sum(axis=1)
    return steps


def perplexity(fed: Federation, words: tuple[str, ...], topic_word: Array, alpha: F64, smoothing: float = 0.0) -> float:
    """Compute perplexity over all parties' held-out documents; NaN if there are none."""
    total = fed.sum(score, Candidate(words, topic_word.astype(np.float32), alpha, smoothing))
    return float(np.exp(-total.log_likelihood / total.tokens)) if total.tokens > 0 else float("nan")


class Evaluated(Rounds, Protocol):
    """Settings of a method that trains topics in rounds, and can score them in each."""

    @property
    def mode(self) -> str:
        """How private documents are kept."""

    @property
    def evaluate(self) -> bool | None:
        """Whether to score; None: unless the mode is `sound`."""

    @property
    def alpha(self) -> float:
        """The sum of theta's prior."""


def evaluates(config: Evaluated) -> bool:
    """Return whether held-out documents are scored in each round."""
    return config.mode != "sound" if config.evaluate is None else config.evaluate


class OverVocabulary(Protocol):
    """A state of a model over agreed words."""

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary."""


S = TypeVar("S", bound=OverVocabulary)


class Evaluation(Generic[S]):
    """After each round: how many topics there are and, if the settings ask for it, how well they predict.

    `topic_word` finds the model [K, V] in a method's state, `alpha` its prior [K], which else is that of the settings.
    """

    def __init__(
        self, config: Evaluated, topic_word: Callable[[S], Array], alpha: Callable[[S], F64] | None = None
    ) -> None:
        self.config = config
        self.topic_word = topic_word
        self.alpha = alpha

    def __call__(self, fed: Federation, state: S) -> tuple[S, dict[str, Any]]:
        """Score the model of a round that ends."""
        phi = self.topic_word(state)
        metrics: dict[str, Any] = {"topics": len(phi)}
        if evaluates(self.config):
            alpha = self.alpha(state) if self.alpha else symmetric(self.config.alpha, len(phi))
            metrics["perplexity"] = perplexity(fed, state.words, phi, alpha)
        return state, metrics


def plan_evaluation(config: Evaluated) -> list[Planned]:
    """List what scoring will disclose."""
    return [Planned(score, "sum", SCORE, config.rounds)] if evaluates(config) else []


def plan_score(planned: Planned, epsilon: float | None) -> Planned:
    """Plan a score for a party whose policy releases scores only under noise."""
    return planned if epsilon is None or planned.step is not score else planned._replace(mechanism=noisy_score(epsilon))

"""Held-out quality, measured where the documents are: parties score, only the totals are added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from tertulia._arrays import F64, Array
from tertulia._kinds import check_array
from tertulia.corpus import Vocabulary
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.settings import Evaluated
from tertulia.metrics.perplexity import completion
from tertulia.privacy.mechanisms import Clear

SCORE = Clear("held-out log likelihood", metric=True)


@message
class Candidate:
    """A model to be scored."""

    words: tuple[str, ...]
    topic_word: fields.TopicWord  # [K, V]
    alpha: fields.Prior  # [K]
    smoothing: fields.Fraction


@message
class Score:
    """Document-completion log likelihood and the number of tokens it is over."""

    log_likelihood: Array
    tokens: Array

    def check_reply(self, ask: Candidate) -> None:
        """Raise unless it is the logarithm of a probability, and over so many tokens."""
        check_array("log_likelihood", self.log_likelihood, ())
        check_array("tokens", self.tokens, (), least=0)


@step
def score(party: Party, state: Any, ask: Candidate) -> tuple[Any, Score]:
    """Score a model on this party's held-out documents."""
    documents = party.documents(Vocabulary(ask.words), "heldout")
    log_likelihood, tokens = 0.0, 0
    if (documents.lengths >= 2).any():  # else there is nothing to complete
        found = completion(ask.topic_word, ask.alpha, documents, smoothing=ask.smoothing)
        log_likelihood, tokens = found.log_likelihood, found.tokens
    return state, Score(
        party.release(np.array(log_likelihood), SCORE),
        party.release(np.array(tokens), SCORE),
    )


def perplexity(fed: Federation, words: tuple[str, ...], topic_word: Array, alpha: F64, smoothing: float = 0.0) -> float:
    """Perplexity over everyone's held-out documents; NaN where nobody holds any."""
    total = fed.sum(score, Candidate(words, topic_word.astype(np.float32), alpha, smoothing))
    return float(np.exp(-total.log_likelihood / total.tokens)) if total.tokens else float("nan")


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
        if self.config.evaluates:
            alpha = self.alpha(state) if self.alpha else symmetric(self.config.alpha, len(phi))
            metrics["perplexity"] = perplexity(fed, state.words, phi, alpha)
        return state, metrics


def plan_evaluation(config: Evaluated) -> list[Planned]:
    """What scoring will disclose."""
    return [Planned(score, "sum", SCORE, config.rounds)] if config.evaluates else []

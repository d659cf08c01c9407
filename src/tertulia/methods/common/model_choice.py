"""A party's choice of the model for its own documents: its own, the shared one, or both (ours).

A federation serves everybody's documents. On a party's own, a model that it trained alone may be as good or better,
above all where parties differ. So each party trains alone, too, with as many sweeps as the federation took, and
compares on validation documents, which nobody trains on and nobody is scored on. All of it happens at the party and
stays there: the reply is empty. Every candidate has a prior over its topics that is fitted to the party's training
documents: what the party learned with its own topics and with those that it composes, and else by `Topics.adapt`.

The time that it takes must not reveal how many words are on the list. So the party does the same work for invented
words, as many as it has off the list: the time depends on lengths of documents, which are public.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.offsets import drop_empty, offsets_of
from tertulia.corpus.vocabulary import pack_words, unpack_words
from tertulia.federation import fields
from tertulia.federation.types import Federation, Nothing, Party, PartyId, message, step
from tertulia.methods.common.lda_settings import Training
from tertulia.methods.common.local_lda import Chain, LocalResult, in_clear, own_training, train_exactly
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.rounds import Trained
from tertulia.methods.common.settings import MethodSettings
from tertulia.metrics.perplexity import by_document
from tertulia.models import Topics

CANDIDATES = ("alone", "composed", "global", "mixture")
OWN = 0.25  # the share of the mixture's prior that the party's own topics get
SMOOTHING = 0.01  # every model is scored with this share of the uniform: a single party has never seen some words
KEPT = "best"


@message
class Offer:
    """A federation's offer to a party, and how the party is to train alone for comparison."""

    words: fields.Words
    training: Training  # its sweeps are those of a round in which parties train alone
    rounds: fields.Round  # of these
    more_sweeps: fields.SweepCount  # that everybody makes together
    shared: fields.TopicWord  # [K, V]
    alpha: fields.Prior  # [K] of the shared model
    composed: fields.OwnTopics | None  # [K_p, V]


class Choice(NamedTuple):
    """A party's kept models: the one to use, and its own."""

    best: Topics
    alone: Topics


@step(doing="choosing a model")
def choose(party: Party, state: Any, ask: Offer) -> tuple[Any, Nothing]:
    """Train alone, compare on validation documents, keep the choice."""
    vocabulary = Vocabulary(ask.words)
    if not (party.documents(vocabulary, "validation", unknown=True).lengths >= 2).any():  # nothing to choose by
        return state, Nothing()
    train, validation = party.documents(vocabulary), party.documents(vocabulary, "validation")
    terms = own_training(party, ask.training)
    kept = state.alpha if terms.learn_alpha and isinstance(state, Chain) else None
    models, scores = _compare(party, ask, terms, (train, validation), kept)
    _compare(party, ask, terms, (_rest(party, ask, train, "train"), _rest(party, ask, validation, "validation")), kept)
    if not scores:  # its validation documents have no words of the list
        return state, Nothing()
    chosen = clearly_best({name: likelihood for name, (likelihood, _) in scores.items()})
    text, offsets = pack_words(ask.words)
    chosen_and_own = {
        f"{name}.{part}": getattr(models[key], part)
        for name, key in (("best", chosen), ("alone", "alone"))
        for part in ("topic_word", "alpha")
    }
    perplexities = {name: np.exp(-ll.sum() / tokens.sum()) for name, (ll, tokens) in scores.items()}
    party.keep(
        KEPT, **chosen_and_own, text=text, offsets=offsets, beta=np.array(terms.beta),
        chosen=np.array(CANDIDATES.index(chosen)), documents=np.array((validation.lengths >= 2).sum()),
        perplexities=np.array([perplexities.get(name, np.nan) for name in CANDIDATES]),
    )  # fmt: skip
    return state, Nothing()


STEPS = KEEPING = (choose,)


def _compare(
    party: Party, ask: Offer, terms: Training, documents: tuple[Corpus, Corpus], kept: Array | None
) -> tuple[dict[str, Topics], dict[str, tuple[F64, I64]]]:
    """Train alone, and score all candidates, if there is anything to score on: log-likelihoods and tokens [D] each."""
    train, validation = documents
    own = train_exactly(party, train, None, terms.replace(sweeps=ask.rounds * terms.sweeps + ask.more_sweeps))
    models = _candidates(own, ask, terms, train, kept)
    if not (validation.lengths >= 2).any():
        return models, {}
    return models, {n: by_document(m.topic_word, m.alpha, validation, smoothing=SMOOTHING) for n, m in models.items()}


def _rest(party: Party, ask: Offer, known: Corpus, part: str) -> Corpus:
    """Draw documents of invented words, as many as the party's documents have off the list; each is about one topic.

    They are drawn from the shared topics, so that samplers take as long for them as for real ones.
    """
    lengths = party.documents(Vocabulary(ask.words), part, unknown=True).lengths - known.lengths
    random = np.random.default_rng(party.seed)
    below = np.cumsum(ask.shared, axis=1, dtype=np.float64)  # [K, V]
    topic = np.repeat(random.integers(len(below), size=len(lengths)), lengths)
    at, words = random.random(int(lengths.sum())) * below[topic, -1], np.zeros(int(lengths.sum()), np.int32)
    for k, row in enumerate(below):
        words[topic == k] = np.minimum(np.searchsorted(row, at[topic == k], side="right"), len(row) - 1)
    documents = offsets_of(lengths)
    ends = drop_empty(documents)
    return replace(known, words=words, documents=documents, sentences=ends, paragraphs=ends)


def _candidates(own: LocalResult, ask: Offer, terms: Training, train: Corpus, kept: Array | None) -> dict[str, Topics]:
    """Return all models over the same words, each with a prior for this party; `kept` is that of composed topics."""

    def topics(topic_word: Array, alpha: Array | None = None) -> Topics:
        prior = symmetric(terms.alpha, len(topic_word)) if alpha is None else alpha
        return Topics(topic_word, Vocabulary(ask.words), prior, terms.beta)

    own_topics, learns = own.topic_word.astype(np.float32), terms.learn_alpha
    alone = topics(own_topics, own.alpha) if learns else topics(own_topics).adapt(train)
    shared = topics(ask.shared, ask.alpha if learns else None).adapt(train)
    mixture = topics(
        np.concatenate([own_topics, ask.shared]), np.concatenate([OWN * alone.alpha, (1 - OWN) * shared.alpha])
    )
    composed = {}
    if ask.composed is not None:
        composed["composed"] = topics(ask.composed).adapt(train) if kept is None else topics(ask.composed, kept)
    return {"alone": alone, **composed, "global": shared, "mixture": mixture}


def clearly_best(likelihoods: dict[str, F64]) -> str:
    """Choose the candidate of largest likelihood, if it beats the party's own by more than a standard error.

    >>> clearly_best({"alone": np.array([-3.0, -5.0]), "global": np.array([-2.0, -5.5])})
    'alone'
    >>> clearly_best({"alone": np.array([-3.0, -5.0]), "global": np.array([-2.0, -4.5])})
    'global'
    """
    best = max(likelihoods, key=lambda name: likelihoods[name].sum())
    gains = likelihoods[best] - likelihoods["alone"]
    error = np.sqrt(len(gains)) * gains.std(ddof=1) if len(gains) > 1 else np.inf
    return best if gains.sum() > error else "alone"


def let_choose(fed: Federation, config: MethodSettings, result: Trained) -> None:
    """Let every party choose between what it could do alone and what the federation gives it."""
    words, shared = result.topics.vocabulary.words, result.topics.topic_word
    sweeps = config.sweeps_alone
    assert sweeps is not None  # else nobody chooses
    training = in_clear(config, sweeps.per_round)  # nothing of it leaves

    def offer(party: PartyId) -> Offer:
        composed = result.local[party].topic_word if party in result.local else None
        return Offer(words, training, sweeps.rounds, sweeps.more, shared, result.topics.alpha, composed)

    fed.each(choose, {party: offer(party) for party in fed.parties})


def read_choice(kept: dict[str, Array], provenance: dict[str, Any]) -> Choice:
    """Make models of what a party kept; their provenance says what was chosen, and by which scores."""
    vocabulary = Vocabulary(tuple(unpack_words(kept["text"], kept["offsets"])))
    chosen = CANDIDATES[int(kept["chosen"])]
    scores = {name: float(p) for name, p in zip(CANDIDATES, kept["perplexities"], strict=True) if np.isfinite(p)}
    why = {"validation_perplexity": scores, "validation_documents": int(kept["documents"])}

    def topics(name: str, says: str) -> Topics:
        return Topics(
            kept[f"{name}.topic_word"], vocabulary, kept[f"{name}.alpha"], float(kept["beta"]),
            provenance=provenance | {"chosen": says, **why},
        )  # fmt: skip

    return Choice(topics("best", chosen), topics("alone", "alone"))

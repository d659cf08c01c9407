"""EmbeddingTopics (ours): topics are clusters of document vectors, found by few sums over parties.

A public embedding gives each document a vector at its party (`models.vectors`). All that leaves are sums, over units
(documents, or users), of numbers of an L2 norm of at most 1:

1. **Words.** Sums of documents' sets of words and of their vectors, and the number of documents. The words that occur,
   clustered by their public vectors, give the first clusters; seed words give theirs. The mean vector is the centre
   from which all vectors are taken.
2. **Clusters.** In each round a unit adds its vector to the nearest cluster, whose sum gives its next centroid
   (spherical k-means).
3. **Topics.** One table has the documents of each cluster by word. The words of a topic are those beyond the noise,
   by their excess over what the topic's size makes expected. A cluster without enough of them is dead: it is no topic.

With an epsilon, Gaussian noise of a fixed deviation is on every sum (add or remove a unit; `budget` has the parts).
Under secure sums the parties share it. Without an epsilon the sums are exact, and there are more rounds; under secure
sums a party then adds nothing to a cluster in which it has fewer than five documents, nor to a word of fewer. Questions
hold totals alone, with tags by which members know them (`Party.check_sum`): a server cannot make up clusters.
"""

from __future__ import annotations

import math
import warnings
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import numpy as np

from tertulia._arrays import F32, F64, I64, Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.methods.common.noisy_counts import louder
from tertulia.methods.common.periods import places_of
from tertulia.methods.common.rounds import Metrics, TopicsSoFar, Trained, run_until
from tertulia.methods.common.seeds import find_unknown, warn_of_unknown
from tertulia.methods.common.units import units_of
from tertulia.methods.common.vocabulary import WORD_STEPS, agree, plan_vocabulary
from tertulia.methods.embedding_topics import clusters
from tertulia.methods.embedding_topics.budget import (
    BITS,
    CENTRE,
    NUMBER,
    PERIODS,
    SIZES,
    SUMS,
    TABLE,
    WORDS,
    Terms,
    check_verdict,
    mechanism_of,
    verdict_on_corpora_or_none,
    verdict_or_none,
)
from tertulia.methods.embedding_topics.clusters import Encoded
from tertulia.methods.embedding_topics.results import Outcome, topics_of
from tertulia.methods.embedding_topics.settings import EmbeddingTopicsSettings
from tertulia.methods.embedding_topics.start import centre_of, first_centroids, weights_above
from tertulia.models.vectors.documents import fingerprint_or_none, seconds_to_encode, vectors_of

OfWords = Annotated[Array, fields.Numbers(("V",), "iu", ring=64)]
OfVectors = Annotated[Array, fields.Numbers(("width",), "iu", ring=64)]
OfClusters = Annotated[Array, fields.Numbers(("K", "width"), "iu", ring=64)]
OfTopics = Annotated[Array, fields.Numbers(("K", "V"), "iu", ring=64)]
OfPeriods = Annotated[Array, fields.Numbers(("K", "*"), "iu", ring=64)]
OfNumber = Annotated[Array, fields.Numbers(("1",), "iu", ring=64)]
OfSizes = Annotated[Array, fields.Numbers(("K",), "iu", ring=64)]
Louder = Annotated[float, fields.Between(1.0, 1e6)]  # noise of a total, beside that of the plan
_LONG = 60.0  # seconds of embedding of which the party's staff should know
SEEN, GATHERED = "words", "clusters"  # the names of tags


@message
class Describe:
    """The question for words and the centre."""

    words: fields.Words
    terms: Terms


@message
class Seen:
    """Weights of words, the sum of vectors, and the number of documents, in steps of 2^-14."""

    words: OfWords
    vectors: OfVectors
    documents: OfNumber
    tag: fields.SumTag


@message
class Sums:
    """Sums of vectors by cluster, in steps of 2^-14."""

    sums: OfClusters
    tag: fields.SumTag


@message
class Gather:
    """The question of a round. It holds totals alone, so that a server has no centroids to choose."""

    words: fields.Words
    round: fields.Round
    terms: Terms
    seen: Seen
    louder: Louder
    last: Sums | None  # None in the first round


@message
class Tabulate:
    """The question for the words of clusters."""

    words: fields.Words
    terms: Terms
    seen: Seen
    louder: Louder
    last: Sums


@message
class Table:
    """Weights of words by topic and documents by topic, in steps of 2^-14."""

    counts: OfTopics
    sizes: OfSizes


@message
class Dated:
    """Documents by topic and period, in steps of 2^-14."""

    counts: OfPeriods


@message
class Moving:
    """The server's state."""

    round: int
    words: tuple[str, ...]
    seen: Seen
    louder: float
    last: Sums | None


# --- party ------------------------------------------------------------------------------------------------------------


@step(doing="counting words", one_list=True)
def describe(party: Party, state: Any, ask: Describe) -> tuple[Any, Seen]:
    """Sum documents' sets of words and their vectors, and count documents."""
    found = _encoded(party, ask.words, ask.terms)
    if ask.terms.epsilon is None and len(found.units) < (least := party.min_documents_per_topic):
        raise InputError(
            f"party '{party.id}' has {len(found.units)} documents, and with secure sums and no noise nothing of fewer "
            f"than {least} leaves: give it more, or leave it out"
        )
    words = _kept_words(party, found, clusters.sum_of_words(found, BITS), ask.terms)
    released = (
        _release(party, words, WORDS, ask.terms),
        _release(party, clusters.sum_of_vectors(found, BITS), CENTRE, ask.terms),
        _release(party, np.array([found.n_units << BITS]), NUMBER, ask.terms),
    )
    return state, Seen(*released, party.sum_tag(SEEN, *released))


@step(doing="moving clusters", one_list=True)
def gather(party: Party, state: Any, ask: Gather) -> tuple[Any, Sums]:
    """Add each document to the nearest cluster."""
    found = _encoded(party, ask.words, ask.terms)
    vectors, labels = _placed(party, found, ask)
    sums = clusters.sums_by_cluster(found, vectors, labels, ask.terms.topics, BITS)
    released = _release(party, sums, SUMS, ask.terms)
    return state, Sums(released, party.sum_tag(GATHERED, released))


@step(doing="counting words by topic", one_list=True)
def tabulate(party: Party, state: Any, ask: Tabulate) -> tuple[Any, Table]:
    """Count the words and the documents of each cluster."""
    found = _encoded(party, ask.words, ask.terms)
    _, labels = _placed(party, found, ask)
    K = ask.terms.topics
    counts = _kept_words(party, found, clusters.words_by_cluster(found, labels, K, BITS), ask.terms)
    sizes = clusters.sizes_of(found, labels, K, BITS)
    return state, Table(
        _release(party, counts, TABLE, ask.terms),
        _release(party, sizes, SIZES, ask.terms),
    )


@step(doing="counting documents by topic and period", one_list=True)
def date(party: Party, state: Any, ask: Tabulate) -> tuple[Any, Dated]:
    """Count the documents of each cluster in each period."""
    periods, K = ask.terms.periods, ask.terms.topics
    if periods is None:
        raise FormatError("the plan has no periods")
    found = _encoded(party, ask.words, ask.terms)
    _, labels = _placed(party, found, ask)
    counts = clusters.periods_by_cluster(found, labels, K, periods.count, BITS)
    least = max(party.min_documents_per_cell, party.min_documents_per_topic)
    if ask.terms.epsilon is None and least > 1:
        counts[counts < least << BITS] = 0
    return state, Dated(_release(party, counts, PERIODS, ask.terms))


STEPS = (*WORD_STEPS, describe, gather, tabulate, date)
_ENCODED: WeakKeyDictionary[Corpus, dict[tuple[Any, ...], Encoded]] = WeakKeyDictionary()


def _encoded(party: Party, words: tuple[str, ...], terms: Terms) -> Encoded:
    """Encode the party's documents, once for as long as their corpus exists."""
    corpus, embedding = party.documents(Vocabulary.of(words)), party.setting("embedding", terms.embedding)
    known = _ENCODED.setdefault(corpus, {})
    key = terms.unit, embedding, terms.by, terms.since, terms.until
    if key not in known:
        own = fingerprint_or_none(embedding)
        if "embedding" not in corpus.table.columns and terms.fingerprint != own:
            raise InputError(
                f"party '{party.id}' has another embedding than the plan ('{embedding}', {own}; the plan has "
                f"{terms.fingerprint}): install the same model, the same file, or the same version of the package"
            )
        ordered, starts = units_of(party, corpus, terms.unit)
        if (seconds := seconds_to_encode(ordered, embedding)) > _LONG:
            party.notice(
                f"embedding {ordered.n_documents} texts takes about {seconds / 60:.0f} minutes of one core; texts that "
                "were embedded before are in the cache"
            )
        periods = None if terms.periods is None else places_of(party.id, ordered, terms.periods)
        known[key] = clusters.encoded(ordered, starts, vectors_of(ordered, embedding), periods)
    return known[key]


def _placed(party: Party, found: Encoded, ask: Gather | Tabulate) -> tuple[F32, I64]:
    """Return the documents' directions from the centre, and their clusters; refuse totals that are not true."""
    terms, seen, last = ask.terms, ask.seen, ask.last
    party.check_sum(SEEN, seen.tag, seen.words, seen.vectors, seen.documents)
    if last is not None:
        party.check_sum(GATHERED, last.tag, last.sums)
    width = found.vectors.shape[1]
    if seen.vectors.shape != (width,) or (last is not None and last.sums.shape != (terms.topics, width)):
        raise FormatError(
            f"party '{party.id}' has vectors of {width} numbers, and those of all parties together have "
            f"{len(seen.vectors)}: use the same embedding"
        )
    centre, counts = centre_of(seen.vectors, seen.documents), weights_above(seen.words, terms, ask.louder)
    first = first_centroids(ask.words, counts, terms, width, party.setting("embedding", terms.embedding))
    centroids = first if last is None else clusters.centroids_of(last.sums, first, len(terms.seeds))
    vectors = clusters.around(found.vectors, centre)
    labels = clusters.nearest(vectors, centroids)
    least = party.min_documents_per_topic
    if terms.epsilon is None and least > 1:
        labels[np.isin(labels, np.flatnonzero(np.bincount(labels[labels >= 0], minlength=terms.topics) < least))] = -1
    return vectors, labels


def _kept_words(party: Party, found: Encoded, counts: I64, terms: Terms) -> I64:
    """Return counts of words [..., V] without those in fewer documents than may be shown; noise hides them anyway."""
    least = max(party.min_documents_per_word, party.min_documents_per_topic)
    if terms.epsilon is not None or least <= 1:
        return counts
    documents = np.bincount(found.words.indices, minlength=counts.shape[-1])
    return np.where(documents >= least, counts, 0)


def _release(party: Party, x: Array, what: str, terms: Terms) -> Array:
    own = party.setting("epsilon", None)
    if own is not None and terms.epsilon is not None:
        terms = terms.replace(epsilon=min(own, terms.epsilon))
    return party.release(x, mechanism_of(what, terms, shares=party.noise_shares))


# --- server -----------------------------------------------------------------------------------------------------------


def train(fed: Federation, config: EmbeddingTopicsSettings, state: Moving | None = None) -> Trained:
    """Ask for words, move clusters for some rounds, and ask for the words of each."""
    terms = config.part(Terms)
    if state is None:
        if config.declared_documents is not None:
            expected = math.sqrt(len(fed.parties) / fed.noise_shares)
            check_verdict(verdict_on_corpora_or_none(config, (), expected), left="nothing was spent")
        words = agree(fed, config.vocabulary).words
        warn_of_unknown(find_unknown(config, words))
        seen = fed.sum(describe, Describe(words, terms))
        _check_documents(config, seen, louder(fed))
        state = fed.commit(Moving(0, words, seen, louder(fed), None))

    def one_round(state: Moving) -> tuple[Moving, Metrics]:
        ask = Gather(state.words, state.round, terms, state.seen, state.louder, state.last)
        last = fed.sum(gather, ask)
        length = float(np.linalg.norm(np.ldexp(last.sums.astype(np.float64), -BITS), axis=1).sum())
        similarity = length / max(float(state.seen.documents[0]) / 2**BITS, 1.0)
        return Moving(state.round + 1, state.words, state.seen, state.louder, last), {"similarity": similarity}

    state = run_until(fed, lambda state: state.round >= terms.moves, state, one_round)
    assert state.last is not None
    ask = Tabulate(state.words, terms, state.seen, state.louder, state.last)
    table = fed.sum(tabulate, ask)
    louder_ = louder(fed)
    dated = None if terms.by is None else np.ldexp(fed.sum(date, ask).counts.astype(np.float64), -BITS)
    centre = centre_of(state.seen.vectors, state.seen.documents)
    found = Outcome(
        state.words, centre, _centroids(state, terms), state.last.sums, table.counts, table.sizes,
        np.ldexp(state.seen.words.astype(np.float64), -BITS), louder_, dated,
    )  # fmt: skip
    return Trained(topics_of(found, config), {})


def _centroids(state: Moving, terms: Terms) -> F64:
    """Return the centroids by which documents were counted: those of seeds need the embedding at the server, too."""
    assert state.last is not None
    first, seeded = clusters.unit_rows(state.last.sums), len(terms.seeds)
    if seeded:
        try:
            counts = weights_above(state.seen.words, terms, state.louder)
            first = first_centroids(state.words, counts, terms, first.shape[1], terms.embedding)
        except InputError as error:
            warnings.warn(f"new documents find seeded topics by their documents alone: {error}", stacklevel=2)
            seeded = 0
    return clusters.centroids_of(state.last.sums, first, seeded)


def _check_documents(config: EmbeddingTopicsSettings, seen: Seen, louder_: float) -> None:
    """Stop where no topic can be live, and where there are fewer documents than topics."""
    documents = float(seen.documents[0]) / 2**BITS
    check_verdict(verdict_or_none(config, max(documents, 0.0), louder=louder_), left="88 % of the budget is not spent")
    if not seen.vectors.any() or documents < 1:
        raise InputError(
            "no document has a vector: check the language, the word list and the column of texts, or choose another "
            "embedding"
        )
    if config.epsilon is None and documents < config.topics:
        raise InputError(
            f"topics = {config.topics}, and there are {documents:.0f} documents with a word of the list: ask for fewer "
            "topics, or give more documents"
        )


def plan(config: EmbeddingTopicsSettings) -> list[Planned]:
    """List everything that will leave a party, for `tertulia check`."""
    terms = config.part(Terms)
    first = [Planned(describe, "sum", mechanism_of(what, terms), 1) for what in (WORDS, CENTRE, NUMBER)]
    sums = Planned(gather, "sum", mechanism_of(SUMS, terms), terms.moves)
    last = [Planned(tabulate, "sum", mechanism_of(what, terms), 1) for what in (TABLE, SIZES)]
    dated = [] if terms.by is None else [Planned(date, "sum", mechanism_of(PERIODS, terms), 1)]
    return [*plan_vocabulary(config.vocabulary), *first, sums, *last, *dated]


def topics_so_far(config: EmbeddingTopicsSettings, state: Moving) -> TopicsSoFar:
    """Return nothing but the words that occur: topics have words in the last step alone."""
    counts = np.maximum(state.seen.words.astype(np.float64), 0.0)[None, :] + 1e-9
    return TopicsSoFar(state.words, counts / counts.sum())

"""PrivateTopics (ours): topics from a few noisy sums over documents, private for whole documents or users.

Noise for words hides words: a note of 120 words at epsilon 8 of a word costs 687. Here the unit is a document, or all
documents of a user at a party. What a unit adds to a sum is computed from the unit alone and clipped in the L2 norm, so
Gaussian noise of a fixed deviation hides it (differential privacy; add or remove one unit). There are few sums:

1. **Words and lengths.** Sums of documents' unit vectors of word counts, and a histogram of their lengths. The median
   length gives the clip norm, both give a verdict on what can be learned (`budget`).
2. **Co-occurrence** of the most frequent words: the sum of x x^T over documents. Its eigenvalues above those of the
   noise tell how many topics there are; anchor words among the rows give the first topics (`kernels.lda.cooccurrence`).
3. **EM**: a few rounds of clipped expected counts. The server averages the noisy sums over the rounds, and shrinks what
   is not larger than its noise towards the words' overall frequencies.

Under secure sums the parties share the noise (`SharedGaussian`): each adds a part, and their total has all of it.
Without, each adds all of it, so the total has more noise the more parties there are.
"""

from __future__ import annotations

import math
import warnings
from typing import Annotated, Any

import numpy as np

from tertulia._arrays import F64, I64, Array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import FormatError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Party, Planned, message, step
from tertulia.kernels.core.checks import check_alpha
from tertulia.kernels.lda import clipped, cooccurrence
from tertulia.methods.common.noisy_counts import denoise, louder
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.rounds import Metrics, TopicsSoFar, Trained, run_rounds
from tertulia.methods.common.units import units_of
from tertulia.methods.common.vocabulary import WORD_STEPS, agree, plan_vocabulary
from tertulia.methods.private_topics.budget import (
    BITS,
    COUNTS,
    LENGTHS,
    PAIRS,
    WORDS,
    Noise,
    check_verdict,
    deviation,
    mechanism_of,
    verdict_on_corpora_or_none,
    verdict_or_none,
)
from tertulia.methods.private_topics.settings import MOST_PAIRED_WORDS, PrivateTopicsSettings
from tertulia.models import Topics

BINS = 32  # of lengths: half octaves, 1 to 46,000 words
_CLIP = 0.5  # of the root of the median length, which is about the norm of a document's expected counts
_START = 0.05  # of a first topic's mass that is every word's overall frequency

OfWords = Annotated[Array, fields.Numbers(("V",), "iu", ring=64)]
OfLengths = Annotated[Array, fields.Numbers((str(BINS),), "iu", ring=64)]
OfPairs = Annotated[Array, fields.Numbers(("*",), "iu")]
OfTopics = Annotated[Array, fields.Numbers(("K", "V"), "iu")]
Chosen = Annotated[Array, fields.Numbers(("words",), "iu", 0, fields.MOST_COUNT)]
Norm = Annotated[float, fields.Between(1e-3, 1e6)]


@message
class Describe:
    """The question for words and lengths."""

    words: fields.Words
    noise: Noise


@message
class Described:
    """Weights of words, and numbers of documents by length, in steps of 2^-14."""

    words: OfWords
    lengths: OfLengths


@message
class Pair:
    """The question for co-occurrence."""

    words: fields.Words
    chosen: Chosen  # [n] places on the list
    noise: Noise

    def check(self) -> None:
        """Raise unless these are places on the list, in increasing order, and not too many."""
        places = self.chosen
        if len(places) > MOST_PAIRED_WORDS or np.any(np.diff(places.astype(np.int64)) <= 0):
            raise FormatError(f"'chosen' must be at most {MOST_PAIRED_WORDS} places on the list, in increasing order")
        if len(places) and places[-1] >= len(self.words):
            raise FormatError("'chosen' must be places on the word list")


@message
class Pairs:
    """The strict upper triangle of a sum of x x^T, row by row, in steps of 2^-14."""

    products: OfPairs

    def check_reply(self, ask: Pair) -> None:
        """Raise unless there is a number for each pair."""
        n = len(ask.chosen)
        if len(self.products) != n * (n - 1) // 2:
            raise FormatError("a reply has another number of pairs than was asked for")


@message
class Expect:
    """The question of a round of EM."""

    words: fields.Words
    round: fields.Round
    topic_word: fields.TopicWord  # [K, V]
    alpha: fields.Prior  # [K]
    clip: Norm
    noise: Noise


@message
class Expected:
    """Clipped expected counts, in steps of 2^-14."""

    counts: OfTopics


@message
class FirstTopics:
    """The server's state before EM."""

    words: tuple[str, ...]
    weights: Array  # [V] of words, with noise
    topic_word: Array  # [K, V]
    clip: float


@message
class EMState:
    """The server's state."""

    round: int
    words: tuple[str, ...]
    topic_word: Array  # [K, V]
    counts: Array  # [K, V] the mean of the noisy sums so far
    clip: float

    @property
    def sizes(self) -> F64:
        """Each topic's expected tokens [K]."""
        return np.asarray(np.maximum(self.counts.sum(axis=1), 0.0))


# --- party ------------------------------------------------------------------------------------------------------------


@step(doing="counting words and lengths")
def describe(party: Party, state: Any, ask: Describe) -> tuple[Any, Described]:
    """Sum unit vectors of word counts, and count documents by length."""
    corpus, groups = _units(party, ask.words, ask.noise)
    words = clipped.clipped_words(corpus.words, corpus.documents, groups, len(ask.words), BITS)
    lengths = np.bincount(bins_of(np.diff(corpus.documents[groups])), minlength=BINS) << BITS
    return state, Described(_release(party, words, WORDS, ask.noise), _release(party, lengths, LENGTHS, ask.noise))


@step(doing="summing co-occurrence")
def pair(party: Party, state: Any, ask: Pair) -> tuple[Any, Pairs]:
    """Sum products of two words' weights in a document."""
    corpus, groups = _units(party, ask.words, ask.noise)
    chosen = ask.chosen.astype(np.int64)
    products = clipped.clipped_pairs(corpus.words, corpus.documents, groups, chosen, len(ask.words), BITS)
    return state, Pairs(_release(party, products, PAIRS, ask.noise))


@step(doing="counting by topic")
def expect(party: Party, state: Any, ask: Expect) -> tuple[Any, Expected]:
    """Do the E-step, and sum clipped expected counts."""
    corpus, groups = _units(party, ask.words, ask.noise)
    alpha = check_alpha(ask.alpha, len(ask.topic_word))
    counts = clipped.clipped_counts(
        corpus.words, corpus.documents, groups, ask.topic_word, alpha, ask.clip, BITS, party.setting("threads", 1)
    )
    return state, Expected(_release(party, counts, COUNTS, ask.noise, clip=ask.clip))


def _release(party: Party, x: Array, what: str, noise: Noise, *, clip: float = 1.0) -> Array:
    own = party.setting("epsilon", None)
    if own is not None and noise.mode == "doc":
        noise = noise.replace(epsilon=min(own, noise.epsilon or own))
    return party.release(x, mechanism_of(what, noise, clip=clip, shares=party.noise_shares))


def _units(party: Party, words: tuple[str, ...], noise: Noise) -> tuple[Corpus, I64]:
    """Return the documents, those of one unit together, and the units' offsets."""
    return units_of(party, party.documents(Vocabulary.of(words)), noise.unit)


def bins_of(lengths: Array) -> I64:
    """Return the bin of each length: half octaves.

    >>> bins_of(np.array([0, 1, 2, 3, 100, 10**9])).tolist()
    [0, 0, 2, 3, 13, 31]
    """
    return np.minimum(np.floor(2.0 * np.log2(np.maximum(lengths, 1))), BINS - 1).astype(np.int64)


STEPS = (*WORD_STEPS, describe, pair, expect)


# --- server -----------------------------------------------------------------------------------------------------------


def train(fed: Federation, config: PrivateTopicsSettings, state: FirstTopics | EMState | None = None) -> Trained:
    """Find first topics from co-occurrence, then do a few rounds of EM."""
    if state is None:
        if config.adapt and config.declared_documents is not None:
            louder_ = math.sqrt(len(fed.parties) / fed.noise_shares)
            check_verdict(verdict_on_corpora_or_none(config, (), louder_), left="nothing was spent")
        state = fed.commit(_find_first(fed, config, agree(fed, config.vocabulary).words))
    if isinstance(state, FirstTopics):
        state = EMState(0, state.words, state.topic_word, np.zeros(state.topic_word.shape), state.clip)

    def one_round(state: EMState) -> tuple[EMState, Metrics]:
        return _one_round(fed, config, state), {}

    state = run_rounds(fed, config, state, one_round)
    alpha = symmetric(config.alpha, len(state.topic_word))
    return Trained(Topics(state.topic_word, Vocabulary(state.words), alpha, weights=state.sizes), {})


def _find_first(fed: Federation, config: PrivateTopicsSettings, words: tuple[str, ...]) -> FirstTopics:
    """Ask for words, lengths and co-occurrence, and find as many topics as show above the noise."""
    noise = config.part(Noise)
    seen = fed.sum(describe, Describe(words, noise))
    weights, lengths = np.ldexp(seen.words, -BITS), np.ldexp(seen.lengths, -BITS)
    documents, median = max(float(lengths.sum()), 1.0), config.words_per_document or median_length(lengths)
    if config.adapt:
        found = verdict_or_none(config, documents, median, louder(fed))
        check_verdict(found, left="95 % of the budget is not spent")
    order = np.argsort(-weights, kind="stable")[: config.paired_words]
    if noise.mode == "clear":
        order = order[weights[order] > 0]
    if len(order) < 2:
        raise InputError("no two words of the list occur: check the word list and the language")
    chosen = np.sort(order)
    products = fed.sum(pair, Pair(words, chosen.astype(np.int32), noise)).products
    pairs, spread = np.ldexp(products, -BITS), deviation(PAIRS, noise) * louder(fed)
    shown = _spectrum(config, pairs, chosen, order, spread)
    first = cooccurrence.topics_of(shown.spectrum, shown.topics, weights[shown.words], documents)
    topic_word = _spread(first, shown.words, np.maximum(weights, 1e-3))
    return FirstTopics(words, weights, topic_word, _CLIP * math.sqrt(median))


def _spectrum(
    config: PrivateTopicsSettings, pairs: Array, chosen: I64, order: I64, spread: float
) -> cooccurrence.Found:
    """Choose the list of words on which most topics show, and that number of topics."""
    found = cooccurrence.best_list(pairs, chosen, order, config.topics, spread)
    if not config.adapt or spread == 0.0:
        return found._replace(topics=min(config.topics, len(found.words)))
    if found.topics < 2:
        raise InputError(
            f"no topic shows above the noise at epsilon {config.epsilon:g} (largest eigenvalues "
            f"{', '.join(f'{value:.0f}' for value in found.spectrum.values[:3])}; the noise has "
            f"{cooccurrence.edge(spread, len(found.words)):.0f}): the run stops, and 35 % of the budget is not spent. "
            "Give more documents, or a larger epsilon"
        )
    if found.topics < config.topics:
        warnings.warn(
            f"{found.topics} topics show above the noise at epsilon {config.epsilon:g}, fewer than the {config.topics} "
            "asked for; no more are learned (adapt = false: all)",
            stacklevel=2,
        )
    return found


def _spread(first: F64, places: I64, weights: Array) -> F64:
    """Return topics over all words [K, V]: words that are in no pair belong to all topics alike."""
    overall = weights / weights.sum()
    topics = np.zeros((len(first), len(overall)))
    topics[:, places] = first / np.maximum(first.sum(axis=1, keepdims=True), 1e-12) * (1.0 - _START)
    topics += (1.0 - topics.sum(axis=1, keepdims=True)) * overall
    return topics


def _one_round(fed: Federation, config: PrivateTopicsSettings, state: EMState) -> EMState:
    noise, alpha = config.part(Noise), symmetric(config.alpha, len(state.topic_word))
    ask = Expect(state.words, state.round, state.topic_word, alpha, state.clip, noise)
    total = np.ldexp(fed.sum(expect, ask).counts, -BITS)
    counts = (state.counts * state.round + total) / (state.round + 1)
    spread = deviation(COUNTS, noise, state.clip) * louder(fed)
    topic_word = denoise(counts, spread / math.sqrt(state.round + 1))
    return EMState(state.round + 1, state.words, topic_word, counts, state.clip)


def median_length(lengths: F64) -> float:
    """Return the median of a noisy histogram of lengths.

    >>> median_length(np.array([0.0, 1.0, 0.0, 40.0, 2.0] + [0.0] * 27)).__round__(1)
    3.4
    """
    known = np.maximum(lengths, 0.0)
    if not known.any():
        return 1.0
    place = int(np.searchsorted(np.cumsum(known), known.sum() / 2.0))
    return float(2.0 ** ((place + 0.5) / 2.0))


def plan(config: PrivateTopicsSettings) -> list[Planned]:
    """List everything that will leave a party, for `tertulia check`."""
    noise = config.part(Noise)
    first = [Planned(describe, "sum", mechanism_of(what, noise), 1) for what in (WORDS, LENGTHS)]
    pairs = Planned(pair, "sum", mechanism_of(PAIRS, noise), 1)
    counts = Planned(expect, "sum", mechanism_of(COUNTS, noise), config.rounds)
    return [*plan_vocabulary(config.vocabulary), *first, pairs, counts]


def topics_so_far(config: PrivateTopicsSettings, state: FirstTopics | EMState) -> TopicsSoFar:
    """Return the topics of the last round."""
    sizes = state.sizes if isinstance(state, EMState) and state.round else None
    return TopicsSoFar(state.words, state.topic_word, sizes)

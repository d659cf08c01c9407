"""PC-TD: Federated Topic Discovery, A Semantic Consistent Approach (Shi et al., IEEE Intelligent Systems, 2020).

Documents consist of semantic units (n-grams, sentences, paragraphs), each with one topic. In every iteration of EM a
party computes its units' topics from noisy word counts (5), and its documents' topic shares (7), which it does not
send. The server adds up the expected counts (10), normalises them (11), and raises the probabilities of related words
together (13). Equation numbers are the paper's. All parties begin with the same topics. In the paper each party draws
its own, but counts of different topics cannot be added up. A party sends the difference between its expected counts and
its counts at the server, so the contribution of an absent party stays. Counts lie on a grid, so that differences add up
without rounding.

Noise is added to the counts before anything is computed from them. So there is a real guarantee for tokens, but it is
far weaker than the claimed one: see `mechanisms.gaussian`. The noise is drawn by an exact shortcut
(`kernels.pctd.unit_noise`). Equation (4) can also be read as noise only on the words that a unit contains. That
guarantees nothing, but agrees with the paper's figures.

Mode `sound` is ours: no noise on units, but on the sum over documents, each of which is clipped (`clipped`). The server
averages the noisy sums over the rounds, with weights 1, 2, 3 ... (Lacoste-Julien, Schmidt, Bach 2012): the first ones
are about topics at random.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np

from tertulia._arrays import F64, Array, digest_of
from tertulia.corpus import Corpus, Vocabulary
from tertulia.corpus.word_vectors import Relations, read_relations, read_vectors, similarities
from tertulia.errors import ConfigError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Nothing, Party, Place, Planned, message, step
from tertulia.kernels.pctd import em, unit_noise
from tertulia.kernels.pctd.clipped import clipped_statistics
from tertulia.kernels.pctd.normals import normals
from tertulia.methods.common.contributions import counted_or_none
from tertulia.methods.common.earlier_model import pseudo_counts, smooth
from tertulia.methods.common.evaluation import Evaluation, plan_evaluation, score
from tertulia.methods.common.noisy_counts import denoise, louder
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.rounds import Metrics, TopicsSoFar, Trained, run_rounds
from tertulia.methods.common.vocabulary import WORD_STEPS, agree, plan_vocabulary
from tertulia.methods.pctd.clipped import BITS, clip_of, deviation, mechanism_of
from tertulia.methods.pctd.settings import PCTDSettings, SumNoise, UnitNoise, UnitSettings
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.privacy.mechanisms.things import thing
from tertulia.privacy.mechanisms.unit_counts import HELD, NoisyUnits, other_levels, pctd_claim
from tertulia.privacy.noise import NoiseStream

STATISTICS = thing("expected topic-word counts", "words by topic (expected counts)")
NOISE = "noisy counts of words in units"
SIGMA = 0.25  # the paper's
OWN_DELTA = 1e-6  # delta of a party's own epsilon, unless the party sets another
PASSES = 10  # over each document's units in a round of mode `sound`
GRID_BITS, FINE_BITS = 20, 40  # releases are multiples of 2^-20 with noise, of 2^-40 in clear
NO_SHARES = "topics must hold p(w|z): every number above 0, and each row with a sum of 1"
_NEAR = 1e-6


@message
class UnitTask:
    """The question of a round to all parties."""

    words: fields.Words
    units: UnitSettings
    noise: UnitNoise | None
    topic_word: fields.TopicWord  # [K, V] p(w|z)


@message
class Statistics:
    """One party's new expected counts minus its counts at the server, which learns only the parties' sum."""

    counts: fields.RealCounts  # [K, V] M_t(w, z)


@message
class ClippedTask:
    """The question of a round to all parties, in mode `sound`."""

    words: fields.Words
    units: UnitSettings
    noise: SumNoise
    topic_word: fields.TopicWord  # [K, V] p(w|z)


@message
class ClippedCounts:
    """One party's expected counts of clipped documents, with noise, in steps of 2^-14; only the total is revealed."""

    counts: Annotated[Array, fields.Numbers(("K", "V"), "iu")]


@message
class OwnShares:
    """A party's state in mode `sound`: p(z|d)."""

    theta: Array  # [D, K]


@message
class Expectation:
    """The statistic that a party contributed."""

    place: Place  # the place of the question
    counts: Array  # [K, V]


@message
class Shares:
    """A party's state: p(z|d), and its contributions."""

    theta: Array  # [D, K]
    latest: Expectation
    counted: Expectation | None  # this party's part of the server's sum when it sent its latest


@message
class PCTDState:
    """The server's state."""

    round: int
    words: tuple[str, ...]
    topic_word: Array  # [K, V]
    weights: Array  # [K] expected tokens of each topic
    statistic: Array  # [K, V] the parties' sum of M(w, z); in mode `sound` the mean of the noisy ones so far


class Expected(NamedTuple):
    """The results of an E-step, and the mechanism that releases the statistic."""

    r: F64  # [S, K]
    statistic: F64  # [V, K]
    mechanism: Mechanism


@step(doing="counting", replies="changes")
def expect(party: Party, state: Shares | None, ask: UnitTask) -> tuple[Shares, Statistics]:
    """Compute responsibilities, the documents' own shares, and the statistic to push (Algorithm 1, lines 5-10)."""
    check_shares(ask.topic_word)
    corpus = party.documents(Vocabulary.of(ask.words), unknown=ask.noise is not None)
    K, V = ask.topic_word.shape
    bounds = corpus.units(ask.units.unit, ask.units.unit_words)
    found = em.semantic_units(corpus.words, corpus.documents, bounds, len(corpus.vocabulary))
    theta = np.full((corpus.n_documents, K), 1.0 / K) if state is None else state.theta
    held = counted_or_none(party, state)
    log_phi = np.log(ask.topic_word.T)
    if ask.noise is None:
        r, _ = em.responsibilities(found, log_phi, theta, party.setting("threads", 1))  # (3)
        expected = Expected(r, on_grid(em.statistics(found, r, V), FINE_BITS), Clear(STATISTICS))
    else:
        expected = _under_noise(party, corpus, found, log_phi, theta, ask.noise)
    theta = em.shares(found, expected.r)  # (7)
    counts = np.ascontiguousarray(expected.statistic.T)
    shares = Shares(theta, Expectation(party.place, counts), held)
    change = counts if held is None else counts - held.counts
    return shares, Statistics(party.release(change, expected.mechanism))


def _under_noise(
    party: Party, corpus: Corpus, found: em.SemanticUnits, log_phi: F64, theta: Array, noise: UnitNoise
) -> Expected:
    """Compute (4), (5) and (10) with noise that is derived from the party's key and from this question.

    A word outside the vocabulary keeps its position in its unit. It has the same likelihood in all topics, and its
    counts are not sent.
    """
    question = digest_of(log_phi, theta, found.bounds)  # two questions never share noise
    charge = _charge(noise, party.setting("epsilon", None), question, party.setting("delta", OWN_DELTA))
    randomness = party.randomise(corpus, charge, (*found, np.array(len(log_phi))))
    found = em.SemanticUnits(*randomness.drawn_from[:3])
    normal = partial(normals, NoiseStream(randomness.key).words)
    draw = unit_noise.on_held_words if noise.paper.noise_on == "held" else unit_noise.on_all_words
    with_unknown = np.concatenate((log_phi, np.zeros((1, log_phi.shape[1]))))
    r, statistic = draw(found, with_unknown, theta, charge.sigma, normal)
    return Expected(r, on_grid(statistic[:-1]), Derived(STATISTICS, parents=randomness.parents))


@step(doing="counting")
def expect_clipped(party: Party, state: OwnShares | None, ask: ClippedTask) -> tuple[OwnShares, ClippedCounts]:
    """Compute responsibilities and shares without noise, and send a noisy sum in which each document is clipped.

    Rounds cost epsilon, and passes over a document's own units do not, so there are several in a round.
    """
    check_shares(ask.topic_word)
    corpus = party.documents(Vocabulary.of(ask.words))
    K, V = ask.topic_word.shape
    bounds = corpus.units(ask.units.unit, ask.units.unit_words)
    found = em.semantic_units(corpus.words, corpus.documents, bounds, len(corpus.vocabulary))
    theta = np.full((corpus.n_documents, K), 1.0 / K) if state is None else state.theta
    log_phi = np.log(ask.topic_word.T)
    for _ in range(PASSES):
        r, _ = em.responsibilities(found, log_phi, theta, party.setting("threads", 1))  # (3)
        theta = em.shares(found, r)  # (7)
    counts = np.ascontiguousarray(clipped_statistics(found, r, V, clip_of(ask.noise), BITS).T)
    mechanism = mechanism_of(STATISTICS, ask.noise, _own_noise(party, ask.noise), party.noise_shares)
    return OwnShares(theta), ClippedCounts(party.release(counts, mechanism))


def _own_noise(party: Party, noise: SumNoise) -> SumNoise | None:
    """Return the noise that a party's own epsilon and delta ask for, if it has an epsilon."""
    own: float | None = party.setting("epsilon", None)
    delta = min(noise.delta, party.setting("delta", OWN_DELTA))
    return None if own is None else noise.replace(epsilon=own, delta=delta)


def check_shares(topic_word: Array) -> None:
    """Raise `InputError` unless each row holds positive probabilities with a sum of 1."""
    phi = np.asarray(topic_word)
    if phi.ndim != 2 or not np.all(phi > 0) or not np.all(np.abs(phi.sum(axis=1) - 1) < _NEAR):
        raise InputError(NO_SHARES)


def on_grid(statistic: F64, bits: int = GRID_BITS) -> F64:
    """Round to multiples of 2^-bits, so that low bits of a sum do not reveal whether a count was added to the noise.

    In floating point, 0 + noise keeps low bits that count + noise loses (Mironov 2012). Rounded numbers also add up
    exactly, in any order, as long as they are below 2^(53 - bits).
    """
    return np.asarray(np.rint(np.ldexp(statistic, bits)) * 2.0**-bits)


def _charge(
    noise: UnitNoise, own_epsilon: float | None, question: str = "", own_delta: float = OWN_DELTA
) -> NoisyUnits:
    """Return the charge for a round's noise. A party's own epsilon and delta can only increase the noise."""
    rounds, delta, sigma = noise.rounds, noise.delta, _sigma(noise)
    if noise.paper.noise_on == "held":
        if own_epsilon is not None:
            raise ConfigError(f"this party's epsilon = {own_epsilon} cannot be kept: noise_on = 'held' keeps none")
        claim = pctd_claim(sigma, rounds, delta)
        return NoisyUnits(NOISE, sigma=sigma, held=True, question=question, claimed=claim, assumptions=(HELD,))
    if own_epsilon is not None:
        sigma = max(sigma, sigma_for(own_epsilon, min(delta, own_delta), rounds))
    claim, levels = pctd_claim(sigma, rounds, delta), other_levels(sigma, rounds, delta)
    return NoisyUnits(NOISE, sigma=sigma, question=question, claimed=claim, assumptions=(levels,))


def _sigma(noise: UnitNoise) -> float:
    if noise.epsilon is not None:
        return sigma_for(noise.epsilon, noise.delta, noise.rounds)
    return SIGMA if noise.sigma is None else noise.sigma


@step(doing="keeping its shares")
def keep_shares(
    party: Party, state: Shares | OwnShares | None, ask: Nothing
) -> tuple[Shares | OwnShares | None, Nothing]:
    """Store the topic shares of the documents at their party."""
    if state is not None:
        party.keep("shares", theta=state.theta)
    return state, Nothing()


STEPS = (*WORD_STEPS, expect, expect_clipped, keep_shares, score)
KEEPING = (keep_shares,)  # steps that release nothing


def train(fed: Federation, config: PCTDSettings, state: PCTDState | None = None) -> Trained:
    """Run Algorithm 1."""
    if state is None:
        words = agree(fed, config.vocabulary).words
        phi = _start(config.topics, len(words), config.seed or 0)
        state = fed.commit(_first(words, phi))
    known = known_relations(config, state.words)

    def iterate(state: PCTDState) -> tuple[PCTDState, Metrics]:
        if config.mode == "sound":
            return _clipped_round(fed, config, state, known), {}
        M = state.statistic + fed.sum(expect, _task(config, state)).counts
        phi, weights = maximise(M, config.beta)
        return PCTDState(state.round + 1, state.words, make_consistent(phi, known, config.tau), weights, M), {}

    state = run_rounds(fed, config, state, iterate, [Evaluation[PCTDState](config, lambda state: state.topic_word)])
    fed.each(keep_shares, Nothing())
    alpha = symmetric(config.alpha, config.topics)
    topics = Topics(state.topic_word, Vocabulary(state.words), alpha, config.beta, state.weights)
    return Trained(topics, {})


def _clipped_round(fed: Federation, config: PCTDSettings, state: PCTDState, known: Relations | None) -> PCTDState:
    """Ask for a noisy sum, and estimate topics from the mean of all so far."""
    noise, n = config.part(SumNoise), state.round + 1
    ask = ClippedTask(state.words, config.part(UnitSettings), noise, state.topic_word)
    total = np.ldexp(fed.sum(expect_clipped, ask).counts, -BITS)
    M = state.statistic + 2 / (n + 1) * (total - state.statistic)
    spread = deviation(noise) * louder(fed) * averaged(n)
    phi = make_consistent(denoise(M, spread), known, config.tau)
    return PCTDState(n, state.words, phi, np.maximum(M.sum(axis=1), _NEAR), M)


def averaged(n: int) -> float:
    """Return the deviation of the mean of n independent numbers of deviation 1, weighted by 1, 2, ... n.

    >>> averaged(2) == math.sqrt(1 + 4) / 3
    True
    """
    return math.sqrt(2 * (2 * n + 1) / (3 * n * (n + 1)))


def continue_from(fed: Federation, config: PCTDSettings, last: Topics) -> PCTDState:
    """Begin with an earlier model's topics; additional topics are drawn at random, as in a new run."""
    words = agree(fed, config.vocabulary, last.vocabulary.words).words
    phi = _start(config.topics, len(words), config.seed or 0)
    phi[: last.n_topics] = smooth(pseudo_counts(last, words), config.beta)
    return _first(words, phi)


def _first(words: tuple[str, ...], phi: F64) -> PCTDState:
    return PCTDState(0, words, phi, np.ones(len(phi)), np.zeros_like(phi))


def maximise(M: F64, beta: float) -> tuple[F64, F64]:
    """Estimate p(w|z) [K, V], (11), and the topics' expected tokens [K] from the summed statistic.

    Noise makes some sums negative. They are set to 0, and `beta` keeps every logarithm finite.
    """
    if not M.any():
        raise InputError("no party holds a word of the agreed vocabulary: check the word list and the language")
    counts = np.maximum(M, 0.0) + beta
    weights = counts.sum(axis=1)
    return counts / weights[:, None], weights


def known_relations(config: PCTDSettings, words: tuple[str, ...]) -> Relations | None:
    """Read the relations of the vocabulary's words, if the settings name any: public knowledge, at the server."""
    if config.vectors is not None:
        return similarities(read_vectors(config.vectors, words), config.neighbours, config.min_cosine)  # (12)
    return None if config.relations is None else read_relations(config.relations, words)


def make_consistent(phi: F64, known: Relations | None, tau: float) -> F64:
    """Move topics [K, V] towards words that have relatives in them.

    The paper normalises over all words. Here the words with relations keep their total, so that a word of which nothing
    is known keeps its probability.
    """
    if known is None or tau == 0:
        return phi
    p = phi[:, known.numbers]  # [K, A]
    pull = p * (known.R @ p.T).T  # p(w|z) (R p)_w
    quadratic = pull.sum(axis=1, keepdims=True)  # p^T R p
    moved = p + tau * np.divide(pull, quadratic, out=np.zeros_like(p), where=quadratic > 0)  # (13)
    total, sums = p.sum(axis=1, keepdims=True), moved.sum(axis=1, keepdims=True)
    adjusted = phi.copy()
    adjusted[:, known.numbers] = moved * np.divide(total, sums, out=np.zeros_like(sums), where=sums > 0)
    return adjusted


def plan(config: PCTDSettings) -> list[Planned]:
    """List everything that will leave a party, for `tertulia check`."""
    if config.mode == "sound":
        clipped = Planned(expect_clipped, "sum", mechanism_of(STATISTICS, config.part(SumNoise)), config.rounds)
        return [*plan_vocabulary(config.vocabulary), clipped, *plan_evaluation(config)]
    noise = _noise(config)
    charges = [] if noise is None else [Planned(expect, "reports", _charge(noise, None), config.rounds)]
    mechanism = Clear(STATISTICS) if noise is None else Derived(STATISTICS, parents=("reports",))
    pushed = Planned(expect, "sum", mechanism, config.rounds)
    return [*plan_vocabulary(config.vocabulary), *charges, pushed, *plan_evaluation(config)]


def _noise(config: PCTDSettings) -> UnitNoise | None:
    return None if config.mode == "clear" else config.part(UnitNoise)


def _task(config: PCTDSettings, state: PCTDState) -> UnitTask:
    return UnitTask(state.words, config.part(UnitSettings), _noise(config), state.topic_word)


def _start(K: int, V: int, seed: int) -> F64:
    """Draw each topic uniformly from all distributions over words."""
    return np.random.default_rng([seed, K, V]).dirichlet(np.ones(V), K)


def topics_so_far(config: PCTDSettings, state: PCTDState) -> TopicsSoFar:
    """Return the topics of the last iteration."""
    return TopicsSoFar(state.words, state.topic_word, state.weights)

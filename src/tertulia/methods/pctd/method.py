"""PC-TD: Federated Topic Discovery, A Semantic Consistent Approach (Shi et al., IEEE Intelligent Systems, 2020).

Documents are semantic units (n-grams, sentences, paragraphs), each of one topic. Every iteration of EM parties find
their units' topics from noisy word counts (5) and their documents' shares (7), which stay at home; the server adds up
the expected counts (10), normalises (11), and lets related words pull each other up (13). Equation numbers are the
paper's. All parties begin with the same topics; the paper lets each draw its own, which would not add up.

The noise covers counts before anything is computed from them, so the guarantee for tokens is real, but far from what is
claimed: see `mechanisms.gaussian`. It is drawn by an exact shortcut (`kernels.unit_noise`). (4) may also be read as
noise on the words that a unit holds, and on no others; that guarantees nothing, but behaves as the paper's figures do.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from tertulia._arrays import F64, Array, digest_of
from tertulia._kinds import check_array
from tertulia.corpus import Corpus, Vocabulary
from tertulia.errors import ConfigError, InputError
from tertulia.federation import fields
from tertulia.federation.types import Federation, Nothing, Party, Planned, message, step
from tertulia.kernels.pctd import em, unit_noise
from tertulia.kernels.pctd.normals import normals
from tertulia.methods.common.evaluation import Evaluation, plan_evaluation, score
from tertulia.methods.common.priors import symmetric
from tertulia.methods.common.result import Trained
from tertulia.methods.common.rounds import Metrics, run_rounds
from tertulia.methods.common.start import pseudo_counts, smooth
from tertulia.methods.common.vocabulary import agree, plan_vocabulary, propose_words
from tertulia.methods.pctd.consistency import known_relations, make_consistent
from tertulia.methods.pctd.settings import PCTDSettings, UnitNoise, UnitSettings
from tertulia.models import Topics
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism
from tertulia.privacy.mechanisms.gaussian import sigma_for
from tertulia.privacy.mechanisms.unit_counts import HELD, NoisyUnits, other_levels, pctd_claim
from tertulia.privacy.noise import NoiseStream

STATISTICS = "expected topic-word counts"
NOISE = "noisy counts of words in units"
SIGMA = 0.25  # the paper's
OWN_DELTA = 1e-6  # at which a party's own epsilon holds, unless the party says another
GRID_BITS = 20  # what leaves under noise is a multiple of 2^-20
NO_SHARES = "topics must hold p(w|z): every number above 0, and each row with a sum of 1"
_NEAR = 1e-6


@message
class UnitTask:
    """What all parties get in a round."""

    words: tuple[str, ...]
    units: UnitSettings
    noise: UnitNoise | None
    topic_word: fields.TopicWord  # [K, V] p(w|z)


@message
class Statistics:
    """One party's expected counts; the server only learns their sum."""

    counts: Array  # [K, V] M_t(w, z)

    def check_reply(self, ask: UnitTask) -> None:
        """Raise unless these are counts of the topics that were asked about."""
        check_array("counts", self.counts, ask.topic_word.shape)


@message
class Shares:
    """What a party keeps: p(z|d)."""

    theta: Array  # [D, K]


@message
class PCTDState:
    """What the server keeps."""

    round: int
    words: tuple[str, ...]
    topic_word: Array  # [K, V]
    weights: Array  # [K] expected tokens of each topic


class Expected(NamedTuple):
    """An E-step's results, and how the statistic leaves."""

    r: F64  # [S, K]
    statistic: F64  # [V, K]
    mechanism: Mechanism


@step
def expect(party: Party, state: Shares | None, ask: UnitTask) -> tuple[Shares, Statistics]:
    """Algorithm 1, lines 5-10: responsibilities, the documents' own shares, and the statistic to push."""
    check_shares(ask.topic_word)
    corpus = party.documents(Vocabulary.of(ask.words), unknown=ask.noise is not None)
    K, V = ask.topic_word.shape
    bounds = corpus.units(ask.units.unit, ask.units.unit_words)
    found = em.semantic_units(corpus.words, corpus.documents, bounds, len(corpus.vocabulary))
    theta = np.full((corpus.n_documents, K), 1.0 / K) if state is None else state.theta
    log_phi = np.log(ask.topic_word.T)
    if ask.noise is None:
        r, _ = em.responsibilities(found, log_phi, theta, party.setting("threads", 1))  # (3)
        expected = Expected(r, em.statistics(found, r, V), Clear(STATISTICS))
    else:
        expected = _under_noise(party, corpus, found, log_phi, theta, ask.noise)
    theta = em.shares(found, expected.r)  # (7)
    return Shares(theta), Statistics(party.release(np.ascontiguousarray(expected.statistic.T), expected.mechanism))


def _under_noise(
    party: Party, corpus: Corpus, found: em.SemanticUnits, log_phi: F64, theta: Array, noise: UnitNoise
) -> Expected:
    """(4), (5) and (10), with noise of the party's key that belongs to this very question.

    A word off the list keeps its place in its unit: it is as likely in every topic, and its counts are left out.
    """
    question = digest_of(log_phi, theta, found.bounds)  # the same numbers may never serve two questions
    charge = _charge(noise, party.setting("epsilon", None), question, party.setting("delta", OWN_DELTA))
    randomness = party.randomise(corpus, charge)
    normal = partial(normals, NoiseStream(randomness.key).words)
    draw = unit_noise.on_held_words if noise.paper.noise_on == "held" else unit_noise.on_all_words
    with_unknown = np.concatenate((log_phi, np.zeros((1, log_phi.shape[1]))))
    r, statistic = draw(found, with_unknown, theta, charge.sigma, normal)
    return Expected(r, on_grid(statistic[:-1]), Derived(STATISTICS, parents=randomness.parents))


def check_shares(topic_word: Array) -> None:
    """Raise `InputError` unless each topic's words have probabilities: positive, with a sum of 1."""
    phi = np.asarray(topic_word)
    if phi.ndim != 2 or not np.all(phi > 0) or not np.all(np.abs(phi.sum(axis=1) - 1) < _NEAR):
        raise InputError(NO_SHARES)


def on_grid(statistic: F64) -> F64:
    """Round to multiples of 2^-20: the last bits of a floating sum would show whether a count was added to the noise.

    (Mironov 2012: a sum of 0 and noise keeps low bits of the noise that a sum with a count has lost.)
    """
    return np.asarray(np.rint(np.ldexp(statistic, GRID_BITS)) * 2.0**-GRID_BITS)


def _charge(
    noise: UnitNoise, own_epsilon: float | None, question: str = "", own_delta: float = OWN_DELTA
) -> NoisyUnits:
    """What a round's noise costs; a party's own epsilon, at its own delta, can only make counts noisier."""
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


@step
def keep_shares(party: Party, state: Shares | None, ask: Nothing) -> tuple[Shares | None, Nothing]:
    """Store the documents' shares at their party."""
    if state is not None:
        party.keep("shares", theta=state.theta)
    return state, Nothing()


STEPS = (propose_words, expect, keep_shares, score)
KEEPING = (keep_shares,)  # nothing leaves by these


def train(fed: Federation, config: PCTDSettings, state: PCTDState | None = None) -> Trained:
    """Algorithm 1."""
    if state is None:
        words = agree(fed, config.vocabulary).words
        phi = _start(config.topics, len(words), config.seed or 0)
        state = fed.commit(PCTDState(0, words, phi, np.ones(config.topics)))
    known = known_relations(config, state.words)

    def iterate(state: PCTDState) -> tuple[PCTDState, Metrics]:
        M = fed.sum(expect, _task(config, state)).counts
        phi, weights = maximise(M, config.beta)
        return PCTDState(state.round + 1, state.words, make_consistent(phi, known, config.tau), weights), {}

    state = run_rounds(fed, config, state, iterate, [Evaluation[PCTDState](config, lambda state: state.topic_word)])
    fed.each(keep_shares, Nothing())
    alpha = symmetric(config.alpha, config.topics)
    topics = Topics(state.topic_word, Vocabulary(state.words), alpha, config.beta, state.weights)
    return Trained(topics, {})


def continue_from(fed: Federation, config: PCTDSettings, last: Topics) -> PCTDState:
    """Begin with an earlier model's topics instead; those beyond are drawn as ever."""
    words = agree(fed, config.vocabulary, last.vocabulary.words).words
    phi = _start(config.topics, len(words), config.seed or 0)
    phi[: last.n_topics] = smooth(pseudo_counts(last, words), config.beta)
    return PCTDState(0, words, phi, np.ones(config.topics))


def maximise(M: F64, beta: float) -> tuple[F64, F64]:
    """p(w|z) [K, V], (11), and the topics' expected tokens [K], from the summed statistic.

    Noise makes some sums negative: they count as 0, and `beta` keeps every logarithm finite.
    """
    if not M.any():
        raise InputError("no party holds a word of the agreed vocabulary: check the word list and the language")
    counts = np.maximum(M, 0.0) + beta
    weights = counts.sum(axis=1)
    return counts / weights[:, None], weights


def plan(config: PCTDSettings) -> list[Planned]:
    """Everything that will leave a party, for `tertulia check`."""
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
    """Topics drawn uniformly from all distributions over words."""
    return np.random.default_rng([seed, K, V]).dirichlet(np.ones(V), K)

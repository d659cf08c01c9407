"""What FedLDA's users really send, against exact laws: mechanisms by enumeration, samplers by the posterior."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats

from helpers.fedlda_laws import law
from tertulia.kernels.fedlda import tuples
from tertulia.kernels.fedlda.sampling import broadcast_phi, resample
from tertulia.kernels.reports import Channel, reports
from tertulia.methods.fedlda.answers import Answers, perturb_words, report_perturbed, report_truth, users_after
from tertulia.methods.fedlda.settings import UserSettings
from tertulia.methods.fedlda.shard import Shard, initial_users
from tertulia.privacy.mechanisms.perturbation import HYBRID_GRID, hybrid_answers

K, V = 2, 7
COUNTS = np.array([[50, 25, 12, 7, 4, 2, 0], [12, 25, 50, 7, 4, 0, 2]])
PHI = broadcast_phi(COUNTS, 0.001)
ALPHA = np.array([0.5, 0.5])
KEY = bytes(range(32))
DRIFTING = {"bookkeeping": "paper"}


def user_settings(**changes):
    return UserSettings(**{"mode": "paper", "epsilon": 2.0, "max_words": 7, "alpha": 1.0} | changes)


def answers_of(settings, words, documents, users, answering=None, number=3):
    everyone = np.ones(len(documents) - 1, dtype=bool) if answering is None else answering
    chosen = (settings.max_words, settings.sampled, number)
    sent = tuples.choose(words, documents, users.z, users.reported, everyone, *chosen)
    model = np.ascontiguousarray(PHI[:, :K].T, dtype=float)
    return Answers(settings, Shard(words, documents), users, everyone, sent, model, ALPHA)


def answer(answers, key):
    """The sum that is reported, and what users keep."""
    reported = report_truth(answers) if answers.settings.mode == "clear" else report_perturbed(answers, key)
    return reported.moved, users_after(answers, reported.word)


def starting(settings, z):
    """Users with these topics, of whom the server has nothing."""
    return dataclasses.replace(initial_users(settings, len(z), V), z=z)


@pytest.mark.parametrize("kind", ["rrp", "krr", "tkrr"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_words_are_reported_by_the_exact_law(kind, epsilon):
    """Every user holds all V words, three of four in topic 0: theta is the same for all, so is P(v | w)."""
    users = 20_000
    words = np.tile(np.arange(V, dtype=np.int32), users)
    documents = np.arange(0, users * V + 1, V)
    z = np.tile(np.array([0, 0, 0, 1, 0, 1, 0], np.int16), users)
    settings = user_settings(mechanism=kind, epsilon=epsilon, sample_ratio=1.0)
    answers = answers_of(settings, words, documents, starting(settings, z))
    reported = perturb_words(answers, answers.sent, KEY)
    theta = (np.array([5, 2]) + ALPHA) / (V + ALPHA.sum())
    expected = law(settings.perturbation(), answers.phi, theta)
    assert np.allclose(expected.sum(axis=1), 1)
    for w in range(V):
        seen = np.bincount(reported[words == w], minlength=V)
        assert seen[expected[w] == 0].sum() == 0
        there = expected[w] > 0
        assert stats.chisquare(seen[there], users * expected[w][there]).pvalue > 1e-4, w
    assert np.array_equal(reported, perturb_words(answers, answers.sent, KEY))  # the same key, the same noise
    assert not np.array_equal(reported, perturb_words(answers, answers.sent, b"k" * 32))


def test_fresh_noise_can_be_averaged_away_and_reports_for_ever_cannot():
    """RRP draws another report of the same word in each round, so the most frequent answer is the truth."""
    users, rounds = 300, 15
    rng = np.random.default_rng(2)
    words = rng.integers(0, V, users * 5).astype(np.int32)
    documents = np.arange(0, users * 5 + 1, 5)
    settings = user_settings(mechanism="rrp", epsilon=5.0, sample_ratio=1.0)
    answers = answers_of(
        settings, words, documents, starting(settings, rng.integers(0, K, len(words)).astype(np.int16))
    )
    seen = np.array([perturb_words(answers, answers.sent, bytes([r]) * 32) for r in range(rounds)])
    guess = np.array([np.bincount(column, minlength=V).argmax() for column in seen.T])
    once = (seen[0] == words).mean()
    assert (guess == words).mean() > max(0.95, once + 0.1)
    channel = Channel("krr", 2.0, V)
    forever = np.array([reports(words, channel, KEY, "users").idx for _ in range(rounds)])
    assert np.all(forever == forever[0])
    assert (forever[0] == words).mean() == pytest.approx(channel.own_word_probability(), abs=0.06)


def test_the_hybrid_mechanism_answers_by_the_exact_law():
    """Users hold one word, new in topic 0: one coordinate of K V is 1, all others are 0."""
    users = 60_000
    words, documents = np.full(users, 3, dtype=np.int32), np.arange(users + 1)
    settings = user_settings(mechanism="hm", epsilon=2.0)
    answers = answers_of(settings, words, documents, starting(settings, np.zeros(users, np.int16)))
    total = report_perturbed(answers, KEY).moved * HYBRID_GRID
    values, probability = hybrid_answers(2.0)
    spread = np.sqrt(probability @ values.astype(float) ** 2) * HYBRID_GRID * np.sqrt(K * V * users)
    error = total - np.where((np.arange(K)[:, None] == 0) & (np.arange(V) == 3), users, 0)
    assert np.all(np.abs(error) < 5 * spread.max())
    assert np.abs(error).max() > 0.01 * spread.min()


def five_words_each(users, rounds, seed=0):
    """Users of five random words, and their topics in each round."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, V, users * 5).astype(np.int32)
    topics = [rng.integers(0, K, len(words)).astype(np.int16) for _ in range(rounds)]
    return words, np.arange(0, users * 5 + 1, 5), topics


def tokens_at(topic, word):
    """The counts [K, V] of tokens that stand at a topic and a word; -1: nowhere."""
    counts = np.zeros((K, V), dtype=np.int64)
    np.add.at(counts, (topic[topic >= 0], word[topic >= 0]), 1)
    return counts


@pytest.mark.parametrize("mechanism", ["rrp", "krr", "tkrr"])
def test_a_token_has_one_word_in_all_rounds_and_the_counts_are_exactly_those_of_the_words_reported(mechanism):
    words, documents, topics = five_words_each(400, 8)
    settings = user_settings(mechanism=mechanism, epsilon=1.0, sample_ratio=0.5)
    users, server = starting(settings, topics[0]), np.zeros((K, V), dtype=np.int64)
    for number, z in enumerate([*topics, *[topics[-1]] * 12]):  # at last nothing moves any more
        moved, after = answer(
            answers_of(settings, words, documents, dataclasses.replace(users, z=z), number=number), bytes([number]) * 32
        )
        server += moved
        known = users.word >= 0
        assert np.array_equal(after.word[known], users.word[known])  # drawn once, for any key of a later round
        assert np.array_equal(after.word >= 0, after.reported >= 0)
        assert np.array_equal(server, tokens_at(after.reported, after.word))
        users = after
    assert np.array_equal(users.reported, topics[-1])  # all have reported where they are
    assert (users.word != words).mean() > 0.2  # and many not by their own word


def test_words_drawn_again_leave_counts_that_belong_to_no_token():
    """The paper's way: decrements take back other words than increments gave, so that errors add up for ever."""
    words, documents, topics = five_words_each(400, 40)
    error = {}
    for bookkeeping in ("paper", "converging"):
        settings = user_settings(mechanism="krr", epsilon=1.0, sample_ratio=1.0, paper={"bookkeeping": bookkeeping})
        users, server = starting(settings, topics[0]), np.zeros((K, V), dtype=np.int64)
        for number, z in enumerate(topics):
            answers = answers_of(settings, words, documents, dataclasses.replace(users, z=z))
            moved, users = answer(answers, bytes([number]) * 32)
            server += moved
            assert np.array_equal(users.reported, z)  # l = M: everything was sent
            error[bookkeeping, number] = np.abs(
                server - tokens_at(z, words) @ law(settings.perturbation(), answers.phi, ALPHA)
            )
    assert error["paper", 39].mean() > 3 * error["paper", 0].mean()
    assert error["converging", 39].mean() < error["paper", 39].mean() / 3


@pytest.mark.parametrize("mechanism", ["none", "krr"])
def test_drift_free_counts_are_unbiased(mechanism):
    """After any rounds the server's counts are, on average, the law's image of the topics that were reported."""
    words, documents, topics = five_words_each(300, 6)
    mode = {"mode": "clear", "epsilon": None} if mechanism == "none" else {"mechanism": mechanism, "epsilon": 3.0}
    settings = user_settings(**mode, sample_ratio=0.5)
    errors = []
    for repeat in range(40):
        server, users = np.zeros((K, V)), starting(settings, topics[0])
        for number, z in enumerate(topics):
            answers = answers_of(settings, words, documents, dataclasses.replace(users, z=z))
            moved, users = answer(answers, bytes([repeat, number]) * 16)
            server += moved
        errors.append(server - tokens_at(users.reported, words) @ law(settings.perturbation(), answers.phi, ALPHA))
    if mechanism == "none":
        assert not np.any(errors)  # exactly what was reported: nothing is lost, nothing drifts
        return
    mean, spread = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(len(errors))
    assert np.all(np.abs(mean) < 4.5 * spread)


@pytest.mark.parametrize(
    "changes",
    [
        {"mechanism": "hm"},
        {"mechanism": "rrp"},
        *({"mechanism": m, "paper": {"bookkeeping": "paper"}} for m in ("rrp", "hm")),
    ],
    ids=["hm", "rrp", "rrp-paper", "hm-paper"],
)
def test_an_answer_that_never_came_has_reported_nothing(changes):
    words, documents, topics = five_words_each(60, 2)
    settings = user_settings(**changes, sample_ratio=1.0)
    _, before = answer(answers_of(settings, words, documents, starting(settings, topics[0])), KEY)
    lost = np.arange(60) % 3 == 0  # of these users
    answers = answers_of(settings, words, documents, dataclasses.replace(before, z=topics[1]), ~lost)
    _, after = answer(answers, KEY)
    gone = np.repeat(lost, 5)
    assert np.array_equal(after.z, topics[1])  # the users have moved on all the same
    assert np.array_equal(after.reported[~gone], topics[1][~gone])
    assert np.array_equal(after.reported[gone], before.reported[gone])
    assert np.array_equal(after.word[: len(gone)], before.word[: len(gone)])
    assert not lost[answers.sent.user].any()


def test_drift_free_counts_converge_and_the_papers_do_not():
    words, documents, (z,) = five_words_each(200, 1)
    true = tokens_at(z, words)
    found = {}
    for bookkeeping in ("converging", "paper"):
        settings = user_settings(
            mode="clear", epsilon=None, sample_ratio=0.6, paper={"bookkeeping": bookkeeping}
        )  # l = 4 of 7
        server, users = np.zeros((K, V)), starting(settings, z)
        for number in range(20):
            moved, users = answer(answers_of(settings, words, documents, users, number=number), KEY)
            server += moved
        found[bookkeeping] = server
    assert np.array_equal(found["converging"], true)
    assert found["paper"].sum() == pytest.approx(4 / 7 * true.sum(), rel=0.1)


@pytest.mark.parametrize("sampler", ["gibbs", "mh"])
def test_topics_given_phi_have_the_exact_posterior(sampler):
    """One document by enumeration, p(z) ∝ prod_k Gamma(C_k + alpha_k) prod_i phi[z_i, w_i]: both samplers agree."""
    doc = np.array([0, 2, 2, 3], dtype=np.int32)
    phi = PHI[:, :K].astype(float)
    weight = {}
    for z in itertools.product(range(K), repeat=len(doc)):
        mass, counts = 1.0, ALPHA.copy()
        for w, k in zip(doc, z, strict=True):
            mass *= counts[k] * phi[w, k]
            counts[k] += 1
        weight[z] = mass
    total = sum(weight.values())
    users = 40_000
    words, documents = np.tile(doc, users), np.arange(0, 4 * users + 1, 4)
    start = np.full(len(words), -1, np.int16)
    everyone = np.ones(users, dtype=bool)
    z = resample(words, documents, start, everyone, PHI, ALPHA, 11, 12, sampler).reshape(users, 4)
    states, seen = np.unique(z @ (K ** np.arange(4)), return_counts=True)
    found = dict(zip(states.tolist(), seen.tolist(), strict=True))
    pairs = [(found.get(int(np.dot(z, K ** np.arange(4))), 0), users * mass / total) for z, mass in weight.items()]
    seen, expected = np.array(pairs).T
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-4

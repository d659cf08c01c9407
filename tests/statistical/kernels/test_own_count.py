"""Where phi is the mean of counts, the redrawn token or sentence is left out of them: draws have that probability.

Copies of one document, whose first token or sentence is redrawn, are as many draws; chi-square compares them. A sampler
that is handed the same phi as a draw, out of which nothing is left, must fail. Metropolis-Hastings makes no independent
draws: started from the right distribution, it must nearly keep it.
"""

import numpy as np
import pytest
from scipy.stats import chisquare

from helpers.exact import total_variation
from helpers.planted import planted
from tertulia.kernels import lda, noise_aware
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.ftm_paper import gibbs as plain_gibbs
from tertulia.kernels.lda import blocked, sparse
from tertulia.kernels.lda.phi import NO_TOTALS, mean_totals
from tertulia.kernels.lda.sparse_phi import mean_rows
from tertulia.kernels.lda.word_columns import columns
from tertulia.kernels.noise_aware import mh, sentence
from tertulia.kernels.noise_aware.gibbs import sweep_given_phi
from tertulia.kernels.reports import Reports

COPIES, LIKELY, UNLIKELY = 200_000, 1e-3, 1e-9
V, K, OLD, BETA = 5, 24, 1, np.array([0.4, 0.1, 0.3, 0.2, 0.5])
ALPHA = np.linspace(0.5, 1.5, K) / K


def counts(beta=BETA):
    """Counts [V, K]: word 0 is in all topics, 1 in some, 2 once in the old one, 3 nowhere else; and beta [V]."""
    cwk = np.zeros((V, K), dtype=np.int32)
    cwk[0], cwk[1, ::7], cwk[1, OLD], cwk[2, OLD], cwk[3, OLD] = 2, 3, 2, 1, 2
    return cwk, np.broadcast_to(beta, V)


def mean(cwk, beta, left_out=()):
    """The mean of phi [V, K], words left out of topic OLD."""
    cwk = cwk.astype(float)
    np.subtract.at(cwk, (list(left_out), OLD), 1)
    return (cwk + beta[:, None]) / (cwk.sum(axis=0) + beta.sum())


def given(cwk, beta):
    """Phi and totals as kernels want them."""
    phi = np.zeros((V, padded_width(K)), dtype=np.float32)
    phi[:, :K] = mean(cwk, beta)
    return phi, mean_totals(cwk.sum(axis=0, dtype=np.int64), float(beta.sum()))


def p_value(drawn, p):
    """Of draws 0..n-1, against weights p [n]; rare ones are taken together."""
    p = p / p.sum()
    seen, rare = np.bincount(drawn, minlength=len(p)), p * len(drawn) < 20
    if rare.any():
        seen, p = np.append(seen[~rare], seen[rare].sum()), np.append(p[~rare], p[rare].sum())
    keep = p > 0
    assert not seen[~keep].any()
    return chisquare(seen[keep], p[keep] / p[keep].sum() * len(drawn)).pvalue


def copies(words, z):
    n = len(words)
    ends = freeze(np.arange(0, COPIES * n + 1, n), np.int64)
    return freeze(np.tile(words, COPIES), np.int32), ends, np.tile(z, COPIES).astype(np.int32)


PRIOR = ALPHA + (np.arange(K) == 2)  # another token, or sentence, of the document has topic 2


@pytest.mark.parametrize(
    "others", [[2], [2, 5, 9]]
)  # topics that the document holds: word 0 is looked up, or read through
@pytest.mark.parametrize("w", [0, 1, 2, 3])
def test_sparse(w, others):
    cwk, beta = counts(0.2)
    counted, topics = (x.repeat(cwk.ravel()) for x in np.indices(cwk.shape).reshape(2, -1))
    rows = mean_rows(columns(counted.astype(np.int32), V), topics.astype(np.int32), ALPHA, 0.2, threads=1)
    p = (ALPHA + np.bincount(others, minlength=K)) * mean(cwk, beta, [w])[w]
    for without, exact in ((rows.without, True), (rows.without[:0], False)):
        words, documents, z = copies([w] + [4] * len(others), [OLD, *others])
        sparse.sweep(words, documents, z, rows._replace(without=without), derive(1), threads=2)
        found = p_value(z[:: len(others) + 1], p)
        assert found > LIKELY if exact else found < UNLIKELY


@pytest.mark.parametrize("others", [[2], [2, OLD]])  # topics that the document holds besides
@pytest.mark.parametrize("w", [0, 1, 2, 3])
def test_blocked(w, others, monkeypatch):
    """Whether by the document's topics or by the word's row, where the own count is drawn and refused.

    Topics have thousands of tokens: the parts with alpha leave the token in C_k.
    """
    monkeypatch.setattr(blocked, "BLOCKS", 1)  # counts stand still for all draws
    cwk, beta = counts(0.2)
    cwk[4] = 3_000
    prior = ALPHA + np.bincount(others, minlength=K)
    words, documents, z = copies([w] + [4] * len(others), [OLD, *others])
    cells = np.zeros((V, padded_width(K)), dtype=np.float32)
    cells[:, :K] = cwk
    given_counts = blocked.Counts(cells, cwk.sum(axis=0, dtype=np.int64))
    blocked.sweep(words, documents, z, given_counts, ALPHA, 0.2, derive(1), threads=2)
    drawn = z[:: len(others) + 1]
    assert p_value(drawn, prior * mean(cwk, beta, [w])[w]) > LIKELY
    assert p_value(drawn, prior * mean(cwk, beta)[w]) < UNLIKELY


IDX, A, R0 = np.array([0, 2, 3]), np.array([1.5, 3.0, 2.0]), 0.05


def reports(n):
    """Reports of words 0, 2 and 3 by the first token of a document, and of word 4 by the second, n times."""
    sizes = np.tile([3, 1], n)
    rows = (np.tile(np.append(x, last), n) for x, last in ((IDX, 4), (A, 1.0)))
    idx, a = (x.astype(kind) for x, kind in zip(rows, (np.int32, np.float32), strict=True))
    return Reports(np.concatenate([[0], np.cumsum(sizes)]), idx, a, np.ones_like(a), R0)


@pytest.mark.parametrize("word", [0, 2, 3, -1])
def test_noise_aware_gibbs(word):
    cwk, beta = counts()
    phi, totals = given(cwk, beta)
    p = np.zeros((V, K))
    p[IDX] = A[:, None] * PRIOR * mean(cwk, beta, [word] if word >= 0 else [])[IDX]
    p = np.append(p, R0 * PRIOR.sum())  # the background is last
    for shared, exact in ((totals, True), (NO_TOTALS, word < 0)):
        _, documents, z = copies([0, 4], [OLD if word >= 0 else -1, 2])
        taken, r = np.where(np.arange(2 * COPIES) % 2, 4, word).astype(np.int32), reports(COPIES)
        fixed = z, taken, phi, shared, ALPHA, np.zeros((V, K), np.int32), derive(1)
        sweep_given_phi(*r[:3], R0, 0, documents, 0, COPIES, *fixed)
        found = p_value(np.where(z < 0, V * K, taken * K + z)[::2], p)
        assert found > LIKELY if exact else found < UNLIKELY


@pytest.mark.parametrize("words", [(2, 3), (0, 0), (3, -1)])
def test_noise_aware_sentence(words):
    """A sentence of two tokens and the same report; what both are taken for is left out, repeated words twice."""
    cwk, beta = counts()
    phi, totals = given(cwk, beta)
    left = mean(cwk, beta, [w for w in words if w >= 0])
    of_token = np.vstack([np.full(K, R0), A[:, None] * left[IDX]])  # background, or one of the words
    p = PRIOR * of_token[:, None] * of_token[None]  # [4, 4, K]
    reported = Reports(
        np.concatenate([[0], np.cumsum(np.tile([3, 3, 1], COPIES))]),
        np.tile([*IDX, *IDX, 4], COPIES).astype(np.int32),
        np.tile([*A, *A, 1.0], COPIES).astype(np.float32), np.ones(7 * COPIES, np.float32), R0,
    )  # fmt: skip
    tokens = np.sort(np.concatenate([np.arange(0, 3 * COPIES + 1, 3), np.arange(2, 3 * COPIES + 1, 3)]))
    for shared, exact in ((totals, True), (NO_TOTALS, False)):
        z, word = np.tile([OLD, 2], COPIES).astype(np.int32), np.tile([*words, 4], COPIES).astype(np.int32)
        fixed = z, word, phi, shared, ALPHA, np.zeros((V, K), np.int32), derive(1)
        sentence.sweep_given_phi(*reported[:3], R0, 0, tokens, np.arange(0, 2 * COPIES + 1, 2), 0, COPIES, *fixed)
        place = np.full(V + 1, 0)
        place[IDX + 1] = np.arange(1, 4)
        first, second = place[word[::3] + 1], place[word[1::3] + 1]
        found = p_value((first * 4 + second) * K + z[::2], p.ravel())
        assert found > LIKELY if exact else found < UNLIKELY


@pytest.mark.parametrize("words", [[2], [3, 3], [0, 3, 1]])
def test_sentences_in_the_clear(words):
    cwk, beta = counts(0.2)
    p = PRIOR * mean(cwk, beta, words)[words].prod(axis=0)
    n = len(words) + 1
    units = plain_gibbs.Units(
        freeze(np.tile([*words, 4], COPIES), np.int32),
        np.sort(np.concatenate([np.arange(0, n * COPIES + 1, n), np.arange(n - 1, n * COPIES + 1, n)])),
        np.arange(0, 2 * COPIES + 1, 2),
    )
    entries = plain_gibbs.Entries(np.arange(n * COPIES + 1), units.words, np.ones(n * COPIES, np.float32), 0)
    log_phi = np.log(mean(cwk, beta)).astype(np.float32)
    for shared, exact in ((given(cwk, beta)[1], True), (NO_TOTALS, False)):
        z = np.tile([OLD, 2], COPIES).astype(np.int32)
        counted = plain_gibbs.PhiCounts(cwk, shared, 0.2)
        plain_gibbs.sweep_block(units, 0, COPIES, z, entries, log_phi, counted, ALPHA, derive(1))
        found = p_value(z[::2], p)
        assert found > LIKELY if exact else found < UNLIKELY


@pytest.mark.parametrize("w", [0, 2, 3])
def test_noise_aware_metropolis_hastings_keeps_the_right_distribution(w):
    """One token beside fixed counts of others: its topic, or that it is background, from the distribution itself.

    Not to the last digit: how often a table proposes at all still knows the own count. Draws of this many are off by
    0.002 themselves.
    """
    others, beta = counts()
    a, few = 2.0, 4
    others, alpha = others[:, :few], np.array([0.2, 0.5, 0.4, 0.3])
    phi = (others + beta[:, None]) / (others.sum(axis=0) + beta.sum())
    p = np.append(a * alpha * phi[w], R0 * alpha.sum())
    starts = np.random.default_rng(0).multinomial(COPIES, p / p.sum())
    for leaves_out in (True, False):
        drawn = []
        for k, n in enumerate(starts):
            cwk = others.copy()
            cwk[w, k : k + 1] += 1 if k < few else 0
            fixed = np.zeros((V, padded_width(few)), dtype=np.float32)
            fixed[:, :few] = (cwk + beta[:, None]) / (cwk.sum(axis=0) + beta.sum())
            totals = mean_totals(cwk.sum(axis=0, dtype=np.int64), float(beta.sum())) if leaves_out else NO_TOTALS
            z = np.full(n, k if k < few else -1, dtype=np.int32)
            word, ends = np.where(z < 0, -1, w).astype(np.int32), np.arange(n + 1)
            r = Reports(ends, np.full(n, w, np.int32), np.full(n, a, np.float32), np.ones(n, np.float32), R0)
            tables = mh.build_tables(fixed, few, 1, z, totals)
            empty = np.zeros((V, few), np.int32)
            mh.sweep(r, 0, ends, 0, n, z, word, fixed, totals, tables, alpha, empty, derive(1, k))
            drawn.append(np.where(z < 0, few, z))
        far = total_variation(np.bincount(np.concatenate(drawn), minlength=few + 1), p / p.sum())
        assert far < 0.005 if leaves_out else w == 0 or far > 0.02  # word 0 is too common for its own count to matter


def test_a_sweep_moves_as_many_tokens_as_collapsed_gibbs():
    """From a settled state, within 2 %; with the own count in phi it is 9 % fewer."""
    shares = []
    for seed in range(3):
        train = planted(seed, 1_000, 60, 2_000, 40, 0.1)[:2]
        state, _ = lda.run(*train, lda.init(*train, 2_000, 40, 0.1, 0.02, seed), 60, seed, "gibbs")
        _, gibbs = lda.run(*train, state, 1, seed, "gibbs")
        _, info = lda.run(*train, state, 1, seed, "sparse", phi="mean")
        shares.append(info.changed / gibbs.changed)
    assert np.mean(shares) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("phi", ["mean", "draw"])
@pytest.mark.parametrize("sampler", ["dense", "mh"])
def test_threads_give_the_same_bits(sampler, phi):
    words, documents, _ = planted(0, 200, 30, 50, 5, 0.1)
    n = len(words)
    r = Reports(np.arange(n + 1), words, np.full(n, 5.0, np.float32), np.ones(n, np.float32), 0.02)
    prior = np.linspace(0.1, 0.5, 50)
    state = noise_aware.init(r, documents, 50, 5, 0.1, prior, 1)
    results = [noise_aware.run(r, documents, state, 5, 2, sampler, phi=phi, threads=t)[0] for t in (1, 2, 3)]
    for other in results[1:]:
        assert np.array_equal(other.z, results[0].z)
        assert np.array_equal(other.word, results[0].word)

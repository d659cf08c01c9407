"""The entry points of training: counts, repeatability, no changes in place, and errors that name the cause."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import issparse
from scipy.special import gammaln

from helpers.planted import counts_of
from tertulia.errors import InputError
from tertulia.kernels import lda
from tertulia.kernels.lda import gibbs, samplers, sparse
from tertulia.kernels.lda.options import Learning

V, K = 40, 5
SAMPLERS = [
    *(("gibbs", "draw"), ("blocked", "mean"), ("sparse", "draw"), ("sparse", "mean")),
    *(("warp", "draw"), ("auto", "mean")),
]


@pytest.fixture(scope="module")
def corpus():
    generator = np.random.default_rng(0)
    documents = np.concatenate([[0], np.cumsum(generator.integers(0, 50, size=300))])
    return generator.integers(0, V, size=documents[-1]).astype(np.int32), documents


@pytest.fixture(scope="module")
def state(corpus):
    return lda.init(*corpus, V, K, alpha=0.1, beta=0.01, key=1)


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_init_draws_topics_uniformly(state):
    assert state.z.dtype == np.int32
    assert np.abs(state.ck / len(state.z) - 1 / K).max() < 4.5 * np.sqrt(0.16 / len(state.z))


@pytest.mark.parametrize(("sampler", "phi"), SAMPLERS)
def test_counts_are_those_of_the_topics(corpus, state, sampler, phi):
    after, info = lda.run(*corpus, state, 3, 2, sampler, phi=phi, monitor=True)
    assert np.array_equal(after.cwk, counts_of(corpus[0], after.z, V, K))
    assert np.array_equal(after.ck, after.cwk.sum(axis=0))
    assert 0 < info.changed < len(after.z)
    assert info.log_joint == lda.log_joint(*corpus, after)


@pytest.mark.parametrize(("sampler", "phi"), SAMPLERS)
def test_same_bits_for_the_same_key_at_any_number_of_threads(corpus, state, sampler, phi):
    settings = {"sampler": sampler, "phi": phi, "learning": Learning(True, True, every=2)}
    one, two, four = (lda.run(*corpus, state, 5, 3, threads=t, **settings)[0] for t in (1, 2, 4))
    assert equal(one, two)
    assert equal(one, four)
    assert not np.array_equal(one.z, lda.run(*corpus, state, 5, 4, **settings)[0].z)


@pytest.mark.parametrize(("sampler", "phi"), SAMPLERS)
def test_the_given_state_and_corpus_are_not_touched(corpus, state, sampler, phi):
    before = [np.copy(x) for x in (*corpus, *state)]
    lda.run(*corpus, state, 2, 5, sampler, phi=phi, learning=Learning(True, every=1))
    assert equal(before, (*corpus, *state))


def test_memory_maps_share_the_compiled_kernels(corpus, state, tmp_path):
    lda.run(*corpus, state, 1, 1, "gibbs"), lda.run(*corpus, state, 1, 1, "sparse")
    known = [len(f.signatures) for f in (gibbs.sweep, sparse.sweep_block)]
    for name, x in zip(("words", "documents"), corpus, strict=True):
        np.save(tmp_path / f"{name}.npy", x)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("words", "documents")]
    for sampler in lda.SAMPLERS:
        assert equal(lda.run(*mapped, state, 1, 1, sampler)[0], lda.run(*corpus, state, 1, 1, sampler)[0])
    assert [len(f.signatures) for f in (gibbs.sweep, sparse.sweep_block)] == known


def test_log_joint_equals_the_gamma_functions(corpus, state):
    words, documents = corpus
    state = state._replace(alpha=np.array([0.1, 0.2, 0.3, 0.4, 2.0]))
    cdk = np.stack([np.bincount(state.z[a:b], minlength=K) for a, b in pairwise(documents)])
    A, B = state.alpha.sum(), V * state.beta
    of_z = gammaln(A) - gammaln(A + cdk.sum(axis=1)) + (gammaln(cdk + state.alpha) - gammaln(state.alpha)).sum(axis=1)
    of_w = gammaln(B) - gammaln(B + state.ck) + (gammaln(state.cwk + state.beta) - gammaln(state.beta)).sum(axis=0)
    assert lda.log_joint(words, documents, state) == pytest.approx(of_z.sum() + of_w.sum(), rel=1e-10)


def test_topic_word_is_the_posterior_mean(state):
    topics = lda.topic_word(state)
    assert topics.shape == (K, V)
    assert np.allclose(topics.sum(axis=1), 1.0)
    assert topics[2, 7] == pytest.approx((state.cwk[7, 2] + 0.01) / (state.ck[2] + V * 0.01), rel=1e-14)


def test_init_from_topics_follows_the_topics():
    topics = np.array([[0.1, 0.0, 1e-200], [0.3, 0.0, 1e-200]])
    words = np.repeat(np.arange(3), 20_000)
    state = lda.init_from_topics(words, np.array([0, 60_000]), topics, 0.1, 0.01, key=1)
    shares = state.cwk[:, 1] / 20_000
    assert np.allclose(shares, [0.75, 0.5, 0.5], atol=4.5 * 0.5 / np.sqrt(20_000))  # no mass, or tiny: still drawn
    assert not np.array_equal(state.z, lda.init_from_topics(words, [0, 60_000], topics, 0.1, 0.01, key=2).z)


@pytest.mark.parametrize(("sampler", "phi"), SAMPLERS)
def test_edges(sampler, phi):
    none = np.array([], dtype=np.int32)
    for words, documents in ((none, [0]), (none, [0, 0, 0]), (np.array([0]), [0, 0, 1])):
        state = lda.init(words, documents, V=1, K=1, alpha=0.1, beta=0.01, key=1)
        settings = {"phi": phi, "learning": Learning(True, every=1), "threads": 3}
        after, info = lda.run(words, documents, state, 2, 1, sampler, **settings)
        assert info.changed == 0
        assert equal(after, state._replace(alpha=after.alpha))
    many = lda.init(np.array([0, 1]), [0, 2], V=2, K=50, alpha=0.1, beta=0.01, key=1)  # more topics than tokens
    assert lda.run(np.array([0, 1]), [0, 2], many, 20, 1, sampler, phi=phi)[0].ck.sum() == 2


@pytest.mark.parametrize("sampler", ["gibbs", "blocked", "sparse", "warp"])
def test_topics_and_priors_are_all_that_a_state_holds(corpus, state, sampler):
    """Counts follow from the topics: a state without them goes on to the same end."""
    emptied = state._replace(cwk=np.zeros_like(state.cwk), ck=np.zeros_like(state.ck))
    runs = [lda.run(*corpus, start, 5, 3, sampler, Learning(alpha=True, every=2))[0] for start in (state, emptied)]
    assert equal(*runs)
    assert not np.array_equal(runs[0].z, state.z)


@pytest.mark.parametrize("sampler", ["gibbs", "blocked", "sparse", "warp"])
def test_counts_of_large_models_are_sparse(corpus, state, sampler, monkeypatch):
    plain, _ = lda.run(*corpus, state, 4, 3, sampler, phi="mean", learning=Learning(beta=True, every=2))
    monkeypatch.setattr(samplers, "DENSE_CELLS", V * K - 1)
    compact, _ = lda.run(*corpus, state, 4, 3, sampler, phi="mean", learning=Learning(beta=True, every=2), threads=2)
    assert issparse(compact.cwk)
    assert np.array_equal(compact.cwk.toarray(), plain.cwk)
    assert np.array_equal(lda.topic_word(compact), lda.topic_word(plain))
    one, other = (lda.run(*corpus, start, 2, 5, sampler, phi="mean")[0] for start in (compact, plain))
    assert np.array_equal(one.z, other.z)


def test_large_models_cannot_draw_phi(corpus, state, monkeypatch):
    monkeypatch.setattr(samplers, "DENSE_CELLS", V * K - 1)
    with pytest.raises(InputError, match="use phi = 'mean'"):
        lda.run(*corpus, state, 1, 1, "sparse", phi="draw")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": 0}, "K = 0: a model needs at least 1 topic"),
        ({"V": 0}, "vocabulary is empty"),
        ({"V": 2}, "outside 0..1: encode"),
        ({"documents": [0, 1]}, "number of tokens, 3"),
        ({"words": [[0, 1, 2]]}, "flat"),
        ({"words": [0.0, 1.0, 2.0]}, "not whole numbers"),
        ({"words": [0, 1, 2**32]}, "outside 0..2"),
        ({"alpha": [0.1, -0.1]}, "positive"),
        ({"alpha": [0.1, 0.1, 0.1]}, "one for each of the 2 topics"),
        ({"beta": float("nan")}, "beta = nan"),
    ],
)
def test_bad_starts_are_named(change, message):
    good = {"words": [0, 1, 2], "documents": [0, 3], "V": 3, "K": 2, "alpha": 0.1, "beta": 0.01, "key": 1}
    with pytest.raises(InputError, match=message):
        lda.init(**{**good, **change})


def test_bad_runs_are_named(corpus, state):
    for change, message in (
        ({"sampler": "magic"}, "sampler = 'magic'"),
        ({"phi": "mode"}, "phi = 'mode'"),
        ({"sweeps": -1}, "sweeps = -1"),
        ({"threads": 0}, "threads = 0"),
        ({"learning": Learning(every=0)}, "every 0 sweeps"),
        ({"state": state._replace(z=state.z[1:])}, "another corpus"),
        ({"state": state._replace(z=state.z + K)}, "more topics"),
    ):
        with pytest.raises(InputError, match=message):
            lda.run(*corpus, **{"state": state, "sweeps": 1, "key": 1, **change})

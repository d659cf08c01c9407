"""Clusters of documents: planted ones are found, the same bits at any number of threads, and corpora that are odd."""

import numpy as np
import pytest

from tertulia.errors import InputError
from tertulia.kernels import lda
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.core.rng import derive
from tertulia.kernels.core.vectors import padded_width
from tertulia.kernels.lda import clusters, kmeans
from tertulia.kernels.lda import starts as seating

V, K = 200, 8
KEY = derive(5)


def made(D=400, seed=1, longest=60):
    """Documents of one subject each, half of their words of its own 25 and half of any; some are empty."""
    generator = np.random.default_rng(seed)
    lengths, subject = generator.integers(0, longest, size=D), generator.integers(0, K, size=D)
    of_token = np.repeat(subject, lengths)
    own = generator.random(len(of_token)) < 0.5
    words = np.where(own, 25 * of_token + generator.integers(0, 25, len(own)), generator.integers(0, V, size=len(own)))
    return freeze(words, np.int32), freeze(np.concatenate([[0], np.cumsum(lengths)]), np.int64), subject


def purity(labels, subject, documents):
    """The share of documents, those of ten tokens and more, whose cluster has mostly documents of their subject."""
    long = np.diff(documents) >= 10
    together = np.zeros((labels.max() + 1, K))
    np.add.at(together, (labels[long], subject[long]), 1)
    return together.max(axis=1).sum() / long.sum()


def cluster(words, documents, K, key=KEY):
    return clusters.cluster(words, documents, clusters.document_frequency(words, documents, V), K, key)


def test_planted_clusters_are_found():
    words, documents, subject = made()
    labels = cluster(words, documents, K)
    assert labels.min() >= 0
    assert labels.max() < K
    assert purity(labels, subject, documents) > 0.75  # 0.2 by chance
    more = cluster(words, documents, 3 * K)
    assert purity(more, subject, documents) > 0.9
    assert len(np.unique(more)) > 2 * K


@pytest.mark.parametrize("sample", [2_000, 1_000_000])
@pytest.mark.parametrize("cells", [16 * 90, 2**26])
def test_same_bits_at_any_number_of_threads(sample, cells, monkeypatch):
    monkeypatch.setattr(clusters, "_SAMPLE", sample)
    monkeypatch.setattr(clusters, "_CELLS", cells)
    words, documents, _ = made()
    one, two, three = (seating.topics_of_clusters(words, documents, V, 5 * K, KEY, threads) for threads in (1, 2, 3))
    assert np.array_equal(one, two)
    assert np.array_equal(one, three)
    assert not np.array_equal(one, seating.topics_of_clusters(words, documents, V, 5 * K, derive(6)))


def test_a_sample_is_enough(monkeypatch):
    words, documents, subject = made(2_000)
    whole = purity(cluster(words, documents, 2 * K), subject, documents)
    monkeypatch.setattr(clusters, "_SAMPLE", len(words) // 4)
    sample = clusters._sample(documents, KEY)
    assert 0.2 < len(sample) / 2_000 < 0.3
    assert np.diff(documents)[sample].sum() >= len(words) // 4
    assert (np.diff(sample) > 0).all()
    assert purity(cluster(words, documents, 2 * K), subject, documents) > whole - 0.1


def test_rare_words_are_left_out_where_centres_have_no_room(monkeypatch):
    """The 90 words that most documents have are kept; rare ones have no row, and their documents still a cluster."""
    words, documents, subject = made()
    many = clusters.n_clusters(K, len(subject))
    monkeypatch.setattr(clusters, "_CELLS", padded_width(many) * 90)
    seen = []
    found = kmeans.find_centres
    monkeypatch.setattr(kmeans, "find_centres", lambda *given: seen.append(found(*given)) or seen[-1])
    labels = cluster(words, documents, K)
    assert seen[0][0].shape == (90, padded_width(many))
    df = clusters.document_frequency(words, documents, V)
    weight = clusters._word_weights(df, len(subject), many)
    assert (weight > 0).sum() == 90
    assert df[weight > 0].min() >= df[weight == 0].max()
    assert purity(labels, subject, documents) > 0.6


@pytest.mark.parametrize("topics", [K, 40])
def test_half_of_the_tokens_begin_in_their_document_s_cluster(topics):
    """The others begin in the general topics, in all of them equally; of few topics none is general."""
    words, documents, _ = made()
    n = seating.n_general(topics)
    assert n == {K: 0, 40: 2}[topics]
    labels = np.repeat(cluster(words, documents, topics - n, derive(KEY, 0)), np.diff(documents))
    z = seating.topics_of_clusters(words, documents, V, topics, KEY)
    noise = 4.5 * 0.5 / np.sqrt(len(z))
    if n:
        general = z >= topics - n
        assert np.array_equal(z[~general], labels[~general])
        assert general.mean() == pytest.approx(0.5, abs=noise)
        assert (z == topics - 1).mean() == pytest.approx(0.25, abs=noise)
    else:
        assert np.array_equal(z, labels)


def test_words_of_many_documents_begin_in_general_topics():
    """Half of all tokens, in proportion to documents until a word has no more; in any corpus."""
    generator = np.random.default_rng(3)
    df = generator.integers(1, 400, size=50)
    for tokens in (df + generator.integers(0, 20, 50), df * generator.integers(1, 30, 50)):
        share = seating.general_share(tokens, df)
        assert (share * tokens).sum() == pytest.approx(tokens.sum() / 2, rel=1e-5)
        assert share.max() <= 1
        some = share < 1
        assert np.allclose(share[some] / df[some], share[some][0] / df[some][0])
        assert (df[~some] >= df[some].max()).all()
    assert np.allclose(seating.general_share(np.array([5, 5]), np.array([1, 1])), 0.5)
    assert np.allclose(seating.general_share(np.array([90, 10, 0]), np.array([9, 1, 0])), [90 / 164, 10 / 164, 0])
    assert np.allclose(seating.general_share(np.array([60, 40]), np.array([20, 1])), [40 / 48, 0], atol=0.05)
    assert not seating.general_share(np.zeros(2, int), np.zeros(2, int)).any()


@pytest.mark.parametrize("topics", [1, 3, 50, 2_500])
@pytest.mark.parametrize(
    ("words", "documents"),
    [
        ([0, 1, 1, 2], [0, 4]),  # one document
        ([0, 1, 1, 2], [0, 2, 4]),
        ([0, 1, 1, 2], [0, 0, 2, 2, 4, 4]),  # empty ones
        ([1] * 8, [0, 2, 4, 6, 8]),  # all alike
    ],
)
def test_edges(words, documents, topics):
    """Fewer documents than topics, and more topics than seeds that are chosen with care."""
    words, documents = freeze(words, np.int32), freeze(documents, np.int64)
    for threads in (1, 3):
        z = seating.topics_of_clusters(words, documents, 4, topics, KEY, threads)
        assert len(z) == len(words)
        assert z.min() >= 0
        assert z.max() < topics


def test_clusters_that_are_alike_are_merged():
    """Two that share their words become one, however large they are; a small one that is like none stays."""
    centres = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    sizes = np.array([1000.0, 1000.0, 1000.0, 30.0])
    sums = centres * sizes[:, None]
    assert clusters.merge(sums @ sums.T, sizes, 3).tolist() == [0, 0, 1, 2]
    assert clusters.merge(sums @ sums.T, sizes, 4).tolist() == [0, 1, 2, 3]
    assert clusters.merge(sums @ sums.T, sizes, 1).tolist() == [0, 0, 0, 0]


def test_no_merged_cluster_takes_most_of_all_documents():
    """Thirty that are much alike would be one, and keep sixty of ten documents each apart."""
    centres = np.vstack((np.eye(90)[:60], np.ones((30, 90)) + 0.1 * np.eye(90)[60:]))
    sizes = np.repeat([10.0, 1000.0], [60, 30])
    sums = centres / np.linalg.norm(centres, axis=1, keepdims=True) * sizes[:, None]
    found = clusters.merge(sums @ sums.T, sizes, 50)
    tokens = np.bincount(found, sizes)
    assert len(tokens) == 50
    assert tokens.max() <= clusters._LARGEST * tokens.mean() < 0.2 * tokens.sum()


def test_a_merged_cluster_is_the_sum_of_its_own():
    """Merged pair by pair, as if each time the centres and sizes of all that is left were made again."""
    generator = np.random.default_rng(2)
    sums, sizes, K = generator.gamma(0.3, size=(12, 30)), generator.integers(5, 500, size=12).astype(float), 4
    groups = [[a] for a in range(12)]
    while len(groups) > K:
        total = np.array([sums[g].sum(axis=0) for g in groups])
        unit, size = total / np.linalg.norm(total, axis=1, keepdims=True), [sizes[g].sum() for g in groups]
        worth = {(a, b): (1 - unit[a] @ unit[b]) * min(size[a], size[b]) ** clusters._LIKE
                 for a in range(len(groups)) for b in range(a)}  # fmt: skip
        a, b = min(worth, key=worth.get)
        groups[b] += groups.pop(a)
    found = clusters.merge(sums @ sums.T, sizes, K)
    assert sorted(map(sorted, groups)) == sorted(np.flatnonzero(found == k).tolist() for k in range(K))


def test_every_document_is_a_seed_where_there_are_no_more():
    words, documents, _ = made(K, seed=3)
    rows = clusters.rows_of(words, documents, np.arange(K), np.ones(V, np.float32), np.arange(V, dtype=np.int32))
    assert sorted(clusters.seeds(rows, V, K, KEY)) == list(range(K))
    assert sorted(set(clusters.seeds(rows, V, 3 * K, KEY))) == list(range(K))


def test_rows_have_length_one():
    words, documents = freeze([0, 0, 0, 2, 1], np.int32), freeze([0, 4, 4, 5], np.int64)
    weight = np.array([1.0, 2.0, 3.0], np.float32)
    rows = clusters.rows_of(words, documents, np.arange(3), weight, np.arange(3, dtype=np.int32))
    expected = np.array([np.sqrt(3), 3.0])
    assert rows.starts.tolist() == [0, 2, 2, 3]
    assert rows.words.tolist() == [0, 2, 1]
    assert np.allclose(rows.values, [*expected / np.linalg.norm(expected), 1.0])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_are_the_same_for_any_number_of_threads(threads):
    words, documents, _ = made()
    chosen, weight = np.arange(0, 400, 3), np.linspace(0, 2, V).astype(np.float32)  # the first word does not count
    place = np.maximum(np.arange(V) - 1, 0).astype(np.int32)
    rows = clusters.rows_of(words, documents, chosen, weight, place, threads)
    for row, d in enumerate(chosen):
        own = words[documents[d] : documents[d + 1]]
        expected = np.sqrt(np.bincount(own, minlength=V)) * weight
        mine = slice(rows.starts[row], rows.starts[row + 1])
        assert sorted(rows.words[mine]) == [w - 1 for w in np.unique(own[own > 0])]
        assert np.allclose(rows.values[mine], (expected / max(np.linalg.norm(expected), 1e-9))[rows.words[mine] + 1])
        assert rows.sizes[row] == len(own)


def test_topics_of_clusters_have_all_tokens_of_their_documents():
    words, documents, _ = made()
    found = lda.cluster_topics(words, documents, V, K, 0.1, 5, threads=2)
    labels = cluster(words, documents, K, derive(5, lda._INIT))
    counts = np.full((K, V), 0.1)
    np.add.at(counts, (np.repeat(labels, np.diff(documents)), words), 1)
    assert np.allclose(found, counts / counts.sum(axis=1, keepdims=True))
    assert np.allclose(lda.cluster_topics(words[:0], np.zeros(3, np.int64), V, K, 0.1, 5), 1 / V)
    with pytest.raises(InputError, match="K = 0"):
        lda.cluster_topics(words, documents, V, 0, 0.1, 5)

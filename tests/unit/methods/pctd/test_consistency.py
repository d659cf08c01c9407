"""Word vectors and relations, and the consistency step that uses them (PC-TD, eq. 12 and 13)."""

import gzip
import struct

import numpy as np
import pytest
from scipy import sparse

from tertulia.corpus.word_vectors import Relations, WordVectors, read_relations, read_vectors, similarities
from tertulia.errors import InputError
from tertulia.methods.pctd.method import make_consistent

VECTORS = {"sun": [1.0, 0.0], "rain": [0.8, 0.6], "bank": [0.0, -1.0], "wind": [0.6, 0.8]}
WORDS = ("rain", "unknown", "sun", "wind")


def glove(path):
    path.write_text("".join(f"{w} {x} {y}\n" for w, (x, y) in VECTORS.items()) + ". . . 1.0 2.0\n")


def word2vec_text(path):
    glove(path)
    path.write_text("4 2\n" + path.read_text())


def word2vec_binary(path):
    rows = b"".join(w.encode() + b" " + struct.pack("<2f", *v) + b"\n" for w, v in VECTORS.items())
    path.write_bytes(b"4 2\n" + rows)


def npz(path):
    np.savez(path, words=np.array(list(VECTORS)), vectors=np.array(list(VECTORS.values()), np.float16))


def zipped(write):
    def make(path):
        plain = path.with_suffix("")
        write(plain)
        path.write_bytes(gzip.compress(plain.read_bytes()))

    return make


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("glove.txt", glove),
        ("w2v.vec", word2vec_text),
        ("w2v.bin", word2vec_binary),
        ("vectors.npz", npz),
        ("w2v.bin.gz", zipped(word2vec_binary)),
        ("glove.txt.gz", zipped(glove)),
    ],
)
def test_every_format_gives_the_same_vectors(tmp_path, name, write):
    write(tmp_path / name)
    found = read_vectors(tmp_path / name, WORDS)
    assert found.numbers.tolist() == [0, 2, 3]
    assert np.allclose(found.vectors, [VECTORS["rain"], VECTORS["sun"], VECTORS["wind"]], atol=1e-3)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"bank 1 2\n", "holds no vector of any word"),
        ("a.txt", b"sun 1 x\n", "cannot be read"),
        ("a.txt", b"sun nan 1\n", "is not 2 numbers"),
        ("a.bin", b"4 2\nsun \x00\x00", "ends in the middle"),
        ("a.bin", b"what is this", "cannot be read"),
        ("a.npz", b"PK no zip", "cannot be read"),
        ("a.txt.gz", b"no gzip", "cannot be read"),
    ],
)
def test_files_that_are_no_vectors(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_vectors(tmp_path / name, WORDS)
    with pytest.raises(InputError, match="cannot be read"):
        read_vectors(tmp_path / "absent.txt", WORDS)


def test_similarities_are_sparse_symmetric_and_never_negative():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((1500, 20)).astype(np.float32)
    found = similarities(WordVectors(np.arange(1500), vectors), neighbours=3, least=0.5)
    R = found.R.toarray()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit.T
    assert np.array_equal(R, R.T)
    assert np.array_equal(np.diag(R), np.ones(1500))
    off = R - np.eye(1500)
    assert np.allclose(off[off > 0], cosine[off > 0], atol=1e-6)
    assert off[off > 0].min() >= 0.5
    for w in (0, 700, 1499):  # its three nearest are in it, and words that count it among their own three
        order = np.argsort(-(cosine[w] - 2 * (np.arange(1500) == w)))[:3]
        assert set(order[cosine[w, order] >= 0.5]) <= set(np.flatnonzero(off[w]))
    assert (off > 0).sum(axis=1).max() < 60


def test_relations_from_a_list_of_pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("# thesaurus\nsun\train\t0.5\nrain\tsun\t0.7\nwind\train\nsun\tmoon\nsun\tsun\n\n")
    found = read_relations(path, WORDS)
    assert found.numbers.tolist() == [0, 2, 3]  # rain, sun, wind
    assert np.array_equal(found.R.toarray(), [[1.0, 0.7, 1.0], [0.7, 1.0, 0.0], [1.0, 0.0, 1.0]])
    for text, says in [
        ("sun rain\n", "line 1: write two words"),
        ("sun\train\t-1\n", "strength of at least 0"),
        ("sun\train\tbig\n", "strength of at least 0"),
        ("moon\tstar\n", "relates no two words"),
    ]:
        path.write_text(text)
        with pytest.raises(InputError, match=says):
            read_relations(path, WORDS)
    with pytest.raises(InputError, match="cannot be read"):
        read_relations(tmp_path / "absent.tsv", WORDS)


def relations(R, numbers=None) -> Relations:
    R = np.asarray(R, float)
    return Relations(np.arange(len(R)) if numbers is None else np.asarray(numbers), sparse.csr_array(R))


PHI = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]])


def test_fixed_points_of_the_consistency_step():
    every = [
        (PHI, None, 0.3),  # nothing is known
        (PHI, relations(np.eye(4)), 0.0),  # nothing pulls
        (PHI, relations(np.ones((4, 4))), 0.3),  # all words are one: all are pulled alike
        (np.array([[0.5, 0.5, 0.0, 0.0]]), relations(np.eye(4)), 0.3),  # equal words without relatives
        (np.array([[0.0, 1.0, 0.0, 0.0]]), relations(np.eye(4)), 0.3),  # a single word
        (np.array([[0.1, 0.4, 0.2, 0.3]]), relations(np.kron(np.eye(2), np.ones((2, 2)))), 0.3),  # two equal families
    ]
    for phi, known, tau in every:
        assert np.allclose(make_consistent(phi, known, tau), phi, atol=1e-12)


def test_one_step_is_equation_13():
    R = np.array([[1, 0.6, 0, 0], [0.6, 1, 0, 0.2], [0, 0, 1, 0], [0, 0.2, 0, 1.0]])
    for p, found in zip(PHI, make_consistent(PHI, relations(R), 0.3), strict=True):
        moved = np.array([p[w] + 0.3 * p[w] * sum(R[i, w] * p[i] for i in range(4)) / (p @ R @ p) for w in range(4)])
        assert np.allclose(found, moved / moved.sum())


def test_words_without_a_vector_keep_their_probability_to_the_bit():
    R = np.array([[1, 0.9], [0.9, 1]])
    found = make_consistent(PHI, relations(R, [0, 2]), 0.5)
    assert np.array_equal(found[:, [1, 3]], PHI[:, [1, 3]])
    assert not np.allclose(found[:, [0, 2]], PHI[:, [0, 2]])
    assert np.allclose(found.sum(axis=1), 1)
    none = np.array([[0.0, 0.5, 0.0, 0.5]])
    assert np.array_equal(make_consistent(none, relations(R, [0, 2]), 0.5), none)


def test_relatives_pull_each_other_up():
    R = np.eye(4)
    R[0, 1] = R[1, 0] = 0.9
    found = make_consistent(np.full((1, 4), 0.25), relations(R), 0.3)[0]
    assert found[0] == found[1] > 0.25 > found[2] == found[3]

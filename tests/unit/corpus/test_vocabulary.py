import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.corpus.vocabulary import Proposal, disjoint_parties, merge, pack_words, propose, public, unpack_words
from tertulia.errors import FormatError, InputError

PLAIN = TextOptions(stop_words="none")


def test_lookup_index_and_length():
    vocabulary = Vocabulary(("pear", "apple"))
    assert len(vocabulary) == 2
    assert vocabulary.index == {"pear": 0, "apple": 1}
    numbers = vocabulary.lookup(["apple", "plum", "pear"])
    assert numbers.tolist() == [1, -1, 0]
    assert numbers.dtype == np.int32


def test_a_repeated_word_is_refused_by_name():
    with pytest.raises(InputError, match="'pear' more than once"):
        Vocabulary(("pear", "apple", "pear"))


def test_fingerprint_knows_words_order_and_borders():
    assert Vocabulary(("ab", "c")).fingerprint == Vocabulary(("ab", "c")).fingerprint
    different = [("ab", "c"), ("c", "ab"), ("a", "bc"), ("abc",), ()]
    assert len({Vocabulary(words).fingerprint for words in different}) == len(different)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_packed_words_come_back(words):
    blob, offsets = pack_words(words)
    assert blob.dtype == np.uint8
    assert offsets.dtype == np.int64
    assert unpack_words(blob, offsets) == words


@pytest.mark.parametrize(
    ("blob", "offsets"),
    [(b"abc", [0, 2]), (b"abc", [1, 3]), (b"abc", [0, 4, 3]), (b"abc", []), (b"\xff", [0, 1])],
)
def test_damaged_packed_words_are_refused(blob, offsets):
    with pytest.raises(FormatError, match="damaged"):
        unpack_words(np.frombuffer(blob, np.uint8), np.array(offsets, np.int64))


def test_propose_prunes_by_document_frequency():
    corpus = Corpus.from_texts(["oak oak elm", "oak elm fir", "oak ash"], options=PLAIN)
    everything = propose(corpus)
    assert dict(zip(everything.words, everything.counts.tolist(), strict=True)) == {
        "oak": 3,
        "elm": 2,
        "fir": 1,
        "ash": 1,
    }
    assert everything.n_documents == 3
    assert everything.words == ["ash", "elm", "fir", "oak"]  # sorted: the order of appearance stays private
    assert propose(corpus, min_documents=2).words == ["elm", "oak"]
    assert propose(corpus, min_documents=2, max_share=0.7).words == ["elm"]


def test_a_party_with_one_document_has_words_to_propose():
    corpus = Corpus.from_texts(["oak elm"], options=PLAIN)
    assert propose(corpus, max_share=0.5).words == ["elm", "oak"]
    assert merge({"one": propose(corpus)}, max_share=0.5).words == ("elm", "oak")


def test_merge_orders_by_total_count_then_word():
    proposals = {
        "north": Proposal(["bank", "river", "sand"], [3, 1, 2], 4),
        "south": Proposal(["river", "bank", "atlas"], [1, 1, 2], 3),
    }
    assert merge(proposals).words == ("bank", "atlas", "river", "sand")
    assert merge(proposals, "min_parties", min_parties=2).words == ("bank", "river")
    assert merge(proposals, min_documents=3).words == ("bank",)
    assert merge(proposals, max_share=0.5).words == ("atlas", "river", "sand")
    assert merge(proposals, max_words=2).words == ("bank", "atlas")


words = st.sampled_from(["a", "b", "c", "d", "é", "ж", "中"])
party = st.dictionaries(words, st.integers(1, 5), min_size=1).map(lambda d: Proposal(list(d), list(d.values()), 5))


@given(st.dictionaries(st.text("xyz", min_size=1), party, min_size=1, max_size=4), st.randoms(), st.integers(1, 3))
def test_merge_depends_neither_on_order_nor_on_names(proposals, random, min_parties):
    def merged(given):
        try:
            return merge(given, "min_parties", min_parties=min_parties).words
        except InputError:
            return None

    shuffled = list(proposals.values())
    random.shuffle(shuffled)
    renamed = {f"party{i}": proposal for i, proposal in enumerate(shuffled)}
    assert merged(renamed) == merged(proposals)


@given(st.dictionaries(st.text("xyz", min_size=1), party, min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 6))
def test_merge_is_its_definition(proposals, min_parties, min_documents):
    every = {word for proposal in proposals.values() for word in proposal.words}
    held = {
        w: [dict(zip(p.words, p.counts, strict=True))[w] for p in proposals.values() if w in p.words] for w in every
    }
    kept = [w for w in every if len(held[w]) >= min_parties and sum(held[w]) >= min_documents]
    expected = tuple(sorted(kept, key=lambda w: (-sum(held[w]), w)))
    if expected:
        assert merge(proposals, "min_parties", min_parties, min_documents).words == expected
    else:
        with pytest.raises(InputError, match="empty"):
            merge(proposals, "min_parties", min_parties, min_documents)


def test_an_empty_merge_says_what_to_loosen():
    proposals = {"north": (["sun"], [1], 1), "south": (["moon"], [1], 1)}
    with pytest.raises(InputError, match=r"of 2 proposed words 2 have too few parties.*min_parties \(now 2\)"):
        merge(proposals, "min_parties", min_parties=2)
    with pytest.raises(InputError, match=r"2 too few or too many documents.*min_documents \(now 9\)"):
        merge(proposals, min_documents=9)
    with pytest.raises(InputError, match="no word was proposed by any of the 1 parties"):
        merge({"north": ([], [], 3)})
    with pytest.raises(InputError, match="mode 'all' is unknown"):
        merge(proposals, "all")


def test_disjoint_parties_are_named():
    sun, moon, both = (["sun"], [1], 1), (["moon"], [1], 1), (["moon", "sun"], [1, 1], 1)
    assert disjoint_parties({"a": sun, "b": sun, "c": moon}) == ["c"]
    assert disjoint_parties({"a": sun, "b": both, "c": moon}) == []
    assert disjoint_parties({"a": sun, "b": moon}) == ["a", "b"]
    assert disjoint_parties({"a": sun}) == []


def test_public_words_from_a_file_or_a_list(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("# colours\nrojo\n\n verde \nrojo\nañil\n", encoding="utf-8")
    assert public(file).words == public(str(file)).words == ("rojo", "verde", "añil")
    assert public(["b", "a", "b"]).words == ("b", "a")


def test_a_bad_public_list_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the public word list .*No such file"):
        public(tmp_path / "nowhere.txt")
    (tmp_path / "latin.txt").write_bytes("añil".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8"):
        public(tmp_path / "latin.txt")
    with pytest.raises(InputError, match="holds no word"):
        public([" "])

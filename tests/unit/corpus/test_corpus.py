import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tertulia.corpus import Corpus, TextOptions, Vocabulary
from tertulia.corpus.builder import Builder
from tertulia.corpus.splits import is_heldout
from tertulia.errors import FormatError, InputError

PLAIN = TextOptions(stop_words="none", min_length=1)
TEXTS = ["Oak elm. Fir oak!\n\nAsh.", "", "Elm elm elm elm. Fir."]
word = st.sampled_from(["oak", "elm", "fir", "ash", "yew"])
sentence = st.lists(word, max_size=5).map(lambda words: " ".join(words).capitalize() + ". ")
text = st.lists(st.lists(sentence, max_size=3).map("".join), max_size=3).map("\n\n".join)
texts = st.lists(text, max_size=6)


def corpus_of(given, **more):
    return Corpus.from_texts(given, options=PLAIN, **more)


def nested(corpus):
    """Return every document as sentences of words, by a simple slow method."""
    words = [corpus.vocabulary.words[w] for w in corpus.words]
    spans = list(pairwise(corpus.sentences.tolist()))
    documents = pairwise(corpus.documents.tolist())
    return [[words[a:b] for a, b in spans if start <= a and b <= end] for start, end in documents]


def check(corpus):
    """Check the invariants of the class."""
    N = corpus.n_tokens
    assert corpus.words.dtype == np.int32
    assert corpus.documents.dtype == np.int64
    for offsets in (corpus.sentences, corpus.paragraphs):
        assert offsets[0] == 0
        assert offsets[-1] == N
        assert np.all(np.diff(offsets) > 0)
        assert set(corpus.documents.tolist()) <= set(offsets.tolist())
    assert set(corpus.paragraphs.tolist()) <= set(corpus.sentences.tolist())
    assert corpus.table.height == corpus.n_documents


def test_exact_arrays():
    corpus = corpus_of(TEXTS, ids=["a", "b", "c"], labels=["x", "y", "x"])
    assert corpus.vocabulary.words == ("oak", "elm", "fir", "ash")
    assert corpus.words.tolist() == [0, 1, 2, 0, 3, 1, 1, 1, 1, 2]
    assert corpus.documents.tolist() == [0, 5, 5, 10]
    assert corpus.sentences.tolist() == [0, 2, 4, 5, 9, 10]
    assert corpus.paragraphs.tolist() == [0, 4, 5, 10]
    assert corpus.lengths.tolist() == [5, 0, 5]
    assert corpus.table.to_dict(as_series=False) == {"id": ["a", "b", "c"], "label": ["x", "y", "x"]}
    assert corpus.document_frequency().tolist() == [1, 2, 2, 1]
    assert corpus.report.noted == {"no word left after tokenisation": 1}
    assert corpus.report.examples == {"no word left after tokenisation": "text 1"}
    check(corpus)


def test_exact_units():
    corpus = corpus_of(TEXTS)
    assert corpus.units("sentence").tolist() == [[0, 2], [2, 4], [4, 5], [5, 9], [9, 10]]
    assert corpus.units("paragraph").tolist() == [[0, 4], [4, 5], [5, 10]]
    assert corpus.units("ngram", n=3).tolist() == [[0, 2], [2, 4], [4, 5], [5, 8], [8, 9], [9, 10]]
    with pytest.raises(InputError, match="unit 'word'"):
        corpus.units("word")
    with pytest.raises(InputError, match="n of at least 1"):
        corpus.units("ngram", n=0)


@given(texts, st.sampled_from(["ngram", "sentence", "paragraph"]), st.integers(1, 4))
def test_units_cover_every_token_once(given, kind, n):
    corpus = corpus_of(given)
    units = corpus.units(kind, n)
    assert units.shape[1] == 2
    assert [t for start, end in units.tolist() for t in range(start, end)] == list(range(corpus.n_tokens))
    if kind == "ngram":
        assert np.all(np.diff(units) <= n)
        assert set(corpus.sentences.tolist()) <= {0, *units[:, 1].tolist()}


@given(texts, st.data())
def test_select_takes_documents_whole(given, data):
    corpus = corpus_of(given, ids=[str(i) for i in range(len(given))])
    which = data.draw(st.lists(st.integers(0, len(given) - 1), max_size=8)) if given else []
    chosen = corpus.select(which)
    check(chosen)
    assert nested(chosen) == [nested(corpus)[i] for i in which]
    assert chosen.table["id"].to_list() == [str(i) for i in which]
    mask = np.isin(np.arange(len(given)), which)
    assert nested(corpus.select(mask)) == [nested(corpus)[i] for i in sorted(set(which))]


@given(texts, st.lists(word, unique=True))
def test_encode_drops_only_unknown_words(given, known):
    corpus = corpus_of(given)
    coded = corpus.encode(Vocabulary(tuple(known)))
    check(coded)
    kept = [[[w for w in sentence if w in known] for sentence in document] for document in nested(corpus)]
    assert nested(coded) == [[sentence for sentence in document if sentence] for document in kept]
    assert coded.n_documents == corpus.n_documents


@given(texts)
def test_document_frequency_is_its_definition(given):
    corpus = corpus_of(given)
    documents = [{w for sentence in document for w in sentence} for document in nested(corpus)]
    assert corpus.document_frequency().tolist() == [sum(w in d for d in documents) for w in corpus.vocabulary.words]


def test_document_frequency_in_blocks(monkeypatch):
    corpus = corpus_of(TEXTS * 50)
    whole = corpus.document_frequency()
    monkeypatch.setattr("tertulia.corpus.corpus._BLOCK", 7)
    assert corpus.document_frequency().tolist() == whole.tolist()


@given(st.lists(texts, min_size=1, max_size=3))
def test_concatenate_pools_documents(given):
    corpora = [corpus_of(part) for part in given]
    pooled = Corpus.concatenate(corpora)
    check(pooled)
    assert nested(pooled) == [document for corpus in corpora for document in nested(corpus)]
    assert pooled.report.kept == sum(map(len, given))


def test_concatenate_unites_vocabularies_and_tables():
    pooled = Corpus.concatenate([corpus_of(["elm oak"], labels=["x"]), corpus_of(["oak fir"])])
    assert pooled.vocabulary.words == ("elm", "oak", "fir")
    assert pooled.table["label"].to_list() == ["x", None]
    with pytest.raises(InputError, match="nothing to concatenate"):
        Corpus.concatenate([])


def test_split_is_by_id_and_stable_as_data_grow():
    texts = [f"oak{i} elm" for i in range(400)]
    train, heldout = corpus_of(texts).split(0.25, seed=3)
    assert train.n_documents + heldout.n_documents == 400
    assert 70 <= heldout.n_documents <= 130
    bigger = corpus_of([f"fir{i}" for i in range(50)] + texts[::-1])
    again = set(bigger.split(0.25, seed=3)[1].table["id"])
    assert set(heldout.table["id"]) <= again
    assert again.isdisjoint(train.table["id"])
    other = corpus_of(texts).split(0.25, seed=4)[1]
    assert set(other.table["id"]) != set(heldout.table["id"])
    assert [c.n_documents for c in corpus_of(texts).split(0.0)] == [400, 0]


@given(st.text("ab1", max_size=5), st.floats(0, 1), st.floats(0, 1), st.integers(0, 9))
def test_a_larger_share_holds_out_more(name, small, large, seed):
    if small <= large and is_heldout(name, small, seed):
        assert is_heldout(name, large, seed)


def test_wrong_choices_are_errors():
    corpus = corpus_of(TEXTS)
    with pytest.raises(InputError, match="a mask of 2 does not fit 3 documents"):
        corpus.select([True, False])
    for wrong in ([3], [-1]):
        with pytest.raises(InputError, match="numbered 0 to 2"):
            corpus.select(wrong)
    with pytest.raises(InputError, match=r"heldout = 1\.5"):
        corpus.split(1.5)
    with pytest.raises(InputError, match="not a single one"):
        Corpus.from_texts("oak")
    with pytest.raises(InputError, match="text 1 is NoneType"):
        Corpus.from_texts(["oak", None])
    with pytest.raises(InputError, match="1 ids were given for 2 texts"):
        Corpus.from_texts(["oak", "elm"], ids=["a"])


def test_arrays_that_do_not_fit_are_refused():
    corpus = corpus_of(TEXTS)
    with pytest.raises(InputError, match="do not fit a table of 3 rows"):
        Corpus(corpus.words, corpus.documents[1:], corpus.sentences, corpus.paragraphs, corpus.vocabulary, corpus.table)
    with pytest.raises(InputError, match="offsets of sentences must run from 0 to 10"):
        Corpus(
            corpus.words, corpus.documents, corpus.sentences[:-1], corpus.paragraphs, corpus.vocabulary, corpus.table
        )


def test_default_ids_name_the_text_and_duplicates_are_noted():
    corpus = corpus_of(["oak", "elm", "oak"])
    names = corpus.table["id"].to_list()
    assert names[0] == names[2] != names[1]
    assert corpus.report.noted == {"id seen before": 1}
    assert corpus.n_documents == 3


@pytest.mark.parametrize("mmap", [True, False])
def test_a_saved_corpus_comes_back(tmp_path, mmap):
    corpus = corpus_of(TEXTS, labels=["x", "y", "x"])
    corpus.save(tmp_path / "deep" / "corpus")
    loaded = Corpus.load(tmp_path / "deep" / "corpus", mmap=mmap)
    for name in ("words", "documents", "sentences", "paragraphs"):
        ours, theirs = getattr(corpus, name), getattr(loaded, name)
        assert theirs.dtype == ours.dtype
        assert theirs.tolist() == ours.tolist()
        assert isinstance(theirs.base, np.memmap) == mmap
    assert loaded.vocabulary == corpus.vocabulary
    assert loaded.options == corpus.options
    assert loaded.report == corpus.report
    assert loaded.table.equals(corpus.table)


def test_saving_over_a_mapped_corpus_leaves_it_whole(tmp_path):
    corpus_of(TEXTS).save(tmp_path)
    mapped = Corpus.load(tmp_path)
    before = mapped.words.tolist()
    mapped.select([2]).save(tmp_path)
    assert mapped.words.tolist() == before
    assert Corpus.load(tmp_path).n_documents == 1


def test_an_empty_corpus_round_trips(tmp_path):
    for corpus in (corpus_of([]), corpus_of(["", ""])):
        check(corpus)
        corpus.save(tmp_path)
        assert Corpus.load(tmp_path).n_documents == corpus.n_documents
        assert corpus.units("ngram").shape == (0, 2)


def test_unfinished_damaged_and_newer_directories_are_refused(tmp_path):
    corpus_of(TEXTS).save(tmp_path)
    (folder,) = tmp_path.glob("corpus-arrays-*")
    words = (folder / "words.npy").read_bytes()
    (folder / "words.npy").write_bytes(words[:-8])
    with pytest.raises(FormatError, match=r"words\.npy is missing or damaged"):
        Corpus.load(tmp_path)
    (folder / "words.npy").write_bytes(words)
    (folder / "table.parquet").write_bytes(b"PAR1")
    with pytest.raises(FormatError, match=r"table\.parquet is missing or damaged"):
        Corpus.load(tmp_path)
    mark = json.loads((tmp_path / "corpus.json").read_text())
    (tmp_path / "corpus.json").write_text(json.dumps({**mark, "format": 99}))
    with pytest.raises(FormatError, match="format 99, this version reads 1: update tertulia"):
        Corpus.load(tmp_path)
    (tmp_path / "corpus.json").unlink()
    with pytest.raises(InputError, match="no finished corpus"):
        Corpus.load(tmp_path)


@settings(max_examples=20)
@given(texts)
def test_building_on_disk_equals_building_in_memory(tmp_path_factory, given):
    directory = tmp_path_factory.mktemp("corpus")
    builder = Builder(PLAIN, directory)
    for i, each in enumerate(given):
        builder.add(str(i), each, label="x")
    on_disk, in_memory = builder.finish(), corpus_of(given, ids=[str(i) for i in range(len(given))])
    for corpus in (on_disk, Corpus.load(directory)):
        assert nested(corpus) == nested(in_memory)
        assert corpus.sentences.dtype == in_memory.sentences.dtype == np.int32
        assert corpus.vocabulary == in_memory.vocabulary
    assert not list(directory.rglob("*.part"))


def test_building_on_disk_in_many_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("tertulia.corpus.builder._BLOCK", 3)
    monkeypatch.setattr("tertulia.corpus.builder._BLOCK", 16)
    builder = Builder(PLAIN, tmp_path)
    for i in range(40):
        builder.add(str(i), TEXTS[i % 3])
    assert nested(builder.finish()) == nested(corpus_of([TEXTS[i % 3] for i in range(40)]))


def test_an_abandoned_builder_leaves_what_was_there(tmp_path):
    for before in (None, corpus_of(TEXTS)):
        if before is not None:
            before.save(tmp_path)
        files = sorted(tmp_path.rglob("*"))
        builder = Builder(PLAIN, tmp_path)
        builder.add("a", "oak")
        builder.close()
        assert sorted(tmp_path.rglob("*")) == files
    assert nested(Corpus.load(tmp_path)) == nested(corpus_of(TEXTS))

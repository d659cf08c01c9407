"""What the explorer is made of: topics in little space, edits that come back, and input that is checked."""

import base64
import json
import re
import zlib

import numpy as np
import pytest

import tertulia as tt
from helpers.explored import counted_model, made_up_words
from tertulia import Topics
from tertulia.corpus import Vocabulary
from tertulia.errors import InputError
from tertulia.models.edits import digest_of
from tertulia.view.pages.explorer import explorer
from tertulia.view.pages.explorer.facts import reader_of
from tertulia.view.pages.explorer.packing import error_of, pack

K, V = 50, 10_000
ALPHA = np.full(K, 0.1)


def unpacked(text, K, V):
    """What the page's script does."""
    data, rows = zlib.decompress(base64.b64decode(text)), []
    at = 0

    def planes(n):
        nonlocal at
        width = data[at]
        found = np.frombuffer(data, np.uint8, width * n, at + 1).reshape(width, n)
        at += 1 + width * n
        return sum(plane.astype(np.uint32) << np.uint32(8 * i) for i, plane in enumerate(found))

    for _ in range(K):
        row = np.full(V, np.frombuffer(data, "<f4", 1, at)[0])
        entries, own = np.frombuffer(data, "<u4", 2, at + 4)
        at += 12
        places = np.cumsum(planes(entries).astype(np.int64) + 1) - 1
        values = planes(own or entries).astype("<u4").view("<f4")
        row[places] = values[planes(entries)] if own else values
        rows.append(row)
    assert at == len(data)
    return np.array(rows)


@pytest.mark.parametrize("prior", [0.02, 0.1, 1.0])
def test_what_is_packed_is_unpacked(prior):
    phi = np.random.default_rng(0).dirichlet(np.full(3_000, prior), 6)
    packed = pack(phi)
    assert packed.is_exact
    assert np.array_equal(unpacked(packed.text, 6, 3_000), packed.topic_word)
    seen = phi >= 1e-9 * phi.max(axis=0)
    assert np.array_equal(packed.topic_word[seen], phi.astype(np.float32)[seen])


def test_counted_topics_take_little_space_and_lose_nothing():
    model = counted_model(K, V)
    packed = pack(model.topic_word)
    assert packed.is_exact
    assert np.array_equal(packed.topic_word, model.topic_word.astype(np.float32))
    assert error_of(packed, model.topic_word, model.alpha) == 0.0
    assert len(explorer(model).encode()) < 600_000


def test_a_page_of_fifty_topics_has_less_than_a_megabyte_whatever_they_are():
    phi = np.random.default_rng(0).dirichlet(np.full(V, 0.1), K)
    model = Topics(phi, Vocabulary(tuple(made_up_words(V))), ALPHA, weights=np.ones(K))
    page = explorer(model)
    assert len(page.encode()) < 1_000_000
    error = json.loads(re.search(r'id="facts">(.*?)</script>', page)[1])["reader"]["error"]
    assert 0 < error < 0.02


def test_fewer_digits_cost_little():
    phi = np.random.default_rng(1).dirichlet(np.full(2_000, 0.1), 20)
    exact, coarse = pack(phi), pack(phi, most=60_000)
    assert (exact.is_exact, coarse.is_exact) == (True, False)
    assert len(coarse.text) < len(exact.text) / 2
    assert np.array_equal(unpacked(coarse.text, 20, 2_000), coarse.topic_word)
    assert 0 < error_of(coarse, phi, np.full(20, 0.1)) < 0.02


def test_pages_ask_for_nothing_outside(tmp_path):
    page = counted_model(3, 30).explore(tmp_path / "topics.html").read_text()
    assert not re.search(r"""(?:src|href)=["'](?!data:,|#)""", page)
    assert 'content="default-src &#x27;none&#x27;;' in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_estimators_explore_their_topics(tmp_path):
    fitted = tt.LDA(topics=2, sweeps=2, random_state=0).fit(["rain falls", "sun shines"] * 5, progress=False)
    assert fitted.explore(tmp_path / "a.html").read_text() == fitted.topics_.explore(tmp_path / "b.html").read_text()


def test_one_topic_and_one_word_are_explored_too(tmp_path):
    one = Topics([[1.0]], Vocabulary(("rain",)))
    assert "rain" in one.explore(tmp_path / "one.html", ["rain and rain"]).read_text()


def test_edits_are_checked(tmp_path):
    model = counted_model(4, 40)
    good = {"format": "tertulia names", "model": digest_of(model), "names": {"1": "rain"}, "hidden": [2], "merged": []}
    assert model.edit(good) == model.rename({1: "rain"}).hide([2])
    assert model.rename({0: "old"}).edit(good).names == ["", "rain", "", ""]
    for change, why in (
        ({"format": "other"}, "no names of topics"),
        ({"model": "other"}, "another model"),
        ({"names": {"9": "x"}}, "names topic 9"),
        ({"names": {"x": "x"}}, "damaged"),
        ({"names": {"1": 2}}, "damaged"),
        ({"hidden": ["2"]}, "damaged"),
        ({"merged": [[1]]}, "two topics or more"),
        ({"hidden": [7]}, "no topic 7"),
    ):
        with pytest.raises(InputError, match=why):
            model.edit(good | change)
    (tmp_path / "names.json").write_text("{")
    with pytest.raises(InputError, match="no JSON"):
        model.edit(tmp_path / "names.json")
    with pytest.raises(InputError, match="cannot read"):
        model.edit(tmp_path / "absent.json")


def test_documents_are_checked(tmp_path):
    model, page = counted_model(4, 40), tmp_path / "x.html"
    known = " ".join(model.vocabulary.words[:20])
    with pytest.raises(InputError, match="belong to documents"):
        model.explore(page, labels=["a"])
    with pytest.raises(InputError, match="2 labels were given for 1 documents"):
        model.explore(page, [known], labels=["a", "b"])
    with pytest.raises(InputError, match="no document holds a word"):
        model.explore(page, ["unheard"])
    with pytest.raises(InputError, match="cannot write"):
        model.explore(tmp_path / "nowhere" / "x.html")
    assert not page.exists()
    assert model.explore(page, [known.split()]).exists()  # lists of words, too


def test_the_command_writes_pages_and_tables(tmp_path, tertulia):
    model = counted_model(5, 60)
    saved = model.save(tmp_path / "model")
    code, _, said = tertulia("explore", saved, "-o", tmp_path / "t.html", "--export", tmp_path / "t.parquet")
    assert (code, "5 topics written" in said, "open it in a browser" in said) == (0, True, True)
    import polars as pl

    assert pl.read_parquet(tmp_path / "t.parquet").equals(model.topics_table(20))
    texts = [" ".join(model.vocabulary.words[i : i + 9]) for i in range(30)]
    rows = [{"body": text, "day": f"2026-0{i % 9 + 1}-01", "w": "a"} for i, text in enumerate(texts)]
    (tmp_path / "notes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    given = ["--data", tmp_path / "notes.jsonl"]
    given += ["--column", "text=body", "--column", "date=day", "--column", "label=w"]
    code, _, said = tertulia("explore", saved, "-o", tmp_path / "d.html", *given, "--compare", saved)
    assert (code, "it holds texts: do not pass it on" in said) == (0, True)
    facts = json.loads(re.search(r'id="facts">(.*?)</script>', (tmp_path / "d.html").read_text())[1])
    assert [period["name"] for period in facts["trends"]["periods"]] == [f"2026-0{i}" for i in range(1, 10)]
    assert {row["similarity"] for row in facts["compare"]["rows"]} == {1.0}


def test_the_command_says_what_is_missing(tmp_path, tertulia):
    saved = counted_model(5, 60).save(tmp_path / "model")
    for given, why in (
        (["--save", tmp_path / "x"], "give --names"),
        (["--column", "text=body"], "give --data"),
        (["--data", tmp_path / "x.csv", "--column", "ward=w"], "write text=NAME"),
        (["--export", tmp_path / "x.doc"], "name the output .parquet"),
    ):
        code, _, said = tertulia("explore", saved, "-o", tmp_path / "t.html", *given)
        assert (code, why in said) == (1, True), said


def test_a_run_shows_which_parties_hold_a_topic_if_they_released_models(tmp_path, tertulia, worded):
    parties = {"north": worded(0, 40), "south": worded(1, 40)}
    for method, named in ((tt.FTM(topics=3, sweeps=5), ["north", "south"]), (tt.Consensus(topics=3, rounds=2), None)):
        run = tmp_path / type(method).__name__
        method.fit(parties, directory=run, progress=False)
        assert tertulia("explore", run, "-o", tmp_path / "page.html")[0] == 0
        facts = json.loads(re.search(r'id="facts">(.*?)</script>', (tmp_path / "page.html").read_text())[1])
        assert (facts["parties"] or {}).get("names") == named


def test_options_that_the_page_does_not_know_are_named(monkeypatch):
    model = counted_model(3, 30)
    assert reader_of(model)["why"] is None
    known = model.options.to_dict()
    monkeypatch.setattr(type(model.options), "to_dict", lambda self: {**known, "stemmer": "porter"})
    assert "(stemmer) which a page cannot run" in reader_of(model)["why"]

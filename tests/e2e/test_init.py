"""`tertulia init` without members: a config and a policy that pass `check`, and can be run."""

import io
import json
import sys

import pytest


@pytest.fixture
def place(tmp_path, worded, monkeypatch):
    for i, name in enumerate(("north", "south")):
        rows = [json.dumps({"text": text}) for text in worded(i, 30)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    (tmp_path / "words.txt").write_text("winter\nletter\nbridge\nmarket\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


PARTIES = ("--party", "north=north.jsonl", "--party", "south=south.jsonl")


def test_what_is_proposed_can_be_checked_and_run(tertulia, place):
    code, out, err = tertulia("init", "first", *PARTIES, "--set", "topics=3", "--yes")
    assert code == 0, err
    next_ones = [line.removeprefix("next:").strip() for line in out.splitlines() if "tertulia " in line]
    assert next_ones == [
        "tertulia check first/run.toml", "tertulia run first/run.toml", "tertulia topics first/runs/first"
    ]  # fmt: skip
    for command in next_ones:
        code, _, err = tertulia(*command.split()[1:])
        assert code == 0, err
    code, _, err = tertulia("init", "first", *PARTIES, "--yes")
    assert code == 1
    assert "first/run.toml exists" in err


def test_a_private_run_has_a_policy_that_lets_nothing_out_in_clear(tertulia, place):
    answers = ("--set", "private=yes", "--set", "topics=2", "--set", "words=words.txt", "--set", "method=ftm")
    code, _, err = tertulia("init", ".", *PARTIES, *answers, "--yes")
    assert code == 0, err
    code, out, err = tertulia("check", "run.toml", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["train"]["mode"] == "sound"
    assert {row["verdict"] for row in report["disclosed"]} == {"allowed"}
    assert "clear" not in {row["mechanism"] for row in report["disclosed"]}
    assert {row["real_epsilon"] for row in report["totals"] if row["unit"] == "token"} == {8}
    (place / "clear.toml").write_text((place / "run.toml").read_text().replace('"sound"', '"clear"'))
    assert tertulia("check", "clear.toml")[0] != 0


def test_questions_are_asked_again_until_answers_can_be_used(tertulia, place, monkeypatch):
    typed = ["", "north=nowhere.jsonl", "north", "north=north.jsonl", "south=south.jsonl", "", "body", "text", "lda"]
    typed += ["ftm", "one", "4", "perhaps", "no", "klingon", "de"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(typed) + "\n"))
    code, _, err = tertulia("init", "asked")
    assert code == 0, err
    complaints = ("does not exist", "write it as NAME=VALUE", "at least one", "no column 'body'", "consensus or ftm")
    complaints += ("a whole number from 2", "write yes or no", "no stop words are known for language 'klingon'")
    assert all(text in err for text in complaints)
    text = (place / "asked" / "run.toml").read_text()
    assert 'name = "ftm"\ntopics = 4\n' in text
    assert 'language = "de"' in text
    assert 'path = "../north.jsonl"' in text


def test_columns_may_differ_by_party(tertulia, place):
    (place / "west.jsonl").write_text((place / "south.jsonl").read_text().replace('"text"', '"note"'))
    parties = ("--party", "north=north.jsonl", "--party", "west=west.jsonl", "--yes")
    code, _, err = tertulia("init", "two", *parties, "--set", "column=north=text,west=note")
    assert code == 0, err
    assert tertulia("check", "two/run.toml")[0] == 0
    code, _, err = tertulia("init", "less", *parties, "--set", "column=north=text")
    assert (code, "party 'west': name the column of each party" in err) == (1, True)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((), "--party NAME=FILE"),
        (("--party", "north=north.jsonl", "--set", "private=yes"), "one party trains alone, and nothing leaves"),
        ((*PARTIES, "--set", "topics=many"), "topics = 'many': write a whole number"),
        ((*PARTIES, "--set", "colour=red"), "there is no such answer"),
        ((*PARTIES, "--set", "private=yes", "--set", "language=de"), "nothing can be proposed for 'words'"),
        ((*PARTIES, "--party", "north=south.jsonl"), "is given twice"),
        ((*PARTIES, "--members", "a,b"), "--party and --set are for one machine"),
        (("--address", "here:1"), "--address is for a federation"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(tertulia, place, given, text):
    code, out, err = tertulia("init", "bad", *given, "--yes")
    assert (code, out) == (1, "")
    assert text in err
    assert err.count("\n") == 1
    assert not (place / "bad").exists()


def test_without_answers_it_ends(tertulia, place, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    code, _, err = tertulia("init", "asked")
    assert code == 1
    assert "--yes" in err


def test_one_corpus_needs_no_federation(tertulia, place):
    code, out, err = tertulia("init", "one", "--party", "notes=north.jsonl", "--set", "topics=2", "--yes")
    assert code == 0, err
    assert "Nothing is protected" not in out
    text = (place / "one" / "run.toml").read_text()
    assert 'name = "alone"\ntopics = 2\n' in text
    assert "mode" not in text.split("[method.vocabulary]")[0]
    code, _, err = tertulia("run", "one/run.toml")
    assert code == 0, err
    assert tertulia("topics", "one/runs/one")[0] == 0


def test_a_file_is_trained_without_a_config(tertulia, place):
    code, out, err = tertulia("train", "north.jsonl", "-k", "3", "--seeds", "cold=winter, letter", "-o", "cold")
    assert code == 0, err
    assert "next: tertulia topics cold" in out
    code, out, _ = tertulia("topics", "cold", "--json")
    assert code == 0
    assert json.loads(out)["names"] == ["cold", "", ""]
    code, out, _ = tertulia("train", "north.jsonl", "south.jsonl", "-k", "2", "-o", "two", "--json")
    facts = json.loads(out)
    assert (code, facts["directory"], facts["topics"], facts["documents"]) == (0, "two", 2, 60)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("north.jsonl", "--seeds", "cold"), "write NAME=WORD,WORD"),
        (("north.jsonl", "--seeds", "cold=,"), "write NAME=WORD,WORD"),
        (("north.jsonl", "--seeds", "a=winter", "--seeds", "a=letter"), "given twice"),
        (("north.jsonl", "--seeds", "a=klingon"), "seeds of 'a': none of klingon is among"),
        (("north.jsonl", "-o", "."), "exists and is not empty"),
        (("nowhere.jsonl",), "nowhere.jsonl"),
        (("north.jsonl", "--language", "klingon"), "language 'klingon'"),
    ],
)
def test_wrong_arguments_of_train_are_named(tertulia, place, given, text):
    code, _, err = tertulia("train", *given)
    assert (code, text in err) == (1, True), err
    assert not (place / "model").exists()

"""Words, names and reasons of a party steer the terminal, or break it with rich's markup: they print as text."""

import json

import numpy as np
import pytest

import tertulia as tt
from tertulia._plain import plain, plain_json
from tertulia.corpus import Vocabulary
from tertulia.view import console

EVIL = ("[/x]", "red\x1b[31m", "bell\x07", "[bold]b", "c1\x9b2J", "turn\u202eed")


@pytest.fixture
def model(tmp_path):
    made = tt.Topics(np.full((1, len(EVIL)), 1 / len(EVIL)), Vocabulary(EVIL))
    made.save(tmp_path / "model")
    return tmp_path / "model"


def harmless(text):
    return not any(mark in text for mark in ("\x1b", "\x07", "\x9b", "\u202e"))


def test_topics(tertulia, model):
    code, out, err = tertulia("topics", model)
    assert code == 0, err
    assert harmless(out)
    assert "[/x]" in out
    assert "[bold]b" in out
    assert r"\x1b[31m" in out


def test_topics_as_json_mean_what_they_say(tertulia, model):
    code, out, _ = tertulia("topics", model, "--json")
    assert code == 0
    assert harmless(out)
    assert set(json.loads(out)["topics"][0]) == set(EVIL)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_transform_with_an_evil_id(tertulia, model, tmp_path):
    rows = [{"id": "[/x] \x1b]0;title\x07", "text": "rain"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = tertulia("transform", model, tmp_path / "rows.jsonl", "--id", "id")
    assert code == 0, err
    assert harmless(out)
    assert "[/x]" in out


def test_reasons_titles_and_progress(capsys):
    console.say("warning: party 'b' [/x] \x1b[2J")
    console.show("[/x] \x1b[2J")
    console.table("[/x] \x1b[2J", ["[/x]"], [["[/x]"]])
    with console.RoundProgress(2, "[/x] \x1b[2J") as progress:
        progress("warning", {"text": "[/x] \x1b[2J"})
    captured = capsys.readouterr()
    assert "\x1b[2J" not in captured.out + captured.err
    assert r"[/x] \x1b[2J" in captured.out
    assert r"[/x] \x1b[2J" in captured.err


def test_a_model_shows_itself_harmlessly(model):
    assert harmless(repr(tt.Topics.load(model)))


def test_half_a_character_is_written_out():
    assert plain("a\ud800\tb\n") == "a\\ud800\tb\n"
    assert json.loads(plain_json('"\x9b"')) == "\x9b"

"""Rows 31 and 33: bytes that kill a party's process, and failures that name paths, or the run that the party is in."""

import numpy as np
import pytest

from helpers.attacks import LIST, OPEN, PUBLIC, Attacked, edit_json, method_of, says_nothing
from tertulia.federation.codec import decode
from tertulia.federation.messages import DISCLOSURES, Inquiry
from tertulia.methods.pctd.method import UnitTask, expect
from tertulia.methods.pctd.settings import UnitSettings

PCTD = {"name": "pctd", "topics": 2, "rounds": 3, "unit": "sentence", "vocabulary": PUBLIC}
PHI = np.full((2, len(LIST)), 1 / len(LIST))


@pytest.fixture
def party(tmp_path):
    return Attacked(tmp_path, PCTD, OPEN)


def question(party: Attacked) -> UnitTask:
    return UnitTask(LIST, method_of(party).part(UnitSettings), None, PHI)


@pytest.mark.parametrize("owners", ["one", "several"])
def test_half_a_character_kills_nobody(owners, tmp_path):
    party = Attacked(tmp_path, PCTD, OPEN, owners=owners)
    whole = party.frame(expect, question(party), "sum")
    for name in (b"pctd.method:expect", b"asthma", b"sum", party.run.id.encode(), party.plan[:6].encode()):
        broken = whole.replace(name, rb"\\ud800".ljust(len(name), b"x")[: max(len(name), 7)])
        assert decode(party.host.answer(broken)).kind in ("failed", "refused")
    assert party.send(whole).kind == "ok"


def test_no_bytes_make_a_party_raise(party):
    """Any frame gets an answer; malformed ones get an answer of constants."""
    whole, draw = party.frame(expect, question(party), "sum"), np.random.default_rng(1)
    frames = [b"", b"\0" * 4, b"\xff" * 64, b"\x05\0\0\0[[[[[" + b"[" * 100_000, b"\x04\0\0\0null"]
    frames.append((2 * 10**5).to_bytes(4, "little") + b"[" * 10**5 + b"]" * 10**5)
    for _ in range(300):
        frame = bytearray(whole)
        for place in draw.integers(0, len(frame), draw.integers(1, 6)):
            frame[place] = draw.integers(0, 256)
        frames.append(bytes(frame[: draw.integers(len(frame) // 2, len(frame) + 1)]))
    for frame in frames:
        answer = decode(party.host.answer(frame))
        assert answer.kind in ("failed", "refused", "behind", "ok")
        assert answer.kind in ("ok", "behind") or says_nothing(answer.text)
    assert decode(party.host.answer(whole)).kind == "ok"


def test_a_log_that_cannot_be_written_stops_nobody(party):
    (party.directory / "party.log").mkdir()
    assert says_nothing(party.ask(expect, question(party), "banana").text)
    assert party.ask(expect, question(party), "sum").kind == "ok"


def test_another_run_is_not_answered_with_the_right_one(party, tmp_path):
    for frame in (party.frame(expect, question(party), "sum", run="guess"), Inquiry("guess", DISCLOSURES).to_bytes()):
        answer = decode(party.host.answer(frame))
        assert answer.text == "refused by rule 'run'"
    one = Attacked(tmp_path / "one", PCTD, OPEN, owners="one")
    text = decode(one.host.answer(one.frame(expect, question(one), "sum", run="guess"))).text
    assert one.run.id not in text
    assert "guess" not in text


def test_failures_tell_no_paths(party, monkeypatch):
    monkeypatch.setattr(type(party.host), "documents", lambda self, vocabulary, part: (self.directory / "none").stat())
    answer = party.ask(expect, question(party), "sum")
    assert says_nothing(answer.text)
    assert "/" not in answer.text


# --- a run is agreed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", ["", "0" * 64, 7, None])
def test_another_plan_is_another_run(plan, party):
    assert party.ask(expect, question(party), "sum", plan=plan).kind != "ok"
    assert party.ask(expect, question(party), "sum").kind == "ok"
    assert party.ask(expect, question(party), "sum", plan=plan).kind != "ok"


def test_a_plan_is_pinned_at_the_first_question(party, tmp_path):
    assert party.ask(expect, question(party), "sum").kind == "ok"
    other = Attacked(tmp_path / "other", {**PCTD, "rounds": 90}, OPEN)
    edit_json(party.directory / "party.json", plan=other.host.config.plan)  # and nobody asks for consent again
    party.reopen()
    party.place = (1, 0)
    assert party.ask(expect, question(party), "sum").text == "refused by rule 'plan'"


def test_between_owners_no_plan_means_no_answer(party):
    hash_ = party.plan
    party.reopen(plan=None)
    assert party.ask(expect, question(party), "sum", plan=hash_).text == "refused by rule 'plan'"


def test_settings_that_travel_are_those_of_the_plan(party):
    finer = method_of(party).part(UnitSettings, unit="ngram", unit_words=1)
    assert party.ask(expect, UnitTask(LIST, finer, None, PHI), "sum").text == "refused by rule 'plan'"


def test_a_simulation_pins_its_plan_too(tmp_path):
    party = Attacked(tmp_path, PCTD, OPEN, owners="one")
    assert party.ask(expect, question(party), "sum").kind == "ok"
    assert party.ask(expect, question(party), "sum", plan="0" * 64).kind == "refused"

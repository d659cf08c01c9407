"""How far training has come: by a function, a bar, lines of a log, or not at all."""

import logging

import pytest

import tertulia as tt
from tertulia.api import progress

TEXTS = [f"{word} {word}a {word}b {word}c" for word in ("rain", "sun", "engine", "violin")] * 10
PARTIES = {"north": TEXTS[:20], "south": TEXTS[20:]}
KINDS = {
    "sweep": lambda **how: tt.LDA(topics=2, sweeps=4).fit(TEXTS, **how),
    "epoch": lambda **how: tt.ProdLDA(topics=2, epochs=4).fit(TEXTS, **how),
    "round": lambda **how: tt.Consensus(topics=2, rounds=4, sweeps=1).fit(PARTIES, **how),
}
LAST = {"sweep": 4, "epoch": 4, "round": 6}  # two rounds before: agree on words, and find first topics


@pytest.mark.parametrize("unit", ["sweep", "epoch"])
def test_a_function_is_called_after_each_step(unit):
    seen = []
    KINDS[unit](progress=lambda n, value: seen.append((n, value)))
    assert [n for n, _ in seen] == [1, 2, 3, 4]
    assert all(value > 0 for _, value in seen)


@pytest.mark.parametrize("unit", KINDS)
def test_a_bar_on_request_and_silence_on_request(unit, capsys):
    KINDS[unit](progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{unit} {LAST[unit]}" in shown.err
    KINDS[unit](progress=False)
    KINDS[unit]()  # no terminal, and nobody has asked for a log
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("unit", KINDS)
def test_without_a_terminal_lines_go_to_the_log(unit, caplog, monkeypatch):
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    with caplog.at_level(logging.INFO, logger="tertulia"):
        KINDS[unit]()
    lines = [record.getMessage() for record in caplog.records if f": {unit} " in record.getMessage()]
    assert len(lines) >= 4
    assert f": {unit} {LAST[unit]}" in lines[-1]


def test_a_bar_waits_until_training_takes_a_while(monkeypatch, capsys):
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    KINDS["sweep"]()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "_SHORT", 0.0)
    KINDS["sweep"]()
    assert "sweep 4" in capsys.readouterr().err


def test_a_warning_is_said_once(caplog):
    observe = progress.round_observer(lambda n, value: None)
    for _ in range(3):
        observe("warning", {"text": "party 'north' did not answer"})
    assert [record.getMessage() for record in caplog.records] == ["party 'north' did not answer"]

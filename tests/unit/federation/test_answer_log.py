"""A party's answers on disk: which files are written over, and when."""

from __future__ import annotations

import os

import pytest

from tertulia.errors import JournalError
from tertulia.federation.party import answer_log
from tertulia.federation.party.answer_log import AnswerLog


def answer(log, round_, text):
    log.forget_before(round_)
    log.add((round_, 0), f"hash {round_}", {"seen": round_}, text, durable=True)


def inodes(directory):
    return {path.name: path.stat().st_ino for path in directory.iterdir()}


def test_an_old_file_is_written_over_only_once_the_disk_has_forgotten_its_name(tmp_path):
    log = AnswerLog(tmp_path)
    for round_ in range(2):
        answer(log, round_, b"old" * 1000)
    first = inodes(tmp_path)["00000000-000000.safetensors"]
    answer(log, 2, b"new")  # retires the first file, whose old name a power failure could still bring back
    found = inodes(tmp_path)
    assert found["00000000-000000.spare"] == first
    assert found["00000002-000000.safetensors"] != first
    assert b"old" * 1000 in (tmp_path / "00000000-000000.spare").read_bytes()
    answer(log, 3, b"newer")  # the directory was synced since
    assert inodes(tmp_path)["00000003-000000.safetensors"] == first
    assert b"old" not in (tmp_path / "00000003-000000.safetensors").read_bytes()
    assert log.find_or_none((3, 0), "hash 3") == b"newer"


def test_what_is_left_to_write_over_goes_with_the_process(tmp_path):
    log = AnswerLog(tmp_path)
    for round_ in range(9):
        answer(log, round_, bytes(1000 * (9 - round_)))
    assert len(list(tmp_path.glob("*.spare"))) <= answer_log._MOST_SPARE
    again = AnswerLog(tmp_path)
    assert not list(tmp_path.glob("*.spare"))
    assert again.state == {"seen": 8}
    assert again.find_or_none((8, 0), "hash 8") == bytes(1000)


def test_a_full_disk_loses_nothing_of_the_answers_before(tmp_path, monkeypatch):
    log = AnswerLog(tmp_path)
    for round_ in range(4):
        answer(log, round_, b"kept")
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(JournalError, match="No space left"):
        answer(log, 4, b"lost")
    monkeypatch.undo()
    again = AnswerLog(tmp_path)
    assert again.latest == (3, 0)
    assert again.find_or_none((3, 0), "hash 3") == b"kept"

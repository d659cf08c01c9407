"""A party's answers on disk: which files are written over, and when."""

from __future__ import annotations

import os
import random

import pytest

from tertulia.corpus import Corpus
from tertulia.errors import JournalError
from tertulia.federation.party import answer_log
from tertulia.federation.party.answer_log import AnswerLog
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.settings import RunSettings


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


def test_a_log_in_memory_answers_as_one_on_disk(tmp_path):
    """Late answers, answers that change no state, answers that need not be kept, and rounds that are forgotten."""
    rng = random.Random(3)
    logs = AnswerLog(tmp_path / "disk"), AnswerLog(tmp_path / "memory", on_disk=False)
    state, seen = None, []
    for number in range(300):
        place = (number // 3, number % 3)
        back = max((number // 3 - rng.choice([0, 0, 0, 1]), rng.randrange(3)), (0, 0))
        state = state if rng.random() < 0.3 else {"number": number}
        durable, drawn = rng.random() < 0.7, rng.random()
        for log in logs:
            if drawn < 0.2:
                log.forget_after(back)
            if drawn > 0.8:
                log.forget_before(place[0] - 1)
            if log.latest < place:
                log.add(
                    place,
                    f"hash {number}",
                    log.state if state is None else state,
                    bytes([number % 256]),
                    durable=durable,
                )
        seen.append([(log.latest, log.state, log.find_or_none(back, f"hash {3 * back[0] + back[1]}")) for log in logs])
    assert all(disk == memory for disk, memory in seen)
    assert len({str(disk) for disk, _ in seen}) > 200
    assert not list((tmp_path / "memory").iterdir())
    assert list((tmp_path / "disk").iterdir())


@pytest.mark.parametrize(("engine", "files"), [("local", 0), ("processes", 1)])
def test_only_a_simulation_in_one_process_writes_no_answers(tmp_path, engine, files):
    settings = RunSettings(directory=str(tmp_path / "run"), engine=engine, method={"name": "consensus", "topics": 2,
                           "rounds": 2, "sweeps": 1, "vocabulary": {"max_share": 1.0}})  # fmt: skip
    texts = {name: Corpus.from_texts(["fever cough ward", "river boat"] * 9) for name in "abc"}
    run_on_one_machine(settings, texts, durable=False)
    written = [path for name in texts for path in (tmp_path / "run" / "parties" / name / "answers").iterdir()]
    assert bool(written) == bool(files)

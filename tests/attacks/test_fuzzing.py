"""Damaged files and frames: either right, or an error in the project's words. The long counts are in the benchmark."""

import pytest

from benchmarks.door.fuzz import CASES, TARGETS, fuzz, fuzz_here
from benchmarks.door.hostile_steps import METHODS
from helpers.attacks import LIST, OPEN, PUBLIC, Attacked, method_of
from tertulia.methods.baselines.method import train_whole
from tertulia.methods.common.local_lda import LocalTask, in_clear

QUICK = [
    "codec", "packing", "frame", "answer", "journal", "answers", "topics", "corpus", "run", "party", "policy", "config",
]  # fmt: skip


@pytest.mark.parametrize("target", QUICK)
@pytest.mark.filterwarnings("ignore")
def test_no_foreign_exception(target):
    found = fuzz_here(target, 0, 60, seed=11)
    assert found.alien == 0, found.examples


@pytest.mark.filterwarnings("ignore")
def test_no_step_fails_in_a_way_that_nobody_thought_of():
    assert {METHODS[name]["name"] for name in METHODS} >= {"consensus", "ftm", "fedlda", "pctd", "alone", "gfedntm"}
    found = fuzz("steps", 40, seed=11)  # in a process of its own: it has little memory, and kernels may kill it
    assert (found.alien, found.deaths) == (0, 0), found.examples


def test_a_whole_model_without_sizes_is_refused_in_our_words(tmp_path):
    """What 20,000 hostile questions found: an assertion failed."""
    party = Attacked(tmp_path, {"name": "alone", "topics": 2, "sweeps": 2, "vocabulary": PUBLIC}, OPEN, owners="one")
    training = in_clear(method_of(party), 2)
    answer = party.ask(train_whole, LocalTask(LIST, training, None, with_sizes=False))
    assert (answer.kind, answer.text.split(":")[0]) == ("failed", "FormatError")
    assert party.ask(train_whole, LocalTask(LIST, training, None, with_sizes=True), place=(0, 0)).kind == "ok"


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", TARGETS)
def test_no_foreign_exception_and_no_death_in_many(target):
    found = fuzz(target, CASES.get(target, 15_000) // 10, seed=12)
    assert (found.alien, found.deaths) == (0, 0), found.examples

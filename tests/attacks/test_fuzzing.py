"""Damaged files and frames: either right, or an error in the project's words. The long counts are in the benchmark."""

import pytest

from benchmarks.door.fuzz import CASES, TARGETS, fuzz, fuzz_here

QUICK = [
    "codec", "packing", "frame", "answer", "journal", "answers", "topics", "corpus", "run", "party", "policy", "config",
]  # fmt: skip


@pytest.mark.parametrize("target", QUICK)
@pytest.mark.filterwarnings("ignore")
def test_no_foreign_exception(target):
    found = fuzz_here(target, 0, 60, seed=11)
    assert found.alien == 0, found.examples


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", [name for name in TARGETS if name != "steps"])
def test_no_foreign_exception_and_no_death_in_many(target):
    found = fuzz(target, CASES.get(target, 15_000) // 10, seed=12)
    assert (found.alien, found.deaths) == (0, 0), found.examples

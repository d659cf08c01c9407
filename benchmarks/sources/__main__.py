"""Documents where they live, the Pythons that run the package, seed words, and numbers of topics.

reading   `rows_per_s{source}`, `memory_mb{source}`: a million short notes (with --quick 50,000) read into a corpus on
          disk; memory is what the process needs beyond its start, the list of words and the table of ids included
pythons   `pythons{version}`: a fit, a federation, and the tests of the corpus, in a new environment of each Python
          that is installed here
seeds     `seeds`: {corpus: [share of a subject's documents that its seeded topic finds, the same for the topic without
          seeds in which the seed words are most probable, perplexity with seeds over without]}, means of three seeds;
          `seeds_range`: the smallest and largest of each; `seeds_best`: what the best topic for each subject would
          find, chosen by the labels
numbers   `topic_numbers`: {known number of topics: [chosen with each of three seeds]}; `topic_numbers_found`: how often
          the rule finds it, and how often each measure alone would
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common import run_parts
from benchmarks.sources import numbers, pythons, reading, seeds

PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "reading": reading.run,
    "pythons": pythons.run,
    "seeds": seeds.run,
    "numbers": numbers.run,
}


if __name__ == "__main__":
    run_parts("sources", "documents where they live, the Pythons that read them, seed words", PARTS)

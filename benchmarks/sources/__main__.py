"""Documents where they live: how fast each source is read, and in how much memory; the Pythons that run the package.

reading   `rows_per_s{source}`, `memory_mb{source}`: a million short notes (with --quick 50,000) read into a corpus on
          disk; memory is what the process needs beyond its start, the list of words and the table of ids included
pythons   `pythons{version}`: a fit, a federation, and the tests of the corpus, in a new environment of each Python
          that is installed here
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common import run_parts
from benchmarks.sources import pythons, reading

PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {"reading": reading.run, "pythons": pythons.run}


if __name__ == "__main__":
    run_parts("sources", "documents where they live, and the Pythons that read them", PARTS)

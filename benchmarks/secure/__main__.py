"""`python -m benchmarks.secure [--quick] [--parts ...]`: see `benchmarks/results/secure.md`."""

from __future__ import annotations

from benchmarks.common import run_parts
from benchmarks.secure.consensus import consensus, cpu_over_pooled, sharper, small_parties
from benchmarks.secure.costs import costs, parties_50, repair, slow_link
from benchmarks.secure.crashes import crash
from benchmarks.secure.demo import demo_s
from benchmarks.secure.sound_start import sound_start
from benchmarks.secure.steered import steered
from benchmarks.secure.totals import exact, widths
from benchmarks.secure.words import lone_words

if __name__ == "__main__":
    run_parts(
        "secure",
        __doc__ or "",
        {
            "costs": costs,
            "repair": repair,
            "exact": exact,
            "widths": widths,
            "words": lone_words,
            "slow_link": slow_link,
            "parties_50": parties_50,
            "crash": crash,
            "consensus": consensus,
            "steered": steered,
            "sound_start": sound_start,
            "demo_s": demo_s,
            "cpu_over_pooled": cpu_over_pooled,
            "small_parties": small_parties,
            "sharper": sharper,
        },
    )

"""Exactness of masked totals, and the width of their rings in later rounds."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import newsgroups, say
from benchmarks.engines.fixtures import masked_toys
from benchmarks.federation.parties import natural
from tertulia.federation.server import secure_sums
from tertulia.models import Topics
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.settings import RunSettings


def exact(quick: bool) -> dict[str, Any]:
    """Compare masked totals with sums of the same integers, at several sizes and with dropouts."""
    right = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for members in (3, 4, 5, 10) if quick else (3, 4, 5, 7, 10, 25):
            run = masked_toys.begun(Path(folder) / str(members), members)
            with closing(run.transport("local", 1)) as transport:
                fed = masked_toys.handle_of(run, transport)
                for round_ in range(5):
                    found = fed.sum(masked_toys.contribute, masked_toys.Task(round_, 10 ** (3 * round_ + 1)))
                    wanted = sum(masked_toys.numbers_of(p, round_, 10 ** (3 * round_ + 1))[0] for p in run.parties)
                    right += bool(np.array_equal(found.counts, wanted))
                    total += 1
    return {"exact": [right, total]}


def widths(quick: bool) -> dict[str, Any]:
    """Return the bits per cell of Consensus' counts in later rounds, K = 40 and V near 10,000."""
    corpus = newsgroups(min_documents=15, label="party")
    parties = natural(corpus.split(0.3, seed=1)[1] if quick else corpus)
    seen: list[tuple[int, int]] = []
    real = secure_sums.SecureSums.total

    def total(self: Any, place: Any, found: Any, seeds: Any) -> Any:
        if found.step.endswith(":count_together"):
            seen.append((8 * found.masked[1].dtype.itemsize, max(array.size for array in found.masked)))
        return real(self, place, found, seeds)

    with tempfile.TemporaryDirectory() as folder:
        settings = RunSettings(
            directory=f"{folder}/run", federation={"secure": True}, **_start(folder, parties),
            method={"name": "consensus", "topics": 40, "evaluate": False, "vocabulary": {"mode": "common"}},
        )  # fmt: skip
        secure_sums.SecureSums.total = total  # type: ignore[method-assign]
        try:
            run_on_one_machine(settings, parties, durable=False)
        finally:
            secure_sums.SecureSums.total = real  # type: ignore[method-assign]
    say(f"Consensus under masks: bits and cells by round {seen}")
    return {"bits_per_cell": {"first": seen[0][0], "later": seen[-1][0], "cells": seen[-1][1]}}


def _start(folder: str, parties: Any) -> dict[str, Any]:
    """Return the model to start from: one of public text, here of a tenth of each party's documents."""
    import tertulia as tt

    texts = [own.split(0.1, seed=2)[1] for own in parties.values()]
    model = tt.LDA(topics=40, sweeps=60).fit(texts[0])
    topics: Topics = model.topics_
    return {"start_from": str(topics.save(Path(folder) / "public"))}

"""The number of topics that `tt.choose_topics` chooses, on generated corpora whose number is known.

Topics are Dirichlet draws around Zipf's law; a fifth of each is common to all. Documents have about 70 words. The rule
is compared with each of its three measures alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tertulia as tt
from benchmarks.common import say
from tertulia.applications.topic_numbers import MEASURES

KNOWN, TRIED = (5, 10, 20), (3, 5, 7, 10, 14, 20, 28, 40)
DOCUMENTS, LENGTH, WORDS = 700, 70, 1_500
SWEEPS = 150


def run(quick: bool) -> dict[str, Any]:
    """Count how often each way of choosing finds the known number, and list what the rule chose."""
    chosen: dict[str, list[int]] = {}
    right = dict.fromkeys(("rule", *MEASURES), 0)
    for known in KNOWN[: 1 if quick else None]:
        for seed in range(1 if quick else 3):
            documents = generate(known, 100 * known + seed)
            found = tt.choose_topics(documents, TRIED, estimator=tt.LDA(sweeps=SWEEPS), progress=False)
            say(f"{known} topics, seed {seed}: {found.best}")
            chosen.setdefault(str(known), []).append(found.best)
            right["rule"] += found.best == known
            for name in MEASURES:
                order = found.table.sort(name, descending=name != "perplexity")
                right[name] += order["topics"][0] == known
    return {"topic_numbers": chosen, "topic_numbers_found": right}


def generate(known: int, seed: int) -> list[list[str]]:
    """Make documents of this number of topics, as lists of words."""
    rng = np.random.default_rng(seed)
    law = rng.permutation(1 / (np.arange(WORDS) + 8.0))
    law /= law.sum()
    own = rng.dirichlet(np.maximum(law * WORDS * 0.02, 1e-4), size=known)
    topics = 0.8 * own + 0.2 * rng.dirichlet(law * 200)
    shares = rng.dirichlet(np.full(known, max(0.05, 1.5 / known)), size=DOCUMENTS)
    documents = []
    for theta in shares:
        counts = rng.multinomial(max(10, rng.poisson(LENGTH)), theta @ topics)
        documents.append([f"w{word}" for word in rng.permutation(np.repeat(np.arange(WORDS), counts))])
    return documents

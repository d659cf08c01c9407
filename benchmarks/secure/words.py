"""Words of one party alone that the server learns: without secure sums, and with them."""

from __future__ import annotations

import tempfile
import warnings
from collections import Counter
from typing import Any

from benchmarks.common import newsgroups, say
from benchmarks.federation.parties import natural
from tertulia.corpus import Corpus
from tertulia.corpus.vocabulary import propose
from tertulia.runs.one_machine import run_on_one_machine
from tertulia.runs.settings import RunSettings


def lone_words(quick: bool) -> dict[str, Any]:
    """Count the words, of six natural parties of 20 Newsgroups, that the server learns and only one party has."""
    corpus = newsgroups(min_documents=1, max_share=1.0, label="party")
    if quick:
        corpus = corpus.split(0.3, seed=1)[1]
    parties = natural(corpus)
    holders: Counter[str] = Counter()
    for own in parties.values():
        holders.update(propose(own, 5).words)
    found = {}
    for name, secure, mode in (("off", False, "union"), ("on", True, "common")):
        words = _agreed(parties, secure, mode)
        found[name] = sum(holders[word] <= 1 for word in words)
        say(f"secure {name}: {len(words)} words, {found[name]} of one party alone")
    return {"lone_words": found}


def _agreed(parties: dict[str, Corpus], secure: bool, mode: str) -> tuple[str, ...]:
    method = {"name": "pctd", "topics": 2, "rounds": 1, "evaluate": False}
    method["vocabulary"] = {"mode": mode, "min_documents": 5}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        settings = RunSettings(
            directory=f"{folder}/run", heldout=0.0, method=method, federation={"secure": secure}
        )  # fmt: skip
        model: Any = run_on_one_machine(settings, parties, durable=False)
    return tuple(model.vocabulary.words)

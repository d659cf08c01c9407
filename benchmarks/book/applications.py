"""Tables of pages that are made from the committed results of `benchmarks.applications`, not from panels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.applications.tables import table_of_mechanisms, table_of_models

FOLDER = Path(__file__).parents[1] / "results" / "applications"
SPEECH = {  # our names, and iFTM's table 2 in percent
    "none": ("no topics (`none`)", 33.18),
    "unigram_control": ("`unigram_control`", None),
    "wrong_topic_control": ("`wrong_topic_control`, other domain", None),
    "wrong_topic_same_domain": ("wrong document, same domain", None),
    "p1": ("LDA of p1 alone", 31.40),
    "p2": ("LDA of p2 alone", 32.32),
    "p3": ("LDA of p3 alone", 33.04),
    "federated_lda": ("federated LDA", 30.06),
    "federated_sentencelda": ("federated SentenceLDA", 30.01),
    "pooled": ("pooled LDA", None),
}


@cache
def _stored(name: str) -> Any:
    """Read a committed result; the name of speech's ends with a hash."""
    file = next(iter(sorted(FOLDER.glob(f"{name}*.json"))))
    return json.loads(file.read_text(encoding="utf-8"))


def table_of_speech(found: Mapping[str, Any]) -> str:
    """Tabulate word error rates in percent with intervals, and paired differences to no topics."""
    decoders = {"pocketsphinx": "pocketsphinx", "moonshine": "Moonshine"}
    heads = ["", "paper", *decoders.values(), *(f"difference, {words}" for words in decoders.values())]
    rows = [heads, ["---"] * len(heads)]
    for name, (words, papers) in SPEECH.items():
        rates = [_interval(found["wer"][decoder][name]) for decoder in decoders]
        gains = [_interval(found["differences"][d][name], "+") if name != "none" else "" for d in decoders]
        rows.append([words, "" if papers is None else f"{papers:.2f}", *rates, *gains])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _interval(values: Sequence[float], sign: str = "") -> str:
    mean, low, high = (f"{100 * value:{sign}.2f}" for value in values)
    return f"{mean} [{low}, {high}]"


TABLES: Mapping[str, Callable[[], str]] = {
    "applications/classification": lambda: table_of_models(_stored("classification")["result"]["classification"]),
    "applications/spam": lambda: table_of_mechanisms("spam", _stored("spam")["result"]),
    "applications/sentiment": lambda: table_of_mechanisms("sentiment", _stored("sentiment")["result"]),
    "applications/speech": lambda: table_of_speech(_stored("speech")),
}

"""`tertulia audit` of each mode that promises something, on small generated corpora of three parties.

All bounds hold together, of all modes: a mode whose bound is above its claim is audited again.
"""

from __future__ import annotations

import tempfile
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from benchmarks.audits.cells import cell
from tertulia.corpus import Corpus
from tertulia.corpus.vocabulary import public
from tertulia.operations.audit import attacks
from tertulia.operations.audit.results import Report
from tertulia.runs.settings import RunSettings

WORDS = tuple(public("english").words[1_000:1_400])  # embeddings know them
PUBLIC = {"mode": "public", "words": WORDS}
_SMALL = {"topics": 8, "rounds": 3, "vocabulary": PUBLIC}
_DOC = {"topics": 8, "vocabulary": PUBLIC}
MODES: dict[str, tuple[dict[str, Any], bool]] = {  # the method, and whether sums are secure
    "ftm sound, subset, epsilon 4": ({"name": "ftm", "mode": "sound", "epsilon": 4.0, **_SMALL}, False),
    "ftm sound, krr, epsilon 8": ({"name": "ftm", "mode": "sound", "epsilon": 8.0, "channel": "krr", **_SMALL}, False),
    "ftm sound, laplace, epsilon 4": (
        {"name": "ftm", "mode": "sound", "epsilon": 4.0, "channel": "laplace", **_SMALL}, False),
    "consensus sound, epsilon 2": ({"name": "consensus", "mode": "sound", "epsilon": 2.0, **_SMALL}, False),
    "consensus sound, epsilon 8": ({"name": "consensus", "mode": "sound", "epsilon": 8.0, **_SMALL}, False),
    "fedlda sound, epsilon 4": ({"name": "fedlda", "mode": "sound", "epsilon": 4.0, **_SMALL}, False),
    "private_topics, epsilon 3": ({"name": "private_topics", "epsilon": 3.0, **_DOC}, False),
    "private_topics, epsilon 8": ({"name": "private_topics", "epsilon": 8.0, **_DOC}, False),
    "private_topics, epsilon 8, secure": ({"name": "private_topics", "epsilon": 8.0, **_DOC}, True),
    "private_topics of users, epsilon 3": ({"name": "private_topics", "epsilon": 3.0, "unit": "user", **_DOC}, False),
    "embedding_topics, epsilon 8": ({"name": "embedding_topics", "epsilon": 8.0, "topics": 8}, False),
    "pctd sound, epsilon 3": ({"name": "pctd", "mode": "sound", "epsilon": 3.0, **_DOC, "rounds": 10}, False),
    "pctd sound, epsilon 8": ({"name": "pctd", "mode": "sound", "epsilon": 8.0, **_DOC, "rounds": 10}, False),
    "gfedntm doc, epsilon 8": (
        {"name": "gfedntm", "mode": "doc", "epsilon": 8.0, "rounds": 10, "declared_documents": 3_000,
         "sampling_rate": 0.5, "hidden": (20, 20), **_DOC}, False),
}  # fmt: skip
QUICK = (
    "ftm sound, subset, epsilon 4",
    "fedlda sound, epsilon 4",
    "private_topics, epsilon 8",
    "pctd sound, epsilon 3",
)
REPEATS = 2  # of a mode whose bound is above its claim
CONFIDENCE = 1 - 0.05 / len(MODES)  # of a mode, so that the bounds of all modes hold together at 95 %


def corpora() -> dict[str, Corpus]:
    """Generate the documents of three parties; each user has two."""
    rng = np.random.default_rng(36)
    phi = rng.dirichlet(np.full(len(WORDS), 0.05), 8)
    found = {}
    for party in ("north", "south", "west"):
        theta = rng.dirichlet(np.full(8, 0.3), 200)
        texts = [" ".join(rng.choice(WORDS, 50, p=share @ phi)) for share in theta]
        corpus = Corpus.from_texts(texts, [f"{party}-{i}" for i in range(len(texts))])
        users = pl.Series("user", [f"{party}-{i // 2}" for i in range(len(texts))])
        found[party] = corpus.select(np.arange(len(texts)))
        object.__setattr__(found[party], "table", found[party].table.with_columns(users))
    return found


def audit(quick: bool) -> dict[str, Any]:
    """Return `{"audit": {mode: [claimed, lower_bound, could_have_shown]}}`, each mechanism, and repeats."""
    chosen = QUICK if quick else tuple(MODES)
    found = {mode: cell(f"audit, {mode}{', quick' * quick}", partial(_audited, mode, quick)) for mode in chosen}
    result: dict[str, Any] = {"audit": {mode: rows["run"] for mode, rows in found.items()}}
    result["mechanisms"] = {mode: rows["mechanisms"] for mode, rows in found.items()}
    above = [mode for mode, rows in found.items() if rows["violated"]]
    repeats = {
        mode: [
            cell(f"audit, {mode}, again {i}{', quick' * quick}", partial(_audited, mode, quick))["run"]
            for i in range(REPEATS)
        ]
        for mode in above
    }
    return {**result, **({"audit_repeats": repeats} if repeats else {})}


def _audited(mode: str, quick: bool) -> dict[str, Any]:
    method, secure = MODES[mode]
    effort = attacks.Effort(draws=100_000, runs=1) if quick else attacks.Effort()
    effort = effort._replace(confidence=CONFIDENCE)
    with tempfile.TemporaryDirectory() as place:
        settings = RunSettings(
            directory=f"{place}/run", method=method, federation={"secure": secure},
            parties={party: {} for party in ("north", "south", "west")},
        )  # fmt: skip
        report = attacks.audit(settings, corpora(), effort)
    return {"run": _numbers(report, "tokens", "documents")[0], "mechanisms": _numbers(report, "mechanism"),
            "violated": report.violated}  # fmt: skip


def _numbers(report: Report, *parts: str) -> list[list[float]]:
    rows = [one for one in report.findings if one.part in parts]
    return [[round(value, 3) for value in (one.claimed, one.lower_bound, one.could_have_shown)] for one in rows]

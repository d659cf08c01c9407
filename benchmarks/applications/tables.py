"""The tables of docs/classification.md, which `python -m benchmarks.applications` writes to `out`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MODELS = {  # our names, and iFTM's table 3: precision in percent
    "none": ("words alone", 75.67),
    "p1_lda": ("P1's own LDA", 78.45),
    "p2_lda": ("P2's own LDA", 79.34),
    "p3_lda": ("P3's own LDA", 76.87),
    "federated_lda": ("**federated LDA (FTM)**", 80.56),
    "pooled_lda": ("LDA of all documents in one place", None),
    "side_by_side_lda": ("control: the three LDAs side by side", None),
    "p1_sentencelda": ("P1's own SentenceLDA", 79.65),
    "p2_sentencelda": ("P2's own SentenceLDA", 79.12),
    "p3_sentencelda": ("P3's own SentenceLDA", 77.34),
    "federated_sentencelda": ("**federated SentenceLDA (FTM)**", 81.03),
    "pooled_sentencelda": ("SentenceLDA of all documents in one place", None),
    "side_by_side_sentencelda": ("control: the three SentenceLDAs side by side", None),
}
MECHANISMS = {
    "none": "no noise",
    "rrp": "RRP 7.5",
    "rrp at 5": "RRP 5",
    "krr": "kRR 7.5",
    "tkrr": "t-kRR 7.5",
    "sound": "sound 7.5",
    "none_paper": "no noise, paper's bookkeeping",
    "rrp_paper": "RRP 7.5, paper's bookkeeping",
    "rrp_paper at 5": "RRP 5, paper's bookkeeping",
    "krr_paper": "kRR 7.5, paper's bookkeeping",
    "tkrr_paper": "t-kRR 7.5, paper's bookkeeping",
    "hm_paper": "HM 7.5",
    "rrp_anew": "RRP 7.5, all tuples sent, words drawn again",
    "pooled": "control: LDA on one machine",
    "random": "control: random topics",
}
SPLITS = ("classification", "classification_by_subject")
SCORES = ("precision", "recall", "f1", "auc")
PAPERS = {  # FedLDA's table 2
    ("spam", "none"): (0.868, 0.708, 0.780, 0.798),
    ("spam", "rrp"): (0.781, 0.767, 0.774, 0.771),
    ("spam", "rrp at 5"): (0.736, 0.760, 0.748, 0.738),
    ("sentiment", "none"): (0.777, 0.814, 0.795, 0.794),
    ("sentiment", "rrp"): (0.774, 0.776, 0.775, 0.778),
    ("sentiment", "rrp at 5"): (0.761, 0.766, 0.764, 0.767),
}


def table_of_models(found: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Tabulate accuracy in percent by model and number of labels, with intervals, after the paper's precision."""
    lines = _head("topic features from", "paper", *(f"{int(n):,} labels" for n in found))
    for name, (words, papers) in MODELS.items():
        cells = [_interval(models[name]) for models in found.values() if name in models]
        if cells:
            lines.append(_row(words, "" if papers is None else papers, *cells))
    return "\n".join(lines) + "\n"


def table_of_mechanisms(task: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    """Tabulate the four scores by mechanism with standard deviations, after the paper's."""
    lines = _head(task, "precision", "recall", "F1", "AUC", "seeds")
    for name, words in MECHANISMS.items():
        if name in found:
            papers = PAPERS.get((task, name))
            cells = (_score(found[name], key, papers and papers[i]) for i, key in enumerate(SCORES))
            lines.append(_row(words, *cells, found[name]["seeds"]))
    return "\n".join(lines) + "\n"


def tables(result: Mapping[str, Any]) -> str:
    """Make all tables of a result."""
    found = [f"{key}\n\n{table_of_models(result[key])}" for key in SPLITS if key in result]
    found += [table_of_mechanisms(task, result[task]) for task in ("spam", "sentiment") if task in result]
    return "\n".join(found)


def _interval(values: Sequence[float]) -> str:
    mean, low, high = (f"{100 * value:.1f}" for value in values)
    return f"{mean} ({low} to {high})"


def _score(found: Mapping[str, Any], key: str, papers: float | None) -> str:
    spread = f" ± {_short(found['sd'][key])}" if key in found["sd"] else ""
    return f"{'' if papers is None else f'{_short(papers)} / '}{_short(found[key])}{spread}"


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _row(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(*cells: str) -> list[str]:
    return [_row(*cells), "|---" * len(cells) + "|"]

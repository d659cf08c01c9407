"""gFedNTM (2022): both rows of figure 3, by DSS and TSS, and figure 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.book.panels import Check, Entry, Found, Panel, Size

MEASURE = "benchmarks.book.measures.gfedntm:"
SEEDS = (0, 1, 2)
SHARED, ETAS = (5, 10, 15, 30, 40), (0.01, 0.02, 0.03, 0.04, 0.08, 1.0)
LINES = {  # as printed; nodes alone have as many steps as all together, or equal epochs as in the paper
    "all together": "centralised", "alone, equal steps": "non_collaborative", "alone, equal epochs": "equal_epochs",
    "pooled LDA, alpha learned": "pooled_lda",
}  # fmt: skip
SIZE: dict[str, Any] = {"epochs": 20, "training": 400, "validation": 80}
QUICK: dict[str, Any] = {"epochs": 5, "training": 120, "validation": 30, "nodes": 3, "words": 500, "topics": 20}
BOTTOM: dict[str, Any] = {**SIZE, "epochs": 10, "training": 100, "validation": 30}
SMALLER = "5 nodes, 50 topics and 5,000 words as the paper's, but 400 documents per node (10,000), 3 runs (10)"
TOGETHER = (
    "All together is training in one place, which SyncOpt equals; the line *SyncOpt* has it at one point. Training "
    "stops by the paper's 75 : 25 split."
)


def _gains(found: Found, worse: str, score: str) -> list[float]:
    """Return the gain of all together over nodes alone by x: positive is better."""
    sign = 1 if score == "tss" else -1
    return [sign * (found("all together", x) - found(worse, x)) for x in found.xs("all together")]


def _figure_3(row: str, score: str) -> Panel:
    by_k = row == "top"
    points: Sequence[tuple[str, dict[str, Any]]] = (
        [(str(k), {"shared": k, "eta": 0.01}) for k in SHARED]
        if by_k
        else [(f"{eta:g}", {"shared": 10, "eta": eta}) for eta in ETAS]
    )
    entries = [
        Entry(line, {"scenario": scenario, **point}, x, score)
        for line, scenario in LINES.items() for x, point in points
    ]  # fmt: skip
    x, point = ("10", {"shared": 10, "eta": 0.01}) if by_k else ("0.01", {"shared": 10, "eta": 0.01})
    entries.append(Entry("SyncOpt", {"scenario": "federated", **point}, x, score))
    if score == "tss":
        entries += [Entry("random topics", {"scenario": "random", **point}, x, score) for x, point in points]
    words = score.upper()
    checks = [
        Check(f"all together are better than nodes alone with equal epochs at every point ({words})",
              lambda f: min(_gains(f, "alone, equal epochs", score)) > 0),
        Check(f"all together are better than nodes alone with equal steps at every point ({words})",
              lambda f: min(_gains(f, "alone, equal steps", score)) > 0, counts=False),
        Check("all together are better than pooled LDA at some point",
              lambda f: max(_gains(f, "pooled LDA, alpha learned", score)) > 0, counts=False),
    ]  # fmt: skip
    if by_k:
        checks.append(Check(
            "the gain grows as K' falls: it is largest at 5 and smallest at 40 (equal epochs)",
            lambda f: _falls(_gains(f, "alone, equal epochs", score)),
        ))  # fmt: skip
        end = "still visible at 40" if score == "tss" else "inconclusive at K' = 40"
        claim = f"the centralized scenario is better; the gain is larger the fewer topics are shared, and {end}."
    else:
        checks.append(Check(
            "the gain at eta = 1 is smaller than at 0.01 (equal epochs)",
            lambda f: _gains(f, "alone, equal epochs", score)[-1] < _gains(f, "alone, equal epochs", score)[0],
        ))  # fmt: skip
        claim = "the centralized scheme still shows some advantage for varying eta, somewhat less significant."
    return Panel(
        f"gfedntm-3-{row}-{score}", "gFedNTM", f"figure 3, {row}, {'left' if score == 'dss' else 'right'}",
        f"{words} by {'the number of shared topics' if by_k else 'eta'}", claim, f"{MEASURE}recovery", tuple(entries),
        Size(SEEDS, SIZE if by_k else BOTTOM), Size(SEEDS[:2], QUICK, (), ("5", "10") if by_k else ("0.01", "1")),
        control="nodes alone with equal steps; pooled LDA" + ("; topics drawn at random" if score == "tss" else ""),
        checks=tuple(checks), minutes=6.0, axes=("K'" if by_k else "eta", words), logs="" if by_k else "x",
        reduced=SMALLER if by_k else f"{SMALLER.replace('400', '100')}, 10 epochs", remark=TOGETHER,
        packages=("torch",),
    )  # fmt: skip


def _falls(gains: list[float]) -> bool:
    return gains[0] == max(gains) and gains[-1] == min(gains)


def _paper_size() -> Panel:
    point = {"shared": 10, "eta": 0.01}
    entries = tuple(
        Entry(line, {"scenario": LINES[line], **point}, score, score)
        for line in ("all together", "alone, equal epochs", "pooled LDA, alpha learned") for score in ("tss", "dss")
    )  # fmt: skip
    return Panel(
        "gfedntm-3-10000", "gFedNTM", "figure 3, K' = 10", "one point with the paper's 10,000 documents per node",
        "the centralized scenario is better than the non-collaborative one.", f"{MEASURE}recovery", entries,
        Size((0,), {"epochs": 30, "training": 10_000, "validation": 1_000}), Size(SEEDS[:2], QUICK),
        control="pooled LDA",
        checks=(
            Check("TSS of all together is above nodes alone",
                  lambda f: f("all together", "tss") > f("alone, equal epochs", "tss")),
            Check("DSS of all together is below nodes alone",
                  lambda f: f("all together", "dss") < f("alone, equal epochs", "dss")),
        ),
        minutes=60.0, kind="bars", reduced="one run (10)", packages=("torch",),
    )  # fmt: skip


def _figure_4(data: str, what: str, full: dict[str, Any], quick: dict[str, Any], reduced: str, minutes: float) -> Panel:
    lines = {
        "shared, 10 topics": "federated_10", "shared, 25 topics": "federated_25", "other nodes' models": "other nodes",
        "pooled LDA, 10 topics": "lda_10", "pooled LDA, 25 topics": "lda_25", "random words, 10": "random_10",
        "random words, 25": "random_25", "the node's own, another seed": "own_again",
    }  # fmt: skip
    entries = [Entry(line, {"data": data}, score=model) for line, model in lines.items()]
    entries.append(Entry("best single node's model", {"data": data}, score="best node"))
    files = ("mag_titles_fos.parquet",) if data == "titles" else ("nsf_awards_fy2026.parquet",)
    return Panel(
        f"gfedntm-4-{data}", "gFedNTM", "figure 4", f"AMWMD of nodes' own topics, {what}",
        "the 10-topics federated model already characterizes the nodes' topics better than any other individual "
        "node's model, which is further improved with the 25-topics federated model.",
        f"{MEASURE}distances", tuple(entries), Size(SEEDS, full), Size(SEEDS[:1], quick),
        control="words drawn at random, pooled LDA, the node's own model with another seed",
        checks=(
            Check("the shared model of 10 topics is closer than the best single node's model",
                  lambda f: f("shared, 10 topics", "mean") < f("best single node's model", "mean")),
            Check("25 topics are closer than 10",
                  lambda f: f("shared, 25 topics", "mean") < f("shared, 10 topics", "mean")),
            Check("the shared model of 10 topics is closer than words drawn at random",
                  lambda f: f("shared, 10 topics", "mean") < f("random words, 10", "mean")),
            Check("the shared model of 10 topics is closer than pooled LDA",
                  lambda f: f("shared, 10 topics", "mean") < f("pooled LDA, 10 topics", "mean"), counts=False),
        ),
        minutes=minutes, axes=("node", "AMWMD"), reduced=reduced, packages=("torch", "sentence_transformers"),
        corpora=(*files, "glove100_vocab.npz"),
        remark="CombinedTM through SyncOpt itself. Lower covers better; random lists of 25 words offer more choice "
        "than of 10, too.",
    )  # fmt: skip


PANELS = (
    _figure_3("top", "dss"),
    _figure_3("top", "tss"),
    _figure_3("bottom", "dss"),
    _figure_3("bottom", "tss"),
    _paper_size(),
    _figure_4("titles", "titles by field", {"documents": 100, "epochs": 30}, {"documents": 20, "epochs": 4},
              "100 titles of each of 7 fields (5 of 133,545 papers and more), 30 epochs (100)", 6.0),
    _figure_4("grants", "abstracts of grants by directorate", {"documents": 60, "epochs": 30},
              {"documents": 20, "epochs": 4}, "60 abstracts of each of 5 directorates (133,545 and more), 30 epochs",
              8.0),
)  # fmt: skip

"""Other implementations of LDA: the race by their own defaults, and what a flatter alpha trades."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.book.panels import Check, Entry, Found, Panel, Size

MEASURE = "benchmarks.book.measures.sampler:"
TRAINERS = {"tt.LDA": "tertulia-auto", "tomotopy": "tomotopy", "topica": "topica"}
SCORES = {"perplexity": "ppl", "NPMI": "npmi", "diversity": "diversity"}
TOTALS = (0.0, 0.5, 5.0, 50.0)  # sums of alpha; 0: learned
DOCUMENTS = {50: 2_000, 100: 500}  # of IMDB in the races; 20,000 take an hour for each number of topics
CORPORA = {"IMDB": "imdb", "BBC": "bbc", "medical abstracts": "medical"}


def _race(topics: int) -> Panel:
    entries = tuple(
        Entry(trainer, {"trainer": name, "topics": topics}, words, score)
        for trainer, name in TRAINERS.items() for words, score in (SCORES | {"CPU seconds": "seconds"}).items()
    )  # fmt: skip
    return Panel(
        f"peers-race-{topics}", "peers", "", f"tomotopy and topica on IMDB by their own defaults, K = {topics}",
        "is LDA of this package as good as that of others, and how long does it take?", f"{MEASURE}race", entries,
        Size((1, 2, 3), {"corpus": "imdb", "iterations": 1000, "documents": DOCUMENTS[topics]}),
        Size((1,), {"corpus": "imdb", "iterations": 60, "documents": 1000}, ("tt.LDA",), tuple(SCORES)),
        control="each other, scored by one estimator",
        checks=(
            Check("perplexity of tt.LDA is at most that of both",
                  lambda f: f("tt.LDA", "perplexity") <= min(f("tomotopy", "perplexity"), f("topica", "perplexity"))),
            Check("NPMI of tt.LDA is at least that of both",
                  lambda f: f("tt.LDA", "NPMI") >= max(f("tomotopy", "NPMI"), f("topica", "NPMI"))),
            Check("tt.LDA takes less CPU time than both",
                  lambda f: f("tt.LDA", "CPU seconds") < min(f("tomotopy", "CPU seconds"), f("topica", "CPU seconds"))),
        ),
        minutes=3.0, kind="bars", corpora=("imdb50k.parquet",), packages=("tomotopy", "topica"),
        reduced=f"{DOCUMENTS[topics]:,} of IMDB's reviews; 20,000 of them are part of `benchmarks.sampler`",
    )  # fmt: skip


def _thousand() -> Panel:
    """Race for a thousand topics: tomotopy takes half an hour, so its published curves are read."""
    corpora = {"Enron": "enron", "Reuters": "reuters"}
    entries = tuple(
        Entry(f"{trainer}, {corpus}", {"trainer": name, "corpus": file}, words, score)
        for trainer, name in (("tt.LDA", "tertulia-once"), ("tomotopy", "published"))
        for corpus, file in corpora.items() for words, score in (SCORES | {"CPU seconds": "seconds"}).items()
    )  # fmt: skip
    quick = Size((2,), {"topics": 100, "iterations": 20}, ("tt.LDA, Enron",), tuple(SCORES))
    return Panel(
        "peers-race-1000", "peers", "", "tomotopy by its own defaults, K = 1,000",
        "is LDA of this package as good as that of others with a thousand topics?", f"{MEASURE}race", entries,
        Size((2,), {"topics": 1000, "iterations": 240}), quick, control="each other, scored by one estimator",
        checks=tuple(
            Check(f"{corpus}: {says}", compare(f"tt.LDA, {corpus}", f"tomotopy, {corpus}"))
            for corpus in corpora for says, compare in THOUSAND.items()
        ),
        minutes=1.5, kind="bars", corpora=("enron_spam.parquet", "reuters21578.parquet"),
        reduced="240 sweeps of ours, not `auto`; 1,000 iterations of tomotopy; seed 2 alone, two corpora of four",
        remark="tomotopy's numbers are read from `benchmarks/results/sampler_curves.jsonl`: its scores with a seed are "
        "the same everywhere; its seconds are of another processor.",
    )  # fmt: skip


THOUSAND: dict[str, Callable[[str, str], Callable[[Found], bool]]] = {
    "perplexity is at most tomotopy's": lambda ours, theirs: lambda f: f(ours, "perplexity") <= f(theirs, "perplexity"),
    "NPMI is at least tomotopy's": lambda ours, theirs: lambda f: f(ours, "NPMI") >= f(theirs, "NPMI"),
    "diversity is at most 0.02 below tomotopy's": lambda ours, theirs: (
        lambda f: f(ours, "diversity") >= f(theirs, "diversity") - 0.02
    ),
}


def _alpha() -> Panel:
    entries = tuple(
        Entry(f"{words}, {corpus}", {"corpus": name, "total": total}, f"{total:g}", score)
        for words, score in SCORES.items() for corpus, name in CORPORA.items() for total in TOTALS
    )  # fmt: skip
    return Panel(
        "peers-alpha", "peers", "", "perplexity, NPMI and diversity over alpha (0: learned)",
        "does a flatter alpha buy coherence, and what does it cost? Is there a better default?", f"{MEASURE}alpha",
        entries,
        Size((0, 1), {"topics": 50, "sweeps": 100, "documents": 2_000}),
        Size((0,), {"topics": 20, "sweeps": 20}, (), ("0", "5")),
        control="alpha learned, the default",
        checks=(
            *(Check(f"{corpus}: learned alpha has the lowest perplexity, within 1 %",
                    _lowest(f"perplexity, {corpus}")) for corpus in CORPORA),
            *(Check(f"{corpus}: no fixed alpha has an NPMI more than 0.01 above learned alpha",
                    _not_above(f"NPMI, {corpus}")) for corpus in CORPORA),
        ),
        minutes=4.0, axes=("alpha, summed over topics", ""), reduced="K = 50, 100 sweeps, 2,000 reviews, 2 seeds",
        corpora=("imdb50k.parquet", "bbc_news.parquet", "medical_abstracts_2888.parquet"),
    )  # fmt: skip


def _lowest(line: str) -> Callable[[Found], bool]:
    return lambda f: f(line, "0") <= 1.01 * min(f.curve(line))


def _not_above(line: str) -> Callable[[Found], bool]:
    return lambda f: max(f.curve(line)) <= f(line, "0") + 0.01


PANELS = (_race(50), _race(100), _thousand(), _alpha())

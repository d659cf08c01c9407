"""Other implementations of LDA: the race by their own defaults, and what a flatter alpha trades."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.book.panels import Check, Entry, Found, Panel, Size

MEASURE = "benchmarks.book.measures.sampler:"
TRAINERS = {"tt.LDA": "tertulia-auto", "tomotopy": "tomotopy", "topica": "topica"}
SCORES = {"perplexity": "ppl", "NPMI": "npmi", "diversity": "diversity"}
TOTALS = (0.0, 0.5, 5.0, 25.0, 50.0)  # sums of alpha; 0: learned
CORPORA = {"IMDB": "imdb", "BBC": "bbc", "medical abstracts": "medical"}


def _race(topics: int) -> Panel:
    entries = tuple(
        Entry(trainer, {"trainer": name, "topics": topics}, words, score)
        for trainer, name in TRAINERS.items() for words, score in (SCORES | {"CPU seconds": "seconds"}).items()
    )  # fmt: skip
    return Panel(
        f"peers-race-{topics}", "peers", "", f"tomotopy and topica on IMDB by their own defaults, K = {topics}",
        "is LDA of this package as good as that of others, and how long does it take?", f"{MEASURE}race", entries,
        Size((1, 2, 3), {"corpus": "imdb", "iterations": 1000}),
        Size((1,), {"corpus": "imdb", "iterations": 60, "documents": 1000}, ("tt.LDA",)),
        control="each other, scored by one estimator",
        checks=(
            Check("perplexity of tt.LDA is at most that of both",
                  lambda f: f("tt.LDA", "perplexity") <= min(f("tomotopy", "perplexity"), f("topica", "perplexity"))),
            Check("NPMI of tt.LDA is at least that of both",
                  lambda f: f("tt.LDA", "NPMI") >= max(f("tomotopy", "NPMI"), f("topica", "NPMI"))),
            Check("tt.LDA takes less CPU time than both",
                  lambda f: f("tt.LDA", "CPU seconds") < min(f("tomotopy", "CPU seconds"), f("topica", "CPU seconds"))),
        ),
        minutes=60.0, kind="bars", corpora=("imdb50k.parquet",), packages=("tomotopy", "topica"),
        reduced="20,000 of IMDB's reviews; K = 1,000 is part of `benchmarks.sampler`",
    )  # fmt: skip


def _alpha() -> Panel:
    entries = tuple(
        Entry(f"{words}, {corpus}", {"corpus": name, "total": total}, f"{total:g}", score)
        for words, score in SCORES.items() for corpus, name in CORPORA.items() for total in TOTALS
    )  # fmt: skip
    return Panel(
        "peers-alpha", "peers", "", "perplexity, NPMI and diversity over alpha (0: learned)",
        "does a flatter alpha buy coherence, and what does it cost? Is there a better default?", f"{MEASURE}alpha",
        entries, Size((0, 1), {"topics": 50, "sweeps": 150}), Size((0,), {"topics": 20, "sweeps": 20}, (), ("0", "5")),
        control="alpha learned, the default",
        checks=(
            *(Check(f"{corpus}: learned alpha has the lowest perplexity, within 1 %",
                    _lowest(f"perplexity, {corpus}")) for corpus in CORPORA),
            *(Check(f"{corpus}: no fixed alpha has an NPMI more than 0.01 above learned alpha",
                    _not_above(f"NPMI, {corpus}")) for corpus in CORPORA),
        ),
        minutes=4.0, axes=("alpha, summed over topics", ""), reduced="K = 50, 150 sweeps, 3,000 reviews, 2 seeds",
        corpora=("imdb50k.parquet", "bbc_news.parquet", "medical_abstracts_2888.parquet"),
    )  # fmt: skip


def _lowest(line: str) -> Callable[[Found], bool]:
    return lambda f: f(line, "0") <= 1.01 * min(f.curve(line))


def _not_above(line: str) -> Callable[[Found], bool]:
    return lambda f: max(f.curve(line)) <= f(line, "0") + 0.01


PANELS = (_race(50), _race(100), _alpha())

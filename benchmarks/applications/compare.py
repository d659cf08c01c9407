"""Comparison of NSF directorates by topics (the purpose of gFedNTM), and its reliability.

*Directorates*: grants of nine directorates, a party each. How stable are shared and private topics and similarities
over seeds of the model? How much does noise under document-level privacy change them, in large and in small parties?
*Planted*: gFedNTM's synthetic corpora, where it is known which topics are shared and which are private.

Noise comes from secret keys, so figures with noise differ slightly between runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr

from benchmarks.common import OUT, data, say
from benchmarks.gfedntm.corpora import Setting, synthetic
from tertulia import Consensus, Corpus, GFedNTM, Topics
from tertulia._arrays import F64, I64, Array
from tertulia.applications import compare
from tertulia.applications.comparison import Comparison, similarities
from tertulia.corpus.inputs import as_corpus

WORDS = {"min_documents": 5, "max_share": 0.3}
CHOICES = (10, 15, 20, 30)  # more predict even better, but are too many to read
FEW = 15
PERIODS: dict[str, Any] = {"by": "quarter", "since": "2025-10", "until": "2026-09"}
GROUPS = {
    "physical": ("MPS", "GEO", "ENG"),
    "computing": ("CSE", "TIP"),
    "life and people": ("BIO", "SBE", "EDU", "O/D"),
}


class Fitted(NamedTuple):
    """A model, and its comparison without noise."""

    model: Topics
    found: Comparison


def run(quick: bool) -> dict[str, Any]:
    """Run all experiments, and return plain data."""
    parties = directorates()
    topics, perplexity = choose_topics(parties, (FEW,) if quick else CHOICES)
    seeds = range(2 if quick else 3)
    fits = [fit(parties, topics, seed) for seed in seeds]
    show(fits[0], parties, OUT / "applications" / "compare")
    few = fits if topics == FEW else [fit(parties, FEW, seed) for seed in seeds]
    neural = None if quick else fit_neural(parties, topics)
    draws = 2 if quick else 8
    return {
        "documents": {name: corpus.n_documents for name, corpus in parties.items()},
        "topics": topics,
        "validation_perplexity": perplexity,
        "kinds": [kinds(fitted.found) for fitted in fits],
        "kinds_by_size": [kinds(fitted.found, by_size=True) for fitted in fits],
        "seeds": over_seeds(fits),
        "seeds_with_few_topics": over_seeds(few),
        "neural": None if neural is None else agreement(fits[0], neural),
        "noise": {f"{epsilon:g}": under_noise(fits, parties, epsilon, draws) for epsilon in (1.0, 4.0)},
        "groups": by_groups(fits[0], parties),
        "planted": [planted(seed, quick) for seed in seeds],
    }


def kinds(found: Comparison, *, by_size: bool = False) -> dict[str, int]:
    """Count the topics that are shared, private and between."""
    return dict(found.table(by_size=by_size)["kind"].value_counts().sort("kind").iter_rows())


def directorates() -> dict[str, Corpus]:
    """Load the grants by directorate, largest first."""
    table = pl.read_parquet(data("nsf_awards_fy2026.parquet")).cast({"id": pl.String})
    sizes = table["party"].value_counts(sort=True)["party"]
    rows = {name: table.filter(pl.col("party") == name).select("id", "text", "date") for name in sizes}
    return {name: as_corpus(name, part) for name, part in rows.items()}


def choose_topics(parties: dict[str, Corpus], choices: Sequence[int]) -> tuple[int, dict[int, float]]:
    """Choose the number of topics with the lowest held-out perplexity."""
    scores = {}
    for topics in choices:
        trained = Consensus(topics=topics, vocabulary=WORDS).fit(parties, seed=100, heldout=0.15)
        scores[topics] = float(trained.history[-1]["perplexity"])
        say(f"{topics} topics: held-out perplexity {scores[topics]:.0f}")
    return min(scores, key=lambda topics: scores[topics]), scores


def fit(parties: dict[str, Corpus], topics: int, seed: int) -> Fitted:
    """Fit federated LDA, and measure the parties' prevalence under it."""
    model = Consensus(topics=topics, vocabulary=WORDS, evaluate=False).fit(parties, seed=seed, heldout=0.0)
    found = compare.parties(model, parties)
    say(f"seed {seed}: {found}")
    return Fitted(model, found)


def fit_neural(parties: dict[str, Corpus], topics: int) -> Fitted:
    """Fit the model of the paper, ProdLDA."""
    trained = GFedNTM(
        model="prodlda", topics=topics, epochs=60, learning_rate=0.005, vocabulary=WORDS, scenario="centralised", seed=0
    ).fit(parties, heldout=0.0)  # SyncOpt over parties equals training in one place, in a tenth of the time
    model = Topics(
        trained.topic_word, trained.vocabulary, trained.alpha, options=trained.options, encoder=trained.encoder
    )
    return Fitted(model, compare.parties(model, parties))


# --- how stable -----------------------------------------------------------------------------------------------------


def over_seeds(fits: Sequence[Fitted]) -> dict[str, Any]:
    """Compute the agreement of pairs of seeds: mean, minimum and maximum."""
    pairs = [agreement(a, b) for a, b in combinations(fits, 2)]
    return {key: _spread([pair[key] for pair in pairs]) for key in pairs[0]}


def agreement(a: Fitted, b: Fitted) -> dict[str, float]:
    """Compute the agreement of two models on similarities of parties, and on topics matched one to one."""
    first, second, cosine = match(a.model, b.model)
    mine, theirs = a.found.table()[first], b.found.table()[second]  # rows of matched topics
    alike = [_pairs(one.found) for one in (a, b)]
    nearest = [_nearest(one.found) for one in (a, b)]
    effective = (a.found.effective_parties()[first], b.found.effective_parties()[second])
    return {
        "topic_cosine": float(cosine.mean()),
        "same_kind": float((mine["kind"] == theirs["kind"]).to_numpy().mean()),
        "same_main_party": float((mine["most in"] == theirs["most in"]).to_numpy().mean()),
        "effective_parties_spearman": _spearman(*effective),
        "effective_parties_difference": float(np.abs(effective[0] - effective[1]).mean()),
        "similarity_spearman": _spearman(*alike),
        "similarity_difference": float(np.abs(alike[0] - alike[1]).mean()),
        "same_nearest_party": float(np.mean(nearest[0] == nearest[1])),
    }


def match(a: Topics, b: Topics) -> tuple[I64, I64, F64]:
    """Match topics one to one, and return their cosines on common words."""
    there = b.vocabulary.lookup(a.vocabulary.words)
    common = np.flatnonzero(there >= 0)
    cosine = _unit(a.topic_word[:, common]) @ _unit(b.topic_word[:, there[common]]).T
    first, second = linear_sum_assignment(cosine, maximize=True)
    return first, second, cosine[first, second]


# --- noise ----------------------------------------------------------------------------------------------------------


def under_noise(fits: Sequence[Fitted], parties: dict[str, Corpus], epsilon: float, draws: int) -> dict[str, Any]:
    """Measure the effect of noise, over models and draws, on rankings of topics, on parties and on labels."""
    found = [
        (fitted.found, compare.parties(fitted.model, parties, epsilon=epsilon)) for fitted in fits for _ in range(draws)
    ]
    say(f"epsilon {epsilon}: {len(found)} draws")
    sizes = {"large": slice(0, 3), "middle": slice(3, 5), "small": slice(5, 9)}  # 251-257, 88-105 and 18-36 documents
    return {
        "sigma": found[0][1].sigma,
        "draws": len(found),
        "unknown_parties": float(np.mean([np.isnan(noisy.prevalence[:, 0]).sum() for _, noisy in found])),
        **{
            size: {
                "topic_rank_spearman": _mean(found, rows, _spearman),
                "top3_kept": _mean(found, rows, _top3),
                "total_variation": _mean(found, rows, lambda p, q: float(np.abs(p - q).sum() / 2)),
            }
            for size, rows in sizes.items()
        },
        "same_kind": _spread([_labels(clear, noisy, "kind") for clear, noisy in found]),
        "same_kind_by_size": _spread([_labels(clear, noisy, "kind", by_size=True) for clear, noisy in found]),
        "same_main_party": _spread([_labels(clear, noisy, "most in") for clear, noisy in found]),
        "similarity_spearman_all": _spread([_ranks(clear, noisy, 9) for clear, noisy in found]),
        "similarity_spearman_five_largest": _spread([_ranks(clear, noisy, 5) for clear, noisy in found]),
    }


def _mean(found: Sequence[tuple[Comparison, Comparison]], rows: slice, score: Any) -> float:
    """Average a score over draws and parties of a size; a party without a known prevalence counts as uniform."""
    pairs = [
        (p, q) for clear, noisy in found for p, q in zip(clear.prevalence[rows], noisy.prevalence[rows], strict=True)
    ]
    return float(np.mean([score(p, np.full_like(q, 1 / len(q)) if np.isnan(q).any() else q) for p, q in pairs]))


def _top3(p: F64, q: F64) -> float:
    return len({*np.argsort(-p)[:3]} & {*np.argsort(-q)[:3]}) / 3


def _labels(clear: Comparison, noisy: Comparison, column: str, *, by_size: bool = False) -> float:
    a, b = (one.table(by_size=by_size)[column].to_numpy() for one in (clear, noisy))
    return float((a == b).mean())


def _ranks(clear: Comparison, noisy: Comparison, largest: int) -> float:
    a, b = _pairs(clear, largest), _pairs(noisy, largest)
    known = ~np.isnan(b)
    return _spearman(a[known], b[known])


# --- groups, planted, figures ---------------------------------------------------------------------------------------


def by_groups(fitted: Fitted, parties: dict[str, Corpus]) -> dict[str, Any]:
    """Compare sums over groups with the sums of parties."""
    grouped = compare.parties(fitted.model, parties, groups=GROUPS)
    names = list(fitted.found.names)
    sums = [fitted.found.released[[names.index(party) for party in members]].sum(axis=0) for members in GROUPS.values()]
    return {
        "equal": bool((grouped.released == np.stack(sums)).all()),
        "similarity": grouped.similarity().drop("party").to_numpy().round(3).tolist(),
        "private": grouped.private().height,
        "shared": grouped.shared().height,
    }


def planted(seed: int, quick: bool) -> dict[str, float]:
    """Measure how many topics get their true label, shared by five nodes or private to one."""
    size = 200 if quick else 1000
    setting = Setting(nodes=5, words=1000, topics=25, shared=5, eta=0.05, training=size, validation=1)
    made = synthetic(setting, seed)
    model = Consensus(topics=25, vocabulary={"min_documents": 1}, evaluate=False).fit(
        made.parties, seed=seed, heldout=0.0
    )
    truth = Topics(made.beta, made.validation.vocabulary)
    first, second, cosine = match(truth, model)
    scores = {"topic_cosine": float(cosine.mean())}
    for name, epsilon in (("clear", None), ("epsilon_1", 1.0)):
        table = compare.parties(model, made.parties, epsilon=epsilon).table()
        labels, owners = table["kind"].to_numpy()[second], table["most in"].to_numpy()[second]
        expected = np.where(first < setting.shared, "shared", "private")
        node = (first - setting.shared) // 4  # four private topics for each
        right = (labels == expected) & ((first < setting.shared) | (owners == np.char.add("node", node.astype(str))))
        scores[f"labelled_right_{name}"] = float(right.mean())
    say(f"planted, seed {seed}: {scores}")
    return scores


def show(fitted: Fitted, parties: dict[str, Corpus], folder: Path) -> None:
    """Draw the figures of docs/compare.md, and write the tables."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    over_time = compare.parties(fitted.model, parties, **PERIODS, min_documents_per_cell=3)
    noisy = compare.parties(fitted.model, parties, epsilon=1.0)
    fitted.found.save(folder)
    draw: dict[str, Callable[[], Any]] = {
        "prevalence": partial(fitted.found.plot.prevalence, 15),
        "similarity": fitted.found.plot.similarity,
        "sharing": fitted.found.plot.sharing,
        "over_time": over_time.plot.over_time,
        "prevalence_epsilon_1": partial(noisy.plot.prevalence, 15),
    }
    for name, figure in draw.items():
        figure()
        plt.savefig(folder / f"compare_{name}.png", dpi=100)
        plt.close()


def _pairs(found: Comparison, largest: int | None = None) -> F64:
    matrix = similarities(found.prevalence[:largest], "jensen-shannon")
    return np.asarray(matrix[np.triu_indices(len(matrix), 1)])


def _nearest(found: Comparison) -> I64:
    matrix = similarities(found.prevalence, "jensen-shannon")
    np.fill_diagonal(matrix, -1)
    return np.asarray(matrix.argmax(axis=1))


def _spearman(a: F64, b: F64) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a constant has no ranks
        return float(np.nan_to_num(spearmanr(a, b).statistic))


def _spread(values: Sequence[float]) -> list[float]:
    return [float(np.mean(values)), float(np.min(values)), float(np.max(values))]


def _unit(rows: Array) -> F64:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

"""gFedNTM, figure 4: how well a model covers each node's own topics, by Word Mover's Distance over word vectors.

Nodes are fields of study (titles of papers) and directorates (abstracts of grants). The federated models are SyncOpt's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import data, say
from tertulia import GFedNTM
from tertulia.arrays import F64
from tertulia.corpus import Corpus, Vocabulary
from tertulia.metrics.recovery import amwmd

_DIRECTORATES = ("BIO", "CSE", "ENG", "GEO", "MPS")


def real(quick: bool, titles: int, where: Path) -> dict[str, Any]:
    """AMWMD by data set; grants are left out of a quick run, as embedding whole abstracts takes minutes."""
    found = {"titles": cover("titles", _parties("mag_titles_fos", "label", 200 if quick else titles), 200, where)}
    if not quick:
        found["grants"] = cover("grants", _parties("nsf_awards_fy2026", "party", None, _DIRECTORATES), 64, where)
    return found


def cover(name: str, parties: dict[str, Corpus], batch_size: int, where: Path) -> dict[str, float]:
    """Distances (7) from each node's own topics to those of every single node's model and of the federated ones.

    Means over nodes: `federated_10` and `federated_25` by the number of topics; `other_nodes` over all models of single
    nodes, `best_node` of the best of them, both without the node's distance to itself, which is 0.
    """
    training = {"model": "combinedtm", "epochs": 30, "batch_size": batch_size, "learning_rate": 0.005}
    words = {"min_documents": 3, "max_share": 0.3, "max_words": None}
    federated = {K: GFedNTM(**training, topics=K, vocabulary=words).fit(parties, heldout=0.0) for K in (10, 25)}
    vocabulary = federated[10].vocabulary
    alone = {
        **training, "scenario": "alone", "batch_size": max(16, batch_size // len(parties)), "topics": 10,
        "vocabulary": {"mode": "public", "words": vocabulary.words},
    }  # fmt: skip
    single = GFedNTM(**alone).fit(parties, heldout=0.0).local
    vectors = glove(vocabulary)
    models = {
        **{node: model.topic_word for node, model in single.items()},
        **{f"federated_{K}": model.topic_word for K, model in federated.items()},
    }
    distances = np.array([[amwmd(single[node].topic_word, m, vectors) for m in models.values()] for node in single])
    _show(distances, list(single), list(models), where / f"amwmd_{name}")
    n = len(single)
    by_model = distances[:, :n].sum(axis=0) / (n - 1)
    return {
        "federated_10": float(distances[:, n].mean()), "federated_25": float(distances[:, n + 1].mean()),
        "other_nodes": float(by_model.mean()), "best_node": float(by_model.min()),
    }  # fmt: skip


def _show(distances: F64, nodes: list[str], models: list[str], path: Path) -> None:
    """The paper's figure, and its numbers as a table."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    lines = [f"| topics of | {' | '.join(models)} |", "|---" * (len(models) + 1) + "|"]
    lines += [f"| {node} | {' | '.join(f'{d:.2f}' for d in row)} |" for node, row in zip(nodes, distances, strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")
    say("\n".join(lines))
    figure, axis = plt.subplots(figsize=(1.2 + 0.8 * len(models), 1.2 + 0.6 * len(nodes)), constrained_layout=True)
    shown = np.where(distances > 0, distances, np.nan)
    middle = (np.nanmin(shown) + np.nanmax(shown)) / 2
    image = axis.imshow(shown, cmap="viridis_r", aspect="auto")
    for (i, j), value in np.ndenumerate(distances):
        ink = "white" if value > middle else "black"
        axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color=ink)
    axis.set_xticks(range(len(models)), [m.replace("_", " ") for m in models], rotation=40, ha="right")
    axis.set_yticks(range(len(nodes)), nodes)
    axis.set(xlabel="model", ylabel="topics of", title="AMWMD (lower covers better)")
    figure.colorbar(image)
    figure.savefig(path.with_suffix(".png"), dpi=120)
    plt.close(figure)


def _parties(file: str, column: str, limit: int | None, only: tuple[str, ...] | None = None) -> dict[str, Corpus]:
    """Documents by the value of a column, each value a party."""
    table = pl.read_parquet(data(f"{file}.parquet")).cast({"id": pl.String})
    rows = {str(value): part for (value,), part in table.group_by(column, maintain_order=True)}
    chosen = {name: rows[name] if limit is None else rows[name].head(limit) for name in only or sorted(rows)}
    return {
        name: Corpus.from_texts(part["text"].to_list(), part["id"].to_list(), keep_text=True)
        for name, part in chosen.items()
    }


def glove(vocabulary: Vocabulary) -> Any:
    """Word vectors [V, 100]; zero for words that have none."""
    with np.load(data("glove100_vocab.npz")) as file:
        places = {str(word): n for n, word in enumerate(file["words"])}
        vectors = file["vectors"].astype(np.float32)
    found = np.array([places.get(word, -1) for word in vocabulary.words])
    return np.where((found >= 0)[:, None], vectors[found], 0.0)

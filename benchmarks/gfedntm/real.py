"""gFedNTM, figure 4: how well a model covers each node's own topics, by Word Mover's Distance over word vectors.

Nodes are fields of study (titles of papers) and directorates (abstracts of grants). The shared models are trained in
one place, which SyncOpt equals to the digits shown, in a tenth of the time. Nodes alone take as many steps, with
smaller batches. Controls: lists of words drawn at random, the node's own model from another seed, and pooled LDA.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import data, say
from tertulia import LDA, GFedNTM
from tertulia._arrays import F64
from tertulia.corpus import Corpus, Vocabulary
from tertulia.metrics.recovery import amwmd

DIRECTORATES = ("BIO", "CSE", "ENG", "GEO", "MPS")


def real(sets: Sequence[str], titles: int, where: Path, seeds: int) -> dict[str, Any]:
    """Measure AMWMD by data set."""
    found = {}
    if "titles" in sets:
        found["titles"] = cover("titles", parties_of("mag_titles_fos", "label", titles), 200, where, seeds)
    if "grants" in sets:
        parties = parties_of("nsf_awards_fy2026", "party", None, DIRECTORATES)
        found["grants"] = cover("grants", parties, 64, where, seeds)
    return found


def cover(name: str, parties: dict[str, Corpus], batch_size: int, where: Path, seeds: int) -> dict[str, Any]:
    """Return mean distances (7) over nodes, and their standard deviation over seeds.

    `other_nodes` is over all models of single nodes, `best_node` of the best of them, both without the node's distance
    to itself, which is 0; `own_again` is the node's own model from another seed.
    """
    found = []
    for seed in range(seeds):
        distances, single, models = distances_of(parties, batch_size, seed)
        if seed == 0:
            _show(distances, single, models, where / f"amwmd_{name}")
        n = len(single)
        by_model = distances[:, :n].sum(axis=0) / (n - 1)
        means = dict(zip(models[n:], distances[:, n:].mean(axis=0).tolist(), strict=True))
        found.append({**means, "other_nodes": float(by_model.mean()), "best_node": float(by_model.min())})
        say(f"{name}, seed {seed}: {found[-1]}")
    means = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
    return {"seeds": seeds, **means, "sd": {key: float(np.std([one[key] for one in found])) for key in found[0]}}


def distances_of(
    parties: dict[str, Corpus], batch_size: int, seed: int, scenario: str = "centralised", epochs: int = 30
) -> tuple[F64, list[str], list[str]]:
    """Measure distances from each node's own topics (rows) to those of every model (columns: single nodes first)."""
    training = {"model": "combinedtm", "epochs": epochs, "batch_size": batch_size, "learning_rate": 0.005}
    words: dict[str, Any] = {"min_documents": 3, "max_share": 0.3, "max_words": None}
    whole: dict[str, Any] = {**training, "scenario": scenario, "seed": seed, "vocabulary": words}
    shared = {K: GFedNTM(**whole, topics=K).fit(parties, heldout=0.0) for K in (10, 25)}
    vocabulary = shared[10].vocabulary
    words = {"mode": "public", "words": vocabulary.words, "max_words": None}
    alone = {**training, "scenario": "alone", "batch_size": max(16, batch_size // len(parties)), "topics": 10}

    def nodes(seed: int) -> dict[str, Any]:
        model = GFedNTM(**alone, vocabulary=words, seed=seed).fit(parties, heldout=0.0)
        return {node: own.topic_word for node, own in model.local.items()}

    single, again, vectors = nodes(seed), nodes(1000 + seed), glove(vocabulary)
    pooled = Corpus.concatenate(list(parties.values())).encode(vocabulary)
    random, known = np.random.default_rng(seed), np.linalg.norm(vectors, axis=1) > 0
    models = {f"federated_{K}": model.topic_word for K, model in shared.items()}
    for K in (10, 25):
        models[f"lda_{K}"] = LDA(topics=K, sweeps=200, vocabulary=words).fit(pooled, seed=seed).topic_word
        models[f"random_{K}"] = random.random((K, len(vocabulary.words))) * known  # the top words are any words
    rows = [
        [amwmd(own, m, vectors) for m in (*single.values(), *models.values(), again[node])]
        for node, own in single.items()
    ]
    return np.array(rows), list(single), [*single, *models, "own_again"]


def _show(distances: F64, nodes: list[str], models: list[str], path: Path) -> None:
    """Draw the paper's figure, and write its numbers as a table."""
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


def parties_of(file: str, column: str, limit: int | None, only: tuple[str, ...] | None = None) -> dict[str, Corpus]:
    """Return documents by the value of a column, each value a party."""
    table = pl.read_parquet(data(f"{file}.parquet")).cast({"id": pl.String})
    rows = {str(value): part for (value,), part in table.group_by(column, maintain_order=True)}
    chosen = {name: rows[name] if limit is None else rows[name].head(limit) for name in only or sorted(rows)}
    return {
        name: Corpus.from_texts(part["text"].to_list(), part["id"].to_list(), keep_text=True)
        for name, part in chosen.items()
    }


def glove(vocabulary: Vocabulary) -> Any:
    """Return word vectors [V, 100]; zero for words that have none."""
    with np.load(data("glove100_vocab.npz")) as file:
        places = {str(word): n for n, word in enumerate(file["words"])}
        vectors = file["vectors"].astype(np.float32)
    found = np.array([places.get(word, -1) for word in vocabulary.words])
    return np.where((found >= 0)[:, None], vectors[found], 0.0)

"""gFedNTM, figure 4: how well a model covers each field's own topics, by Word Mover's Distance over word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import data, say
from tertulia import GFedNTM
from tertulia.corpus import Corpus, Vocabulary
from tertulia.metrics.recovery import amwmd


def real(quick: bool, where: Path) -> dict[str, Any]:
    """AMWMD of each field's own CombinedTM topics to those of the federated models and of the other fields.

    Means over fields: `federated_10` and `federated_25` by the number of topics, `other_fields` for single models.
    """
    parties = titles(120 if quick else 3200)
    training = {"model": "combinedtm", "epochs": 30, "batch_size": 128, "normalisation": "batch"}
    training |= {"vocabulary": {"min_documents": 3}, "averaging": "fedavg", "local_steps": 20}
    federated = {K: GFedNTM(topics=K, **training).fit(parties, heldout=0.0) for K in (10, 25)}
    vocabulary = federated[10].vocabulary
    words = {"mode": "public", "words": vocabulary.words}
    single = GFedNTM(**{**training, "scenario": "alone", "topics": 10, "vocabulary": words}).fit(parties, heldout=0.0)
    vectors = glove(vocabulary)
    own = {field: model.topic_word for field, model in single.local.items()}
    others = [amwmd(own[a], own[b], vectors) for a in own for b in own if a != b]
    result = {
        **{f"federated_{K}": float(np.mean([amwmd(t, model.topic_word, vectors) for t in own.values()]))
           for K, model in federated.items()},
        "other_fields": float(np.mean(others)),
    }  # fmt: skip
    say(f"AMWMD to the fields' own topics: {result}")
    return result


def titles(limit: int) -> dict[str, Corpus]:
    """Titles of papers by field of study, each field a party."""
    table = pl.read_parquet(data("mag_titles_fos.parquet")).cast({"id": pl.String})
    return {
        str(field): Corpus.from_texts(rows["text"].to_list(), rows["id"].to_list(), keep_text=True)
        for (field,), rows in sorted(
            table.group_by("label", maintain_order=True).__iter__(), key=lambda item: str(item[0])
        )
        for rows in [rows.head(limit)]
    }


def glove(vocabulary: Vocabulary) -> Any:
    """Word vectors [V, 100]; zero for words that have none."""
    with np.load(data("glove100_vocab.npz")) as file:
        places = {str(word): n for n, word in enumerate(file["words"])}
        vectors = file["vectors"].astype(np.float32)
    found = np.array([places.get(word, -1) for word in vocabulary.words])
    return np.where((found >= 0)[:, None], vectors[found], 0.0)

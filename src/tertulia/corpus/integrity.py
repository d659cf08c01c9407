"""Whether the parts of a stored corpus fit together, before any kernel reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._arrays import Array
from tertulia.errors import FormatError

if TYPE_CHECKING:
    import polars as pl

_BLOCK = 1 << 22  # numbers looked at in one go: mapped arrays stay on disk
_KINDS = {"words": ("i4",), "documents": ("i8",), "sentences": ("i4", "i8"), "paragraphs": ("i4", "i8")}


def check_parts(parts: Any) -> None:
    """Raise `FormatError` unless words are numbers of the vocabulary, and offsets rise from 0 to the last token."""
    for name, kinds in _KINDS.items():
        array: Array = parts[name]
        if array.ndim != 1 or array.dtype.str not in {f"<{kind}" for kind in kinds}:
            raise FormatError(f"{name} are {array.dtype} {array.shape}, not a row of integers")
    _check_range("words", parts["words"], len(parts["vocabulary"]))
    for name in ("documents", "sentences", "paragraphs"):
        _check_offsets(name, parts[name], len(parts["words"]), strictly=name != "documents")
    for name in ("sentences", "paragraphs"):
        within = np.searchsorted(parts[name], parts["documents"])
        if not np.array_equal(np.asarray(parts[name])[within], parts["documents"]):
            raise FormatError(f"{name} cross documents")
    _check_table(parts["table"], len(parts["documents"]) - 1)


def _check_range(name: str, array: Array, size: int) -> None:
    for start in range(0, len(array), _BLOCK):
        block = array[start : start + _BLOCK]
        if block.min() < 0 or block.max() >= size:
            raise FormatError(f"{name} are not within 0 and {size}")


def _check_offsets(name: str, offsets: Array, tokens: int, *, strictly: bool) -> None:
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != tokens:
        raise FormatError(f"offsets of {name} do not run from 0 to {tokens}")
    for start in range(0, len(offsets), _BLOCK):
        block = offsets[start : start + _BLOCK + 1]
        rising = block[1:] > block[:-1] if strictly else block[1:] >= block[:-1]
        if not rising.all():
            raise FormatError(f"offsets of {name} do not rise")


def _check_table(table: pl.DataFrame, documents: int) -> None:
    import polars as pl

    if table.height != documents:
        raise FormatError(f"the table has {table.height} rows for {documents} documents")
    texts = [name for name in ("id", "label", "date", "user", "text") if name in table.columns]
    if "id" not in texts or any(table[name].dtype != pl.String for name in texts) or table["id"].null_count():
        raise FormatError("the table has no ids, or columns that are no texts")
    if "embedding" in table.columns and not isinstance(table["embedding"].dtype, pl.Array):
        raise FormatError("the table's embeddings are no vectors")

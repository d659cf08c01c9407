"""Matrices of word counts, such as scikit-learn's vectorisers make, converted to a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.corpus.corpus import Corpus
from tertulia.corpus.offsets import narrow, offsets_of
from tertulia.corpus.vocabulary import Vocabulary
from tertulia.errors import InputError

_MOST_TOKENS = 2**31 - 1


def is_matrix(documents: Any) -> bool:
    """Return whether documents are a matrix of numbers: an array, a sparse matrix, or a frame of numbers only.

    >>> is_matrix(np.ones((2, 3))), is_matrix([[1, 2], [0, 4]]), is_matrix(["a text"]), is_matrix([["a", "token"]])
    (True, True, False, False)
    """
    if _is_sparse(documents):
        return True
    if hasattr(documents, "column_names") or isinstance(documents, Mapping):
        return False  # a table of `datasets` or pyarrow, or a dict of columns
    if hasattr(documents, "columns"):
        return "text" not in list(documents.columns) and _is_numeric_frame(documents)
    if hasattr(documents, "__array__"):
        array = documents if isinstance(documents, np.ndarray) else np.asarray(documents)
        return array.ndim != 1 or array.dtype.kind in "biufc"
    first = next(iter(documents), None) if isinstance(documents, list | tuple) else None
    return isinstance(first, list | tuple) and len(first) > 0 and all(isinstance(x, int | float) for x in first)


def _is_sparse(documents: Any) -> bool:
    return hasattr(documents, "tocsr")


def _is_numeric_frame(frame: Any) -> bool:
    kinds = [str(kind).lower() for kind in getattr(frame, "dtypes", ())]
    return bool(kinds) and all(kind.startswith(("int", "uint", "float", "bool")) for kind in kinds)


def names_of(matrix: Any) -> tuple[str, ...] | None:
    """Return the names of the columns; None if they have none."""
    if not hasattr(matrix, "columns"):
        return None
    names = list(matrix.columns)
    return tuple(names) if all(isinstance(name, str) for name in names) else None


class NamedCounts:
    """A matrix of counts with the words that its columns count."""

    def __init__(self, matrix: Any, columns: Sequence[str]) -> None:
        self._matrix, self.columns = matrix, list(columns)
        self.shape = matrix.shape if hasattr(matrix, "shape") else np.asarray(matrix).shape
        self.dtypes = ("int",)  # as of a frame of numbers

    def tocoo(self) -> Any:
        """Return the entries that are not zero."""
        from scipy.sparse import coo_array

        return self._matrix.tocoo() if _is_sparse(self._matrix) else coo_array(np.asarray(self._matrix))

    tocsr = tocoo


def with_names(documents: Any, names: Any) -> Any:
    """Give the columns of a matrix of counts names: words, or a fitted vectoriser that knows them.

    >>> from_counts(with_names([[2, 0], [1, 1]], ["rain", "sun"])).vocabulary.words
    ('rain', 'sun')
    """
    if names is None:
        return documents
    if not is_matrix(documents):
        raise InputError("feature_names are for matrices of counts; these are documents, whose words are known")
    if hasattr(names, "get_feature_names_out"):
        names = _names_from(names)
    found = [names] if isinstance(names, str) else list(names)
    columns = columns_of(documents)
    if len(found) != columns or not all(isinstance(name, str) for name in found):
        raise InputError(f"{len(found)} feature_names were given for {columns} columns: give one word for each")
    if len(set(found)) < len(found):
        raise InputError("two feature_names are the same: each column counts a word of its own")
    return NamedCounts(documents, [str(name) for name in found])


def _names_from(vectoriser: Any) -> Any:
    try:
        return vectoriser.get_feature_names_out()
    except (AttributeError, ValueError) as error:  # scikit-learn's NotFittedError is both
        raise InputError(
            f"feature_names: {type(vectoriser).__name__} is not fitted: give the very step of the pipeline (a pipeline "
            "with `memory` fits a copy of it), or the words themselves"
        ) from error


def columns_of(matrix: Any) -> int | None:
    """Return the number of columns; None if it is not a matrix."""
    shape = matrix.shape if hasattr(matrix, "shape") else np.asarray(matrix).shape
    return int(shape[1]) if len(shape) == 2 else None


def from_counts(matrix: Any, words: Sequence[str] | None = None) -> Corpus:
    """Make a corpus of a matrix [documents, words] of counts; fractions are rounded.

    >>> from_counts([[2, 0], [1, 1]], ["rain", "sun"])
    Corpus(2 documents, 4 tokens, 2 words)
    """
    import polars as pl

    rows, columns, counts, shape = _entries(matrix)
    names = tuple(words) if words is not None else names_of(matrix) or tuple(f"x{v}" for v in range(shape[1]))
    if len(names) != shape[1]:
        raise InputError(f"X has {shape[1]} features, but {len(names)} words are expected as columns")
    order = np.lexsort((columns, rows))
    tokens = np.repeat(columns[order], counts[order]).astype(np.int32)
    lengths = np.bincount(rows, weights=counts, minlength=shape[0]).astype(np.int64)
    documents = offsets_of(lengths)
    units = narrow(offsets_of(lengths[lengths > 0]))  # a row is one sentence: a matrix has no order of words
    table = pl.DataFrame({"id": [str(row) for row in range(shape[0])]})
    return Corpus(tokens, documents, units, units, Vocabulary(names), table)


def _entries(matrix: Any) -> tuple[I64, I64, I64, tuple[int, int]]:
    """Return rows, columns and counts of the entries that are not zero, and the shape."""
    if _is_sparse(matrix):
        found = matrix.tocoo()
        rows, columns, values, shape = found.row, found.col, _numbers(found.data), found.shape
    else:
        dense = _numbers(matrix.to_numpy() if hasattr(matrix, "to_numpy") else np.asarray(matrix))
        if dense.ndim != 2:
            raise InputError(
                f"Expected 2D array, got {dense.ndim}D array instead: counts are a row for each document. Reshape your "
                "data with X.reshape(1, -1) if it is one document"
            )
        rows, columns = np.nonzero(dense)
        values, shape = dense[rows, columns], dense.shape
    _check(values, shape)
    counts = np.rint(values).astype(np.int64)
    some = counts > 0
    return rows[some].astype(np.int64), columns[some].astype(np.int64), counts[some], (int(shape[0]), int(shape[1]))


def _numbers(values: Array) -> Array:
    if np.iscomplexobj(values):
        raise InputError("Complex data not supported: give counts of words")
    if values.dtype.kind not in "biuf":
        try:
            return values.astype(np.float64)
        except ValueError as error:
            raise InputError(f"a matrix of counts cannot hold this ({error}): give numbers") from error
        except TypeError as error:
            raise TypeError(f"{error}: give a matrix of counts, or texts") from error
    return values


def _check(values: Array, shape: tuple[int, ...]) -> None:
    if 0 in shape:
        what = "sample" if shape[0] == 0 else "feature"
        raise InputError(f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")
    if not np.all(np.isfinite(values)):
        raise InputError("Input X contains NaN or infinity: counts are finite numbers")
    if values.size and values.min() < 0:
        raise InputError("Negative values in data passed as counts of words: they count from 0")
    if values.sum(dtype=np.float64) > _MOST_TOKENS:
        raise InputError(f"counts add up to {values.sum(dtype=np.float64):g} tokens: at most {_MOST_TOKENS} can be")

"""How words relate: a sparse, symmetric matrix over a vocabulary, from word vectors or from a list of pairs.

Its entries are not negative, and 1 on the diagonal of each word about which something is known (PC-TD, eq. 12).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tertulia._arrays import F32, F64, I64
from tertulia.corpus.word_vectors import WordVectors
from tertulia.errors import InputError

_BLOCK = 1024  # words whose similarities with all others are held at a time


class Relations(NamedTuple):
    """Which words have relations, and how strong these are."""

    numbers: I64  # [A] words of the vocabulary, rising
    R: sparse.csr_array  # [A, A]


def similarities(found: WordVectors, neighbours: int, least: float) -> Relations:
    """Cosine similarities of words, of each its `neighbours` nearest that reach `least`, and of theirs."""
    unit = found.vectors / np.maximum(np.linalg.norm(found.vectors, axis=1, keepdims=True), np.float32(1e-30))
    blocks = [_nearest(unit, first, neighbours, least) for first in range(0, len(unit), _BLOCK)]
    rows, columns, values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return _symmetric(found.numbers, rows, columns, values)


def _nearest(unit: F32, first: int, neighbours: int, least: float) -> tuple[I64, I64, F64]:
    cosine = unit[first : first + _BLOCK] @ unit.T
    cosine[np.arange(len(cosine)), first + np.arange(len(cosine))] = -1.0  # not its own neighbour
    rows, columns = np.nonzero(cosine >= max(least, 1e-6))
    values = cosine[rows, columns].astype(np.float64)
    order = np.lexsort((columns, -values, rows))  # the nearest first, in each row
    rows, columns, values = rows[order], columns[order], values[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    kept = rank < neighbours
    return rows[kept] + first, columns[kept], np.minimum(values[kept], 1.0)


def read_relations(path: str | Path, words: Sequence[str]) -> Relations:
    """Read pairs of words, a pair per line: word, tab, word, and if it is not 1, tab, strength.

    Words that the vocabulary lacks are passed over.
    """
    number = {word: i for i, word in enumerate(words)}
    pairs: list[tuple[int, int, float]] = []
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the word relations {path} cannot be read ({error}): give a UTF-8 text file") from error
    for n, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            one, other, strength = _pair(line, f"{path}, line {n}")
            if one in number and other in number and one != other:
                pairs.append((number[one], number[other], strength))
    if not pairs:
        raise InputError(f"{path} relates no two words of the vocabulary: is it another language, or cased?")
    columns = np.array(pairs)
    numbers, places = np.unique(columns[:, :2].astype(np.int64), return_inverse=True)
    places = places.reshape(-1, 2)
    return _symmetric(numbers, places[:, 0], places[:, 1], columns[:, 2])


def _pair(line: str, where: str) -> tuple[str, str, float]:
    one, other, *rest = [*(part.strip() for part in line.split("\t")), ""][:3] if "\t" in line else ("", "", "")
    try:
        strength = float(rest[0] or 1.0)
    except ValueError:
        strength = -1.0
    if not (one and other and 0.0 <= strength < np.inf):
        raise InputError(f"{where}: write two words and a strength of at least 0, with tabs between")
    return one, other, strength


def _symmetric(numbers: I64, rows: I64, columns: I64, values: F64) -> Relations:
    """The larger of the two values of each pair, and 1 on the diagonal."""
    n = len(numbers)
    key = rows * n + columns
    order = np.lexsort((values, key))
    largest = order[np.append(key[order][1:] != key[order][:-1], True)]  # of a pair that is listed twice
    R = sparse.csr_array((values[largest], (rows[largest], columns[largest])), shape=(n, n))
    R = R.maximum(R.T)
    R.setdiag(1.0)
    return Relations(numbers, sparse.csr_array(R))

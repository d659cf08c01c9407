"""Word vectors, read from files for the words of one vocabulary, and relations between words.

| file | format |
|---|---|
| `.npz` | arrays `words` and `vectors` |
| `.bin` | word2vec, binary |
| anything else | text, a word and its numbers per line: GloVe, or word2vec with its header line |

Each may be compressed (`.gz`). Words are matched exactly; vectors of other words are never held in memory.

Relations are a sparse, symmetric matrix over a vocabulary, from word vectors or from a list of pairs. Entries are not
negative, and 1 on the diagonal of each word that has a vector or a pair (PC-TD, eq. 12).
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from scipy import sparse

from tertulia._arrays import F32, F64, I64
from tertulia.errors import InputError

_LONGEST_WORD = 10_000  # bytes; a longer word means that it is no word2vec file
_BLOCK = 1024  # words whose similarities with all others are held at a time


class WordVectors(NamedTuple):
    """Vectors of some of a vocabulary's words."""

    numbers: I64  # [A] the words that have one, ascending
    vectors: F32  # [A, d]


def read_vectors(path: str | Path, words: Sequence[str]) -> WordVectors:
    """Read the vectors of these words; for a word that is listed twice, the first counts."""
    path = Path(path)
    number = {word: i for i, word in enumerate(words)}
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    entries = {".npz": _from_npz, ".bin": _from_binary}.get(kind, _from_text)
    found: dict[int, F32] = {}
    try:
        for word, vector in entries(path, number):
            if vector.shape != (width := next(iter(found.values()), vector)).shape or not np.isfinite(vector).all():
                raise InputError(f"{path}: the vector of '{word}' is not {len(width)} numbers like the one before")
            found.setdefault(number[word], vector)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the word vectors {path} cannot be read ({error}): check the path and the format") from error
    if not found:
        raise InputError(f"{path} holds no vector of any word of the vocabulary: is it another language, or cased?")
    order = sorted(found)
    return WordVectors(np.array(order, dtype=np.int64), np.stack([found[i] for i in order]))


def _open(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _from_npz(path: Path, wanted: dict[str, int]) -> Iterator[tuple[str, F32]]:
    with _open(path) as file, np.load(file, allow_pickle=False) as arrays:
        words, vectors = arrays["words"], arrays["vectors"]
    for word, vector in zip(words.tolist(), vectors, strict=True):
        if word in wanted:
            yield word, np.asarray(vector, dtype=np.float32)


def _from_binary(path: Path, wanted: dict[str, int]) -> Iterator[tuple[str, F32]]:
    with _open(path) as file:
        count, width = (int(number) for number in file.readline(100).split())
        for _ in range(count):
            word = _word(file).decode("utf-8", errors="replace")
            raw = file.read(4 * width)
            if len(raw) < 4 * width:
                raise InputError(f"{path} ends in the middle of the vector of '{word}': it is damaged, fetch it again")
            if word in wanted:
                yield word, np.frombuffer(raw, dtype="<f4").astype(np.float32)


def _word(file: BinaryIO) -> bytes:
    letters = bytearray()
    while (letter := file.read(1)) != b" ":
        if not letter or len(letters) > _LONGEST_WORD:
            raise EOFError("no word where one should be")
        letters += letter
    return bytes(letters).lstrip(b"\n")


def _from_text(path: Path, wanted: dict[str, int]) -> Iterator[tuple[str, F32]]:
    width = 0
    with _open(path) as file:
        for n, line in enumerate(file):
            word, *numbers = line.decode("utf-8", errors="replace").rstrip().split(" ")
            if n == 0 and len(numbers) == 1:
                continue  # the header of word2vec
            width = width or len(numbers)
            if word in wanted and len(numbers) == width:  # some "words" of GloVe contain blanks, ours never do
                yield word, np.array(numbers, dtype=np.float32)


class Relations(NamedTuple):
    """The words that have relations, and the strengths of these."""

    numbers: I64  # [A] words of the vocabulary, ascending
    R: sparse.csr_array  # [A, A]


def similarities(found: WordVectors, neighbours: int, least: float) -> Relations:
    """Compute cosine similarities of each word with its `neighbours` nearest words that reach `least`."""
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
    """Read pairs of words, one per line: word, tab, word, and optionally tab and strength (default 1).

    Words that the vocabulary lacks are skipped.
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
    """Make the matrix of the larger of the two values of each pair, with 1 on the diagonal."""
    n = len(numbers)
    key = rows * n + columns
    order = np.lexsort((values, key))
    largest = order[np.append(key[order][1:] != key[order][:-1], True)]  # of a pair that is listed twice
    R = sparse.csr_array((values[largest], (rows[largest], columns[largest])), shape=(n, n))
    R = R.maximum(R.T)
    R.setdiag(1.0)
    return Relations(numbers, sparse.csr_array(R))

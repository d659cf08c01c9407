"""Word vectors from the files that people have, for the words of one vocabulary: the rest is never held in memory.

| file | format |
|---|---|
| `.npz` | arrays `words` and `vectors` |
| `.bin` | word2vec, binary |
| anything else | text, a word and its numbers per line: GloVe, or word2vec with its header line |

Each may be compressed (`.gz`). Words are matched as they are written.
"""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from tertulia._arrays import F32, I64
from tertulia.errors import InputError

_LONGEST_WORD = 10_000  # bytes; more without a blank is no word2vec file


class WordVectors(NamedTuple):
    """Vectors of some of a vocabulary's words."""

    numbers: I64  # [A] of the words that have one, rising
    vectors: F32  # [A, d]


def read_vectors(path: str | Path, words: Sequence[str]) -> WordVectors:
    """Read the vectors of these words; of a word that is listed twice, the first."""
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
            if word in wanted and len(numbers) == width:  # some "words" of GloVe hold blanks: none of ours does
                yield word, np.array(numbers, dtype=np.float32)

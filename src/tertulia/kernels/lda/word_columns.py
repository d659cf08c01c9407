"""Columns of tokens, one for each word: the place of each token in its word's column, in the order of documents.

They take four bytes per token, and are made once for a corpus. Samplers for many topics read a word's tokens at once.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tertulia._arrays import I32, I64
from tertulia.errors import InputError
from tertulia.kernels.core import parallel
from tertulia.kernels.core.jit import freeze, kernel
from tertulia.kernels.lda.counts import frequency

U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
MOST_TOPICS = 2**16  # a topic has two bytes here
_MOST_TOKENS = 2**32


class Columns(NamedTuple):
    """The columns of the words: column w is places starts[w]..starts[w + 1] - 1."""

    starts: I64  # [V+1]
    places: U32  # [N] the place of token i


def columns(words: I32, V: int, threads: int = 1) -> Columns:
    """Sort tokens [N] by word, those of one word in their old order.

    >>> columns(np.array([1, 0, 1], dtype=np.int32), V=2)
    Columns(starts=array([0, 1, 3]), places=array([1, 0, 2], dtype=uint32))
    """
    if len(words) >= _MOST_TOKENS:
        raise InputError(f"{len(words)} tokens: the samplers 'sparse' and 'warp' take fewer than {_MOST_TOKENS}")
    ranges, words = parts(len(words), threads), freeze(words, np.int32)
    tokens = np.array(
        parallel.run(frequency, [(words[first:last], V) for first, last in ranges], threads)
    )  # [parts, V]
    starts = np.concatenate(([0], np.cumsum(tokens.sum(axis=0))))
    free = starts[:-1] + np.cumsum(tokens, axis=0) - tokens  # where each part's tokens of a word begin
    places = np.empty(len(words), dtype=np.uint32)
    parallel.run(_place_block, [(words, *ends, mine, places) for ends, mine in zip(ranges, free, strict=True)], threads)
    return Columns(freeze(starts, np.int64), freeze(places, np.uint32))


def sort(places: U32, z: I32, threads: int) -> U16:
    """Move the topics of tokens to their places."""
    by_word = np.empty(len(z), dtype=np.uint16)
    parallel.run(_sort_block, [(places, z, by_word, first, last) for first, last in parts(len(z), threads)], threads)
    return by_word


def parts(n: int, threads: int) -> list[tuple[int, int]]:
    """Cut 0..n-1 into a range for each thread; ranges may be empty."""
    return list(pairwise(n * part // threads for part in range(threads + 1)))


def check_topic_count(K: int) -> None:
    """Raise if there are more topics than two bytes can name."""
    if K > MOST_TOPICS:
        raise InputError(f"K = {K}: the samplers 'sparse' and 'warp' take at most {MOST_TOPICS} topics")


@kernel
def _place_block(words: I32, first: int, last: int, free: I64, places: U32) -> None:
    for i in range(first, last):
        places[i] = free[words[i]]
        free[words[i]] += 1


@kernel
def _sort_block(places: U32, z: I32, by_word: U16, first: int, last: int) -> None:
    for i in range(first, last):
        by_word[places[i]] = z[i]

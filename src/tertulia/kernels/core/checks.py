"""Checks of arguments: compiled code trusts its indices, so no array reaches it unchecked."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import F64, I32, I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core.jit import freeze

# Some kernels compute in 32 bits. Beyond these bounds a prior becomes 0 or infinite there, draws become NaN, and NaN as
# an index points anywhere.
LEAST_PRIOR, MOST_PRIOR = 1e-20, 1e9


def check_documents(words: Array, documents: Array, V: int) -> tuple[I32, I64]:
    """Check tokens [N] against the vocabulary and document offsets [D+1] against the tokens; return both frozen."""
    words, documents = np.asarray(words), np.asarray(documents)
    if words.ndim != 1 or documents.ndim != 1 or len(documents) == 0:
        raise InputError(f"words {words.shape} and documents {documents.shape} must be flat; documents starts with 0")
    if documents[0] != 0 or documents[-1] != len(words) or np.any(documents[1:] < documents[:-1]):
        raise InputError(f"documents must rise from 0 to the number of tokens, {len(words)}, and never fall")
    _within("words", words, V, "encode the documents over the model's vocabulary")
    return freeze(words, np.int32), freeze(documents, np.int64)


def check_sentences(sentences: Array, documents: Array, n_tokens: int) -> tuple[I64, I64]:
    """Return the token offsets of the sentences that have words [S+1] and document offsets in these [D+1], frozen."""
    tokens: I64 = np.unique(np.append(0, np.asarray(sentences, dtype=np.int64)))
    if tokens[0] < 0 or tokens[-1] != n_tokens or not np.all(np.isin(documents, tokens)):
        raise InputError("sentences must rise from 0 to the number of tokens, and documents end where a sentence ends")
    return freeze(tokens, np.int64), freeze(np.searchsorted(tokens, documents), np.int64)


def check_assignment(z: Array, n_tokens: int, K: int, least: int = 0) -> I32:
    """Copy the topics [N] of tokens, each within 0..K-1; with `least` = -1 some may have none."""
    z = np.asarray(z)
    if z.shape != (n_tokens,):
        raise InputError(f"z has shape {z.shape}, but there are {n_tokens} tokens: is it another corpus's state?")
    _within("z", z, K, "is it the state of a model with more topics?", least)
    return np.array(z, dtype=np.int32)


def check_alpha(alpha: float | Array, K: int) -> F64:
    """Check the prior of topics, one number or K of them; return it as [K]."""
    alpha = np.asarray(alpha, dtype=np.float64)
    if alpha.shape not in ((), (K,)):
        raise InputError(f"alpha has shape {alpha.shape}: give one number, or one for each of the {K} topics")
    if not np.all((alpha >= LEAST_PRIOR) & (alpha <= MOST_PRIOR)):
        raise InputError(f"alpha = {alpha}: every entry must be a positive number, {LEAST_PRIOR:g} to {MOST_PRIOR:g}")
    return np.array(np.broadcast_to(alpha, (K,)))


def check_counts(counts: Array) -> None:
    """Refuse counts below zero: samplers take them for weights."""
    if counts.size and counts.min() < 0:
        raise InputError("counts of all others are below zero: they do not hold the party's own")


def check_beta(beta: float) -> float:
    """Check the prior of words."""
    if not LEAST_PRIOR <= beta <= MOST_PRIOR:
        raise InputError(f"beta = {beta}: it must be a positive number, such as 0.01")
    return float(beta)


def check_size(V: int, K: int) -> None:
    """Refuse models without a topic or without a word."""
    if K < 1:
        raise InputError(f"K = {K}: a model needs at least 1 topic")
    if V < 1:
        raise InputError(f"V = {V}: the vocabulary is empty, so there is nothing to model")


def check_topics(topic_word: Array) -> Array:
    """Check a topic-word matrix [K, V]: masses are finite, and none is negative."""
    topic_word = np.asarray(topic_word)
    if topic_word.ndim != 2:
        raise InputError(f"topic_word has shape {topic_word.shape}: it must be [topics, words]")
    check_size(topic_word.shape[1], topic_word.shape[0])
    if not (np.all(np.isfinite(topic_word)) and np.all(topic_word >= 0)):
        raise InputError("topic_word holds negative or non-finite entries: give probabilities or counts")
    return topic_word


def _within(name: str, x: Array, stop: int, remedy: str, least: int = 0) -> None:
    if len(x) and x.dtype.kind not in "iu":
        raise InputError(f"{name} are {x.dtype}, not whole numbers: {remedy}")
    if len(x) and (x.min() < least or x.max() >= stop):
        raise InputError(f"{name} run from {x.min()} to {x.max()}, outside {least}..{stop - 1}: {remedy}")

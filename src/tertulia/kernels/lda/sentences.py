"""Documents cut into sentences: the units of SentenceLDA."""

from __future__ import annotations

import numpy as np

from tertulia._arrays import I64, Array
from tertulia.errors import InputError
from tertulia.kernels.core.jit import frozen


def sentence_offsets(sentences: Array, documents: Array, n_tokens: int) -> tuple[I64, I64]:
    """Token offsets of the sentences that have words [S+1], and of documents in these [D+1]."""
    tokens: I64 = np.unique(np.append(0, np.asarray(sentences, dtype=np.int64)))
    if tokens[0] < 0 or tokens[-1] != n_tokens or not np.all(np.isin(documents, tokens)):
        raise InputError("sentences must rise from 0 to the number of tokens, and documents end where a sentence ends")
    return frozen(tokens, np.int64), frozen(np.searchsorted(tokens, documents), np.int64)

"""What a neural model is and how large: free of torch, so that settings can speak of it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["prodlda", "combinedtm", "zeroshottm"]
Normalisation = Literal["batch", "sync", "layer"]
Precision = Literal["float32", "float64"]


class Sizes(NamedTuple):
    """How large the network is, and its fixed numbers."""

    words: int  # V
    topics: int  # K
    embedding: int = 0  # E: how wide sentence embeddings are, where the model reads them
    hidden: tuple[int, ...] = (100, 100)
    dropout: float = 0.2
    alpha: float = 1.0  # of each topic: theta's Dirichlet prior
    learn_prior: bool = True
    literal_adapter: bool = False  # CombinedTM as published, with an E x V layer before the first
    shifts: bool = False  # whether means survive the norms: they do LayerNorm, not BatchNorm

"""Conventional distributed LDA, as FTM is compared with: a parameter server that synchronises after every sweep.

AD-LDA (Newman et al., JMLR 2009): all parties start from random topics, and a round is one sweep beside the counts of
everybody else, whose sum is broadcast. It needs as many rounds as sweeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus import Vocabulary
from tertulia.federation.types import Federation, Party, message, step
from tertulia.kernels import lda
from tertulia.kernels.lda import blocked
from tertulia.methods.common.evaluation import perplexity, score
from tertulia.privacy.mechanisms import Clear

COUNTS = Clear("topic-word counts")


@message
class Everyone:
    """The counts of all."""

    words: tuple[str, ...]
    counts: Array  # [K, V]
    alpha: float  # the sum over topics
    beta: float


@message
class Own:
    """One party's counts."""

    counts: Array  # [K, V]


@message
class Topics:
    """What a party keeps."""

    z: Array  # [N]


@message
class State:
    """What the server keeps."""

    round: int
    counts: Array


@step
def synchronise(party: Party, state: Topics | None, ask: Everyone) -> tuple[Topics, Own]:
    """Count a random start, the first time; then one sweep beside the counts of all others."""
    corpus, (K, V) = party.documents(Vocabulary(ask.words)), ask.counts.shape
    alpha = np.full(K, ask.alpha / K)
    others = np.ascontiguousarray(ask.counts.T, dtype=np.int32)
    if state is None:
        z, keys = lda.init(corpus.words, corpus.documents, V, K, alpha, ask.beta, party.seed).z, []
    else:
        z, keys = state.z, [party.seed ^ 1]
        np.subtract.at(others, (corpus.words, z), 1)
    z, own, _ = blocked.run_beside(corpus.words, corpus.documents, z, others, alpha, ask.beta, keys, adds_up=False)
    return Topics(z), Own(party.release(np.ascontiguousarray(own.T), COUNTS))


STEPS = (synchronise, score)


def train(fed: Federation, config: Mapping[str, Any], state: State | None = None) -> list[dict[str, float]]:
    """Synchronise `rounds` times; return the curve of (round, log likelihood of a held-out token)."""
    words, alpha, beta = tuple(config["words"]), config["alpha"], config["beta"]
    state = state or fed.commit(State(0, np.zeros((config["topics"], len(words)), dtype=np.int32)))
    curve: list[dict[str, float]] = []
    while state.round < config["rounds"]:
        counts = fed.sum(synchronise, Everyone(words, state.counts, alpha, beta)).counts.astype(np.int32)
        round_ = state.round + 1
        if round_ % config["every"] == 0:
            phi = (counts + beta) / (counts + beta).sum(axis=1, keepdims=True)
            found = perplexity(fed, words, phi, np.full(len(phi), alpha / len(phi)), config["smoothing"])
            curve.append({"round": round_, "ll": -float(np.log(found))})
        state = fed.commit(State(round_, counts), durable=config["rounds"])
    return curve

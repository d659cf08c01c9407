"""A party's sweeps in a round of Consensus, beside the counts of all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertulia._arrays import I32
from tertulia.corpus import Corpus
from tertulia.federation.types import Party
from tertulia.kernels import lda, noise_aware
from tertulia.kernels.core.checks import check_alpha
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked
from tertulia.methods.common.start import smooth
from tertulia.methods.ftm.local import report_tokens
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism

if TYPE_CHECKING:
    from tertulia.methods.consensus.method import Counting, Shared

COUNTS = "topic-word counts"


class Sweep(NamedTuple):
    """Where a sweep ends."""

    z: I32
    taken_for: I32
    own: I32  # [V, K] counts
    mechanism: Mechanism  # by which counts leave


def sweep_words(party: Party, corpus: Corpus, before: Counting | None, others: I32, ask: Shared) -> Iterator[Sweep]:
    """Sweeps over words as they are."""
    alpha, beta = check_alpha(ask.alpha, len(ask.counts)), ask.training.beta
    threads = party.setting("threads", 1)
    if before is None:
        topics = smooth(ask.counts, beta)
        z = lda.init_from_topics(corpus.words, corpus.documents, topics, alpha, beta, party.seed).z
    else:
        z = before.z
    for s in range(ask.training.sweeps):
        key = int(derive(party.seed ^ 1, s))
        z, own = blocked.run_beside(corpus.words, corpus.documents, z, others, alpha, beta, key, threads)
        yield Sweep(z, corpus.words, own, Clear(COUNTS))


def sweep_reports(party: Party, corpus: Corpus, before: Counting | None, others: I32, ask: Shared) -> Iterator[Sweep]:
    """Sweeps over words that are known by their reports only."""
    tokens = report_tokens(party, corpus, ask.training)
    reports = tokens.listed(corpus.n_tokens)
    source, documents = reports.source, reports.offsets(corpus.documents)
    alpha, beta = check_alpha(ask.alpha, len(ask.counts)), ask.training.beta
    threads = party.setting("threads", 1)
    if before is None:
        topics = smooth(ask.counts, beta)
        state = noise_aware.init_from_topics(source, documents, topics, alpha, beta, party.seed)
    else:
        empty = np.zeros_like(others)  # `run` counts for itself
        z, taken_for = reports.take(before.z), reports.take(before.taken_for)
        state = noise_aware.AwareState(z, taken_for, empty, empty.sum(axis=0, dtype=np.int64), alpha, beta)
    for s in range(ask.training.sweeps):
        key = int(derive(party.seed ^ 1, s))
        state, _ = noise_aware.run(source, documents, state, 1, key, phi="mean", others=others, threads=threads)
        z, taken_for = reports.put_back(state.z), reports.put_back(state.word)
        yield Sweep(z, taken_for, state.cwk, Derived(COUNTS, parents=tokens.parents))

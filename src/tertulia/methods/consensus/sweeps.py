"""A party's sweeps in a round of Consensus, beside the counts of all others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tertulia._arrays import I32
from tertulia.corpus import Corpus
from tertulia.federation.types import Party
from tertulia.kernels import noise_aware
from tertulia.kernels.core.checks import check_alpha
from tertulia.kernels.core.rng import derive
from tertulia.kernels.lda import blocked
from tertulia.kernels.lda.starts import from_topics
from tertulia.methods.common.earlier_model import smooth
from tertulia.methods.common.local_lda import report_tokens
from tertulia.methods.consensus.messages import Assigned, Shared
from tertulia.privacy.mechanisms import Clear, Derived, Mechanism
from tertulia.privacy.mechanisms.things import thing

COUNTS = thing("topic-word counts", "words by topic (counts)")


class Swept(NamedTuple):
    """The state after the sweeps of a round."""

    z: I32
    taken_for: I32  # [N] the word that each token counts for; [0] where it is the token's own
    own: I32  # [V, K] counts
    added: I32  # [V, K] after each sweep, added up; [V, 0] if not wanted
    mechanism: Mechanism  # by which counts leave


def sweep(party: Party, corpus: Corpus, before: Assigned | None, others: I32, ask: Shared) -> Swept:
    """Sweep over a party's documents, beginning with the topics of tokens `before`, if there are any."""
    return (sweep_reports if ask.training.mode == "sound" else sweep_words)(party, corpus, before, others, ask)


def sweep_words(party: Party, corpus: Corpus, before: Assigned | None, others: I32, ask: Shared) -> Swept:
    """Sweep over words as they are."""
    alpha, beta = check_alpha(ask.alpha, len(ask.counts)), ask.training.beta
    threads = party.setting("threads", 1)
    if before is None:
        topics, key = smooth(ask.counts, beta), derive(party.seed, 0)
        z = from_topics(corpus.words, corpus.documents, topics, alpha, key, threads)
    else:
        z = before.z
    where = (corpus.words, corpus.documents, z, others)
    z, own, added = blocked.run_beside(*where, alpha, beta, _keys(party, ask), ask.adds_up, threads)
    return Swept(z, corpus.words[:0], own, added, Clear(COUNTS))


def sweep_reports(party: Party, corpus: Corpus, before: Assigned | None, others: I32, ask: Shared) -> Swept:
    """Sweep over words that are known by their reports only."""
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
    added = np.zeros_like(others) if ask.adds_up else others[:, :0]
    for key in _keys(party, ask):
        state, _ = noise_aware.run(source, documents, state, 1, key, phi="mean", others=others, threads=threads)
        if ask.adds_up:
            added += state.cwk
    z, taken_for = reports.put_back(state.z), reports.put_back(state.word)
    return Swept(z, taken_for, state.cwk, added, Derived(COUNTS, parents=tokens.parents))


def _keys(party: Party, ask: Shared) -> list[int]:
    """Return the random key of each sweep."""
    return [int(derive(party.seed ^ 1, s)) for s in range(ask.training.sweeps)]

"""A party's contribution to the sums of Consensus: the one that they contain, and the difference that it sends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tertulia._arrays import I32, I64, Array
from tertulia.corpus import Corpus
from tertulia.federation.types import Party
from tertulia.kernels.core.checks import check_assignment, check_counts
from tertulia.kernels.core.jit import freeze
from tertulia.kernels.lda import priors
from tertulia.kernels.lda.counts import counts as count_tokens
from tertulia.kernels.lda.spread import widespread_topics
from tertulia.methods.common.contributions import counted_or_none
from tertulia.methods.common.seeds import Prior
from tertulia.methods.consensus.messages import Assigned, Counting, Counts, CountsAndHistograms, Shared
from tertulia.methods.consensus.start import EXPECTED
from tertulia.methods.consensus.sweeps import Swept
from tertulia.privacy.mechanisms import Mechanism
from tertulia.privacy.mechanisms.things import thing

HISTOGRAMS = thing(
    "document-topic histograms", "how many documents have how many words of a topic"
)  # for each topic, and for all topics together, the number of documents by their number of tokens


COUNTED = "counts"  # the name of tags


def checked(party: Party, ask: Shared) -> Shared:
    """Refuse counts that are not the members' total; return the question with counts of tokens.

    In a run that continues a model the server says what its topics are, in the first two questions.
    """
    if not (party.continues and ask.round < 2):
        party.check_sum(EXPECTED if ask.round <= 0 else COUNTED, ask.tag, ask.counts)
    if ask.round > 0 or ask.per_token == 1:
        return ask
    return replace(ask, counts=np.rint(ask.counts / ask.per_token).astype(np.int32), per_token=1)


def beside_prior(ask: Shared) -> Shared:
    """Return the question with the prior of seed words in its counts: to the party, tokens of somebody else."""
    prior = Prior.of(ask.training, ask.words)
    return ask if prior is None else replace(ask, counts=ask.counts + prior.counts(len(ask.counts)))


def held_of(party: Party, known: Counting | None, ask: Shared) -> Assigned | None:
    """Return the assignment by which this party is counted in the broadcast counts, None if it is not counted."""
    if not ask.singly:
        return counted_or_none(party, known)
    if known is None or ask.left_out or ask.round <= 0 or known.latest.round != ask.round:
        return None
    return known.latest


def others_of(ask: Shared, held: Assigned | None, corpus: Corpus, least: int) -> tuple[I32, I32 | None]:
    """Split the broadcast counts [V, K] into those of the others and the party's own, None if it is not counted.

    Of its own, the sum has only topics that are not those of few documents (`kernels.lda.spread`).
    """
    others = np.ascontiguousarray(ask.counts.T, dtype=np.int32)
    if held is None:
        return others, None
    own = counts_of(held, corpus, others.shape)
    own[:, ~widespread_topics(corpus.documents, held.z, len(ask.counts), least)] = 0
    others -= own
    if ask.singly:
        check_counts(others)
    return np.maximum(others, 0, out=others), own  # negative if another party subtracted too much: no error of ours


def counts_of(held: Assigned, corpus: Corpus, shape: tuple[int, ...]) -> I32:
    """Count a party's tokens by word and topic [V, K]."""
    words = held.taken_for if len(held.taken_for) else corpus.words
    check_assignment(held.z, corpus.n_tokens, shape[1], least=-1)
    check_assignment(words, corpus.n_tokens, shape[0], least=-1)
    counted = held.z >= 0
    return count_tokens(words[counted], held.z[counted], *shape)


def contribution(
    end: Swept, corpus: Corpus, ask: Shared, held: Assigned | None, own: I32 | None, least: int
) -> tuple[Array, ...]:
    """Return counts, counts added up over sweeps, and histograms: as differences to the sums, or whole (`singly`).

    Topics of few documents are left out of all three. (Under `robust` there are none: it has no secure sums.)
    """
    K, learns = len(ask.counts), ask.training.learn_alpha
    counts, added = end.own, end.added
    if not (shown := widespread_topics(corpus.documents, end.z, K, least)).all():
        counts, added = counts * shown, added * shown if ask.adds_up else added
    current = histograms(corpus.documents, end.z, K, least) if learns else ()
    if held is None or own is None or ask.singly:
        return counts, added, *current
    counted = histograms(corpus.documents, held.z, K, least) if learns else ()
    added = added - own * np.int32(ask.training.sweeps) if ask.adds_up else added
    return counts - own, added, *(new - old for new, old in zip(current, counted, strict=True))


def histograms(documents: I64, z: I32, K: int, least: int = 1) -> priors.Histograms:
    """Return the histograms from which alpha is learned, of topics that are not those of few documents.

    Tokens without a topic are not counted.
    """
    known = z >= 0
    ends = np.concatenate([[0], np.cumsum(known)])[documents]
    found = priors.histograms(freeze(ends, np.int64), z[known], K)
    shown = widespread_topics(documents, z, K, least)
    return found._replace(topics=found.topics * shown[:, None])


def release(party: Party, tables: tuple[Array, ...], mechanism: Mechanism) -> Counts:
    """Release a contribution; counts leave as [K, V]."""
    counts, added = (party.release(np.ascontiguousarray(x.T), mechanism) for x in tables[:2])
    tag, how = party.sum_tag(COUNTED, counts), replace(mechanism, what=HISTOGRAMS)
    seen = [party.release(x.astype(np.int32), how) for x in tables[2:]]
    return CountsAndHistograms(counts, added, tag, *seen) if seen else Counts(counts, added, tag)

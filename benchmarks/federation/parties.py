"""20 Newsgroups cut into six parties: by subject, or at random."""

from __future__ import annotations

from tertulia import Corpus
from tertulia.corpus.splits import Row, at_random


def natural(corpus: Corpus, seed: int = 0) -> dict[str, Corpus]:
    """Return the super-groups as parties, for any seed."""
    labels = corpus.table["label"].to_numpy()
    return {party: corpus.select(labels == party) for party in sorted(set(labels.tolist()))}


def iid(corpus: Corpus, seed: int = 0) -> dict[str, Corpus]:
    """Return six random parties of sizes 1 to 6."""
    assign = at_random({f"p{i}": i for i in range(1, 7)}, seed)
    parties = [assign(Row(id_, "")) for id_ in corpus.table["id"]]
    return {f"p{i}": corpus.select([n for n, p in enumerate(parties) if p == f"p{i}"]) for i in range(1, 7)}

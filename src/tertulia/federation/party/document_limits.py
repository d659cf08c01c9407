"""The documents that steps see: those within the policy's limits, and which of them are trained or scored on.

A budget for documents or users is converted from one for tokens by the limits, so they are enforced before any step
sees a document.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from tertulia.corpus import Corpus
from tertulia.corpus.offsets import drop_empty, narrow, offsets_of
from tertulia.corpus.splits import place_in_split
from tertulia.errors import PolicyRefusal
from tertulia.federation.party.reports import has_ids, users_of
from tertulia.privacy.adjacency import Bounds

NO_USERS = (
    "{} of {} documents do not say whose they are: name the column of users by `user`, beside `path`, and fill it; "
    "else leave the limit out"
)
WHOLE_TEXTS = "some documents are longer, and their texts or embeddings, which models may read, cannot be cut"


def limit_corpus(corpus: Corpus, bounds: Bounds) -> Corpus:
    """Cut a corpus to a policy's limits: keep each user's first documents, and each document's first tokens."""
    return _cut_documents(_cut_users(corpus, bounds.documents_per_user), bounds.tokens_per_document)


def _cut_users(corpus: Corpus, most: int | None) -> Corpus:
    if most is None or corpus.n_documents == 0:
        return corpus
    users = [user or "" for user in users_of(corpus)]
    if nameless := users.count(""):
        raise PolicyRefusal("max_documents_per_user", NO_USERS.format(nameless, corpus.n_documents))
    seen: dict[str, int] = {}
    keep = np.zeros(corpus.n_documents, np.bool_)
    for place, user in enumerate(users):
        keep[place] = seen.get(user, 0) < most
        seen[user] = seen.get(user, 0) + 1
    return corpus if keep.all() else corpus.select(keep)


def _cut_documents(corpus: Corpus, most: int | None) -> Corpus:
    lengths = corpus.lengths
    if most is None or lengths.max(initial=0) <= most:
        return corpus
    if {"text", "embedding"} & set(corpus.table.columns):
        raise PolicyRefusal("max_tokens_per_document", WHOLE_TEXTS)
    place = np.arange(corpus.n_tokens) - np.repeat(corpus.documents[:-1], lengths)
    before = offsets_of(place < most)  # [N+1] tokens that stay before each token
    return replace(
        corpus,
        words=np.asarray(corpus.words)[place < most],
        documents=before[corpus.documents],
        sentences=narrow(drop_empty(before[corpus.sentences])),
        paragraphs=narrow(drop_empty(before[corpus.paragraphs])),
    )


def parts_of(
    corpus: Corpus, heldout: float, validation: float = 0.0, *, hides_words: bool = False
) -> dict[str, Corpus]:
    """Split a corpus into training documents, a held-out share, and a validation share for choosing a model.

    A hash of the id decides. An id that is a hash of the text would show by a document's part what its words are, so
    where noise `hides_words` the public facts of documents without ids decide: their length, and their number among
    those of equal length.
    """
    names = _public_names(corpus) if hides_words and not has_ids(corpus) else corpus.table["id"].to_list()
    place = np.array([place_in_split(name) for name in names])
    out, scored = place < heldout + validation, place < heldout
    if out.all():  # too few documents: train on all that there are
        out, scored = np.zeros_like(out), np.zeros_like(out)
    return {
        part: corpus.select(chosen)
        for part, chosen in {"train": ~out, "heldout": scored, "validation": out & ~scored}.items()
    }


def _public_names(corpus: Corpus) -> list[str]:
    seen: Counter[int] = Counter()
    names = []
    for length in corpus.lengths.tolist():
        names.append(f"{length}/{seen[length]}")
        seen[length] += 1
    return names

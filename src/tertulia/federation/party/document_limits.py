"""The policy's limits on documents and users, enforced before any step sees a document.

A budget for documents or users is converted from one for tokens by these limits, so they must be enforced.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tertulia.corpus import Corpus
from tertulia.corpus.offsets import drop_empty, narrow, offsets_of
from tertulia.errors import PolicyRefusal
from tertulia.federation.party.reports import users_of
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

"""Units of privacy: single documents, or all documents of a user at a party."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from tertulia._arrays import I64
from tertulia.corpus import Corpus
from tertulia.errors import InputError
from tertulia.federation.types import Party

NO_USERS = "its documents name no user: read them with a column `user`, or set unit = 'document'"
PrivacyUnit = Annotated[
    Literal["document", "user"],
    Field(
        description="what is hidden: a `document`, or all documents of a `user` (patient) at a party, by the column "
        "`user`"
    ),
]


def units_of(party: Party, corpus: Corpus, unit: str) -> tuple[Corpus, I64]:
    """Return the documents, those of one unit together, and the units' offsets."""
    if unit == "document":
        return corpus, np.arange(corpus.n_documents + 1)
    names = corpus.table["user"].to_list() if "user" in corpus.table.columns else []
    known = np.array([bool(name and name.strip()) for name in names], np.bool_)
    if not known.any():
        raise InputError(f"party '{party.id}': {NO_USERS}")
    if missing := int((~known).sum()):
        party.notice(
            f"{missing} of {len(known)} documents name no user and are left out: nothing bounds how many one user has"
        )
    places = np.flatnonzero(known)
    users = np.unique(np.array([names[i] for i in places]), return_inverse=True)[1]
    order = np.argsort(users, kind="stable")
    starts = np.flatnonzero(np.diff(users[order], prepend=-1, append=-1))
    _warn_of_dominant(party, np.diff(starts))
    return corpus.select(places[order]), np.asarray(starts, np.int64)


def _warn_of_dominant(party: Party, sizes: I64) -> None:
    if len(sizes) > 1 and 2 * sizes.max() >= sizes.sum():
        party.notice(
            f"one user has {sizes.max()} of {sizes.sum()} documents: they count as one, so little is learned from them"
        )

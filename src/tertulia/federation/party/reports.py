"""Noisy reports of a party's tokens: how they are charged, and the keys from which they are regenerated.

Reports of tokens belong to documents (`privacy.reported_documents`). Each document has its own key: a function of the
party's key, the document's contents and a number that distinguishes equal documents. Other noise, such as that on the
counts of a whole corpus, belongs to the corpus and to the question.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus import Corpus
from tertulia.federation.types import Randomness
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Randomiser, Unit
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.reported_documents import NO_IDS, NOBODY, Fingerprints, Numbered
from tertulia.privacy.withdrawals import mac_of_id, mac_of_user

if TYPE_CHECKING:
    from tertulia.federation.party.host import PartyHost

REPORTS = "reports"  # the ledger's verb for reports, which are charged but do not leave themselves
_NOTHING = np.zeros(0, np.int32)  # a charge for reports does not record their number
_NAMELESS = "/documents without ids"
_HASHED = re.compile("[0-9a-f]{16}")  # a hash, in place of a missing id


class CorpusReports(NamedTuple):
    """The cached reports of a corpus, since every round asks for the same."""

    documents: Fingerprints
    named: bool  # whether the documents have ids
    made: dict[str, Randomness]  # by family of reports


def randomise(host: PartyHost, ledger: Ledger, corpus: Corpus, mechanism: Randomiser) -> Randomness:
    """Charge for noisy reports, unless they were charged before; return the keys."""
    known = host.fingerprints.get(corpus)
    if known is None:
        known = host.fingerprints[corpus] = CorpusReports(fingerprints_of(corpus, host.noise_key), has_ids(corpus), {})
    family = family_of(host.config.id, corpus, mechanism)
    if not mechanism.by_document:
        contents = contents_name(known.documents, host.noise_key)
        release = _of_users(_release(host, mechanism, f"{family}/{contents}"), known.documents)
        ledger.record(release, host.policy)
        return Randomness((release.id,), host.noise_key.document_key(release.id.encode()), np.zeros((0, 8), np.uint32))
    family += "" if known.named else _NAMELESS
    if family not in known.made:
        own = mechanism.assumptions + (() if known.named else (NO_IDS,))
        release = replace(_release(host, mechanism, family), assumptions=own).with_users()
        numbered = ledger.record_reports(release, known.documents, host.policy)
        charges = tuple(release.version(number).id for number in range(1, numbered.versions + 1))
        keys = _keys(host.noise_key, family, known.documents, numbered)
        known.made[family] = Randomness(charges, b"", keys)
    return known.made[family]


def family_of(party: str, corpus: Corpus, mechanism: Randomiser) -> str:
    """Return the name of the family of a party's reports over these words, under this mechanism."""
    params = json.dumps(mechanism.params(), sort_keys=True)
    return f"{REPORTS}/{party}/{corpus.vocabulary.fingerprint}/{mechanism.name}/{params}"


class Forecast(NamedTuple):
    """The number of documents, of those not reported so far, and of versions of one document."""

    documents: int
    new: int
    versions: int  # of the document that was edited most often


def forecast(party: str, ledger: Ledger, key: NoiseKey, corpus: Corpus, mechanism: Randomiser) -> Forecast:
    """Forecast what reports of these documents would add to a ledger; nothing is charged."""
    charge = family_of(party, corpus, mechanism) + ("" if has_ids(corpus) else _NAMELESS)
    numbered, new = ledger.reported(charge).number(fingerprints_of(corpus, key))
    return Forecast(corpus.n_documents, len(new), numbered.versions)


def _release(host: PartyHost, mechanism: Randomiser, id_: str) -> Release:
    return Release.of(
        mechanism, id=id_, party=host.config.id, round=0, step=REPORTS, verb=REPORTS, message_hash="", x=_NOTHING,
        user_at=host.user_at,
    )  # fmt: skip


def _of_users(release: Release, documents: Fingerprints) -> Release:
    """Add to a charge per user the largest number of documents of one user."""
    if release.unit is not Unit.USER:
        return release
    users = Counter(user for *_, user in documents.each())
    unnamed = users.pop(NOBODY, 0) > 0
    return replace(release, documents_of_user=max(users.values(), default=1), unnamed_users=unnamed)


def fingerprints_of(corpus: Corpus, key: NoiseKey) -> Fingerprints:
    """Return MACs of documents' ids, words and users."""
    words, ends = np.ascontiguousarray(corpus.words, np.int32), pairwise(corpus.documents.tolist())
    contents = [key.mac(b"words", words[a:b].tobytes()) for a, b in ends]
    ids, users = names_of(corpus, key)
    return Fingerprints(ids, contents, users)


def contents_name(documents: Fingerprints, key: NoiseKey) -> str:
    """Return a name for the contents of documents, by which noise on all of them is keyed."""
    return key.mac(*(part for document in documents.each() for part in document)).hex()


def names_of(corpus: Corpus, key: NoiseKey) -> tuple[list[bytes], list[bytes]]:
    """Return MACs of documents' ids and users."""
    ids = [mac_of_id(key, str(name)) for name in corpus.table["id"]]
    return ids, [NOBODY if user is None else mac_of_user(key, user) for user in users_of(corpus)]


def users_of(corpus: Corpus) -> list[str | None]:
    """Return the user of each document; None where it is missing."""
    if "user" not in corpus.table.columns:
        return [None] * corpus.n_documents
    users = corpus.table["user"].to_list()
    return [user if user and user.strip() else None for user in users]


def has_ids(corpus: Corpus) -> bool:
    """Tell whether documents have ids of their own; without, a hash of the text stands for the id."""
    return not all(_HASHED.fullmatch(str(name)) for name in corpus.table["id"])


def _keys(key: NoiseKey, family: str, documents: Fingerprints, numbered: Numbered) -> Array:
    """Derive a key for each document's reports, [D, 8]."""
    name = family.encode()
    made = b"".join(
        key.document_key(name, content, number.to_bytes(4, "little"))
        for content, number in zip(documents.contents, numbered.numbers, strict=True)
    )
    return np.frombuffer(made, dtype="<u4").astype(np.uint32).reshape(-1, 8)

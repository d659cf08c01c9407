"""How a party charges for noisy reports of its tokens, and derives the keys that they are regenerated from.

Reports of tokens belong to documents (`privacy.reported`): a document has a key of its own, a function of the party's
key, of what the document contains and of a number that tells equal documents apart. Other noise, such as that on the
counts of a whole corpus, belongs to the corpus and to the question.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus import Corpus
from tertulia.federation.types import Randomness
from tertulia.privacy.ledger import Ledger, Release
from tertulia.privacy.mechanisms import Randomiser
from tertulia.privacy.noise import NoiseKey
from tertulia.privacy.reported import NO_IDS, Fingerprints, Numbered

if TYPE_CHECKING:
    from tertulia.federation.party.host import PartyHost

REPORTS = "reports"  # the verb under which a ledger has what is charged, but does not itself leave
_NOTHING = np.zeros(0, np.int32)  # a charge for reports says nothing of how many there are
_NAMELESS = "/documents without ids"
_HASHED = re.compile("[0-9a-f]{16}")  # the id of a document that has none


class Known(NamedTuple):
    """What is remembered of a corpus, as every round asks for the same."""

    documents: Fingerprints
    named: bool  # have the documents ids?
    made: dict[str, Randomness]  # by the id of the charge


def randomise(host: PartyHost, ledger: Ledger, corpus: Corpus, mechanism: Randomiser) -> Randomness:
    """Charge for noisy reports, unless that was done before, and give the keys."""
    known = host.fingerprints.get(corpus)
    if known is None:
        known = host.fingerprints[corpus] = Known(fingerprints_of(corpus, host.noise_key), has_ids(corpus), {})
    family = family_of(host.config.id, corpus, mechanism)
    if not mechanism.by_document:
        contents = host.noise_key.mac(*known.documents.contents).hex()
        release = _release(host, mechanism, f"{family}/{contents}")
        ledger.record(release, host.policy)
        return Randomness((release.id,), host.noise_key.document_key(release.id.encode()), np.zeros((0, 8), np.uint32))
    family += "" if known.named else _NAMELESS
    if family not in known.made:
        own = mechanism.assumptions + (() if known.named else (NO_IDS,))
        release = replace(_release(host, mechanism, family), assumptions=own)
        numbered = ledger.record_reports(release, known.documents, host.policy)
        charges = tuple(release.version(number).id for number in range(1, numbered.versions + 1))
        keys = _keys(host.noise_key, family, known.documents, numbered)
        known.made[family] = Randomness(charges, b"", keys)
    return known.made[family]


def family_of(party: str, corpus: Corpus, mechanism: Randomiser) -> str:
    """What all reports have in common that a party makes of documents over these words, under this mechanism."""
    params = json.dumps(mechanism.params(), sort_keys=True)
    return f"{REPORTS}/{party}/{corpus.vocabulary.fingerprint}/{mechanism.name}/{params}"


class Foreseen(NamedTuple):
    """How many of a corpus's documents were not reported so far, and how many versions of one there would be."""

    documents: int
    new: int
    versions: int  # of the most often edited one


def foresee(party: str, ledger: Ledger, key: NoiseKey, corpus: Corpus, mechanism: Randomiser) -> Foreseen:
    """What reports of these documents would add to a ledger; nothing is charged."""
    charge = family_of(party, corpus, mechanism) + ("" if has_ids(corpus) else _NAMELESS)
    numbered, new = ledger.reported(charge).number(fingerprints_of(corpus, key))
    return Foreseen(corpus.n_documents, len(new), numbered.versions)


def _release(host: PartyHost, mechanism: Randomiser, id_: str) -> Release:
    return Release.of(
        mechanism, id=id_, party=host.config.id, round=0, step=REPORTS, verb=REPORTS, message_hash="", x=_NOTHING
    )


def fingerprints_of(corpus: Corpus, key: NoiseKey) -> Fingerprints:
    """MACs of documents' ids, and of the words that they hold."""
    words, ends = np.ascontiguousarray(corpus.words, np.int32), pairwise(corpus.documents.tolist())
    contents = [key.mac(b"words", words[a:b].tobytes()) for a, b in ends]
    return Fingerprints([key.mac(b"id", str(name).encode()) for name in corpus.table["id"]], contents)


def has_ids(corpus: Corpus) -> bool:
    """Whether documents have ids of their own: those that have none are known by a hash of their text."""
    return not all(_HASHED.fullmatch(str(name)) for name in corpus.table["id"])


def _keys(key: NoiseKey, family: str, documents: Fingerprints, numbered: Numbered) -> Array:
    """A key for each document's reports, [D, 8]."""
    name = family.encode()
    made = b"".join(
        key.document_key(name, content, number.to_bytes(4, "little"))
        for content, number in zip(documents.contents, numbered.numbers, strict=True)
    )
    return np.frombuffer(made, dtype="<u4").astype(np.uint32).reshape(-1, 8)

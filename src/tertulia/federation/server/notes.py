"""Notes among members, which the server passes on and cannot read.

All members first commit to their notes, so that none can copy another's. Then they seal them with the members' key, and
sign that they have received the same notes. A member uses the notes only when it has seen all signatures.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tertulia.errors import QuorumError
from tertulia.federation.secure.messages import (
    Committed,
    ListSignature,
    NoteCommitment,
    SealedNote,
    SealedNotes,
    SignedNotes,
)
from tertulia.federation.server.secure_sums import SecureSums
from tertulia.federation.types import Nothing, PartyId, Place


def relay_notes(sums: SecureSums, commitments: Mapping[PartyId, NoteCommitment], place: Place, question: str) -> None:
    """Pass on all members' notes, once all have committed to theirs."""
    if missing := [party for party in sums.members if party not in commitments]:
        raise QuorumError(f"members exchange notes, and {', '.join(missing)} did not answer: wait for them and resume")
    committed = Committed(place, question, np.stack([commitments[party].commitment for party in sums.members]))
    sealed = sums.of_all(dict.fromkeys(sums.members, committed), SealedNote)
    notes = SealedNotes(place, question, tuple(one.sealed for one in sealed.values()))
    signed = sums.of_all(dict.fromkeys(sums.members, notes), ListSignature)
    signatures = SignedNotes(place, question, tuple(one.signature for one in signed.values()))
    sums.of_all(dict.fromkeys(sums.members, signatures), Nothing)

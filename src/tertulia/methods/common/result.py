"""What a method hands back when it is done."""

from __future__ import annotations

from dataclasses import dataclass

from tertulia.federation.types import PartyId
from tertulia.models import Topics


@dataclass(frozen=True)
class Trained:
    """The shared model, and each party's own."""

    topics: Topics
    local: dict[PartyId, Topics]

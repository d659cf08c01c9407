"""What a party's directory of a run says, whoever lays it out: who has all parties, or the party itself."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from tertulia.federation.party.host import PartyConfig
from tertulia.federation.plan import Plan
from tertulia.runs.config import PartySettings, RunSettings
from tertulia.runs.plans import modules_of


def party_config(run: str, party: str, settings: RunSettings, source: dict[str, Any] | None, plan: Plan) -> PartyConfig:
    """The `party.json` of one party, with its own choices and the plan that it agrees to."""
    own = settings.parties.get(party, PartySettings())
    home = None if own.home is None else str(Path(own.home).resolve())  # the same wherever the run is resumed
    return PartyConfig(
        id=party, run=run, seed=settings.seed, methods=modules_of(settings), heldout=settings.heldout,
        validation=settings.validation, settings=own.choices(), source=source, home=home,
        owners=settings.federation.owners, plan=asdict(plan),
    )  # fmt: skip

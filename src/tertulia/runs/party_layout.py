"""A party's directory of a run. It is laid out by the owner of all parties, or by the party itself."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tertulia._disk import read_checked
from tertulia.corpus import TextOptions
from tertulia.errors import ConfigError
from tertulia.federation.codec import decode
from tertulia.federation.party.host import PartyConfig
from tertulia.federation.plan import Plan
from tertulia.methods.common import model_choice
from tertulia.models import Topics
from tertulia.runs.plan import modules_of
from tertulia.runs.settings import PartySettings, RunSettings


def party_config(run: str, party: str, settings: RunSettings, source: dict[str, Any] | None, plan: Plan) -> PartyConfig:
    """Make the `party.json` of one party, with its own choices and the plan that it agrees to."""
    own = settings.parties.get(party, PartySettings())
    home = None if own.home is None else str(Path(own.home).resolve())  # the same wherever the run is resumed
    return PartyConfig(
        id=party, run=run, seed=settings.seed, methods=modules_of(settings), heldout=settings.heldout,
        validation=settings.validation, settings=own.choices(), source=source, home=home,
        owners=settings.federation.owners, plan=asdict(plan), hides_words=settings.hides_words,
    )  # fmt: skip


def choice_in(directory: Path, provenance: dict[str, Any], options: TextOptions) -> model_choice.Choice | None:
    """Read the model that a party has chosen for its own documents, if it had some to choose by."""
    path = directory / "kept" / f"{model_choice.KEPT}.safetensors"
    if not path.exists():
        return None
    found = model_choice.read_choice(decode(read_checked(path)), provenance)
    return model_choice.Choice(*(replace(topics, options=options) for topics in found))


def best_at_home(directory: Path) -> Topics:
    """Read the model that a party has chosen in its own directory; without a choice, the shared one."""
    config = PartyConfig.load(directory)
    if config.plan is None or config.source is None:
        raise ConfigError(f"{directory} holds no model: the run was forgotten here")
    provenance = {"method": config.plan["method"], "run": config.run, "party": config.id}
    choice = choice_in(directory, provenance, TextOptions.from_dict(config.source["options"]))
    if choice is not None:
        return choice.best
    if (directory / "model").exists():
        return Topics.load(directory / "model")
    place = directory.resolve()
    raise ConfigError(
        f"{directory} holds no model yet: `tertulia fetch {place.parents[1]} {place.name}` fetches the shared one, "
        "once the run is finished"
    )

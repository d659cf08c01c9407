"""The methods, by name: their settings, and the module that is imported when one runs."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from tertulia.methods.baselines.settings import AloneSettings
from tertulia.methods.common.settings import Settings
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.fedlda.settings import FedLDASettings
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.methods.pctd.settings import PCTDSettings

MODULES = {
    "ftm": "tertulia.methods.ftm.method",
    "consensus": "tertulia.methods.consensus.method",
    "pctd": "tertulia.methods.pctd.method",
    "fedlda": "tertulia.methods.fedlda.method",
    "gfedntm": "tertulia.methods.gfedntm.method",
    "alone": "tertulia.methods.baselines.method",
    "centralised": "tertulia.methods.baselines.method",
}


class CustomSettings(Settings):
    """A method of the user's own: a module with a function `train(fed, config, state)` and its steps."""

    name: Literal["custom"] = "custom"
    module: str
    train: str = "train"
    config: dict[str, Any] = {}


MethodSettings = (
    FTMSettings | ConsensusSettings | FedLDASettings | PCTDSettings | GFedNTMSettings | AloneSettings | CustomSettings
)
METHOD_SETTINGS: tuple[type[Settings], ...] = get_args(MethodSettings)
Method = Annotated[MethodSettings, Field(discriminator="name")]

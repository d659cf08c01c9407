"""The methods, by name: their settings, and the module that is imported when one runs. A new method is a line here."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union

from pydantic import Field

from tertulia.errors import TertuliaError
from tertulia.methods.baselines.settings import AloneSettings
from tertulia.methods.common.settings import MethodSettings
from tertulia.methods.consensus.settings import ConsensusSettings
from tertulia.methods.embedding_topics.settings import EmbeddingTopicsSettings
from tertulia.methods.fedlda.settings import FedLDASettings
from tertulia.methods.ftm.settings import FTMSettings
from tertulia.methods.gfedntm.settings import GFedNTMSettings
from tertulia.methods.pctd.settings import PCTDSettings
from tertulia.methods.private_topics.settings import PrivateTopicsSettings


class CustomSettings(MethodSettings):
    """A method of the user's own."""

    federates = False
    name: Literal["custom"] = Field("custom", description="the method")
    module: str = Field(description="a module with the steps and the function `train(fed, config, state)`")
    train: str = Field("train", description="the name of that function")
    config: dict[str, Any] = Field({}, description="what it gets as `config`")

    def why_not_secure(self, *, continues: bool) -> str | None:
        """Allow secure sums: a question that they would not hide is refused when it is asked."""
        return None

    @property
    def noise(self) -> None:
        """Nothing is known of a user's own method."""


class Registered(NamedTuple):
    """A method: its settings, and the module of its `train`, `plan` and steps."""

    settings: type[MethodSettings]
    module: str


METHODS = {
    "consensus": Registered(ConsensusSettings, "tertulia.methods.consensus.method"),
    "ftm": Registered(FTMSettings, "tertulia.methods.ftm.method"),
    "fedlda": Registered(FedLDASettings, "tertulia.methods.fedlda.method"),
    "pctd": Registered(PCTDSettings, "tertulia.methods.pctd.method"),
    "private_topics": Registered(PrivateTopicsSettings, "tertulia.methods.private_topics.method"),
    "embedding_topics": Registered(EmbeddingTopicsSettings, "tertulia.methods.embedding_topics.method"),
    "gfedntm": Registered(GFedNTMSettings, "tertulia.methods.gfedntm.method"),
    "alone": Registered(AloneSettings, "tertulia.methods.baselines.method"),
    "centralised": Registered(AloneSettings, "tertulia.methods.baselines.method"),
}
SETTINGS: tuple[type[MethodSettings], ...] = (
    *dict.fromkeys(method.settings for method in METHODS.values()),
    CustomSettings,
)

if TYPE_CHECKING:
    Method = MethodSettings
else:  # the settings of any method, distinguished by their name
    Method = Annotated[Union[SETTINGS], Field(discriminator="name")]  # noqa: UP007


class Entry(NamedTuple):
    """The entry point of a method: `module.function(fed, config, state)`."""

    module: str
    function: str
    config: Any


def entry_of(method: MethodSettings) -> Entry:
    """Return the module and function that settings ask for, and that function's `config`."""
    if isinstance(method, CustomSettings):
        return Entry(method.module, method.train, method.config)
    return Entry(METHODS[method.name].module, "train", method)


def load_declarations(name: str) -> None:
    """Import a method's module where that is possible, so that pages know the things that it declares."""
    if name in METHODS:
        with suppress(ImportError, TertuliaError):  # an extra that is not installed here
            importlib.import_module(METHODS[name].module)

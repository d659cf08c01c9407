"""The reference page, made from the settings themselves: `python -m tertulia.cli.reference > docs/reference.md`."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Iterator

from pydantic import BaseModel

from tertulia.api.lda import LDATrainer
from tertulia.api.neural import NeuralTrainer
from tertulia.corpus import TextOptions
from tertulia.methods import METHODS, SETTINGS
from tertulia.methods.common.describe import Described, describe
from tertulia.methods.common.settings import VocabularySettings
from tertulia.runs.config import FederationSettings, PartySettings, RunSettings
from tertulia.runs.documents import DataSettings, SourceSettings
from tertulia.runs.federations import FederationFile, NetworkTerms
from tertulia.runs.membership import PartyFile

HEAD = """# Reference: every setting

Made by `python -m tertulia.cli.reference` from the settings themselves; [configuration](configuration.md) explains how
a file of them is written. In Python the same keys are arguments: `tt.FTM(topics=50, vocabulary={"max_words": 5000})`.
`None` means that the key is left out. Unknown keys are errors.
"""

HOUSES = "The server's, of a [network of houses](network.md). With `[method]` and `[text]` as above."
PARTY = "A party's own. `[choices]` has what a method lets each party choose, as `[parties.NAME]` above."


def reference() -> str:
    """The page, in Markdown."""
    return "\n".join([HEAD, *_lines()])


def _lines() -> Iterator[str]:
    yield from _section("The run", "At the top of the file.", _plain(RunSettings))
    for kind in SETTINGS:
        names = [name for name, method in METHODS.items() if method.settings is kind] or ["custom"]
        rows = [row for row in describe(kind) if row.key != "name" and not row.key.startswith("vocabulary.")]
        rows += _changed_vocabulary(kind)
        title = "`[method]` with " + " or ".join(f'`name = "{name}"`' for name in names)
        yield from _section(title, _first_sentence(kind), rows)
    yield from _section("`[method.vocabulary]`", "Of every method but `custom`.", describe(VocabularySettings))
    yield from _section("`[text]`", "The same for all parties.", _options())
    yield from _section("`[parties.NAME]`", "What a party does not choose is the method's.", describe(PartySettings))
    yield from _section("`[data]`", _first_sentence(DataSettings), describe(DataSettings))
    yield from _section("`[federation]`", _first_sentence(FederationSettings), describe(FederationSettings))
    yield from _section("`federation.toml`", HOUSES, [*_plain(FederationFile), *describe(NetworkTerms, "terms.")])
    yield from _section("`party.toml`", PARTY, [*_plain(PartyFile), *describe(SourceSettings, "documents.")])
    alone = "On one machine: the arguments of `tt.{}`"
    yield from _section(alone.format("LDA"), "And `vocabulary`, as above.", _plain(LDATrainer))
    models = "ProdLDA`, `tt.CombinedTM` and `tt.ZeroShotTM"
    rows = [row for row in describe(NeuralTrainer) if not row.key.startswith("vocabulary.")]
    yield from _section(
        alone.format(models), "And `vocabulary`, as above.", [*rows, *_changed_vocabulary(NeuralTrainer)]
    )


def _section(title: str, text: str, rows: Iterable[Described]) -> Iterator[str]:
    yield from (f"## {title}", "", text, "", "| key | type | default | meaning |", "|---|---|---|---|")
    for key, kind, default, meaning in rows:
        yield f"| `{key}` | {kind} | {_default(default)} | {meaning} |"
    yield ""


def _default(default: str) -> str:
    """As TOML writes it."""
    if default in ("True", "False"):
        return f"`{default.lower()}`"
    return default if default in ("required", "None") else f"`{default}`"


def _first_sentence(kind: type[BaseModel]) -> str:
    return inspect.cleandoc(kind.__doc__ or "").split("\n")[0]


def _plain(kind: type[BaseModel]) -> list[Described]:
    """The keys that stand in no section."""
    sections = {"method", "text", "parties", "data"}  # with pages of their own
    return [row for row in describe(kind) if "." not in row.key and row.key not in sections]


def _changed_vocabulary(kind: type[BaseModel]) -> list[Described]:
    """Keys of the vocabulary that have another default here."""
    usual = set(describe(VocabularySettings, "vocabulary."))
    return [row for row in describe(kind) if row.key.startswith("vocabulary.") and row not in usual]


def _options() -> Iterator[Described]:
    """The options of text, which are no pydantic model."""
    for field in (option for option in dataclasses.fields(TextOptions) if option.metadata):
        default = f'"{field.default}"' if isinstance(field.default, str) else repr(field.default)
        yield Described(
            field.name,
            str(field.type).replace("tuple[str, ...]", "list of str").replace(" | Tokenizer", "").replace("|", "or"),
            default,
            field.metadata["description"],
        )


if __name__ == "__main__":
    print(reference(), end="")

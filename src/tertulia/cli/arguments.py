"""Generate typed dicts for the arguments of estimators, from their settings, for editors and type checkers.

`python -m tertulia.cli.arguments > src/tertulia/api/arguments.py`
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from tertulia.api.embedding import EmbeddingTrainer
from tertulia.api.lda import LDATrainer
from tertulia.api.neural import NeuralTrainer
from tertulia.methods.common.descriptions import section_of

HEAD = '''"""Arguments of estimators, generated from their settings by `python -m tertulia.cli.arguments`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np

from tertulia.corpus import TextOptions
'''
OWN = {
    "random_state": "int | np.random.Generator | np.random.RandomState | None",
    "n_jobs": "int | None",
    "text": "TextOptions | None",
}
CLASSES = (
    ("LDAArguments", "Of `tt.LDA`.", LDATrainer),
    ("EmbeddingArguments", "Of `tt.EmbeddingTopics`.", EmbeddingTrainer),
    ("NeuralArguments", "Of `tt.ProdLDA`, `tt.CombinedTM` and `tt.ZeroShotTM`.", NeuralTrainer),
)


def arguments() -> str:
    """Return the source of the module."""
    return "\n".join([HEAD, *(line for parts in CLASSES for line in _class(*parts))]).rstrip("\n") + "\n"


def _class(name: str, meaning: str, trainer: type[BaseModel]) -> Iterator[str]:
    yield from ("", f"class {name}(TypedDict, total=False):", f'    """{meaning}"""', "")
    for field, kind in OWN.items():
        yield f"    {field}: {kind}"
    for field, info in trainer.model_fields.items():
        yield f"    {field}: {'Mapping[str, Any] | None' if section_of(info) else source_of(info.annotation)}"
    yield ""


def source_of(kind: Any) -> str:
    """Return a type as source code, without its bounds.

    >>> source_of(Annotated[int, "at least 1"] | None)
    'int | None'
    >>> source_of(tuple[Literal["a", "b"], ...])
    'tuple[Literal["a", "b"], ...]'
    """
    if kind is type(None) or kind is ...:
        return "None" if kind is not ... else "..."
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return source_of(parts[0])
    if origin in (Union, types.UnionType):
        return " | ".join(map(source_of, parts))
    if origin is Literal:
        choices = ", ".join(f'"{choice}"' for choice in parts)
        return f"Literal[{choices}]"
    if origin is dict:
        return (
            "Mapping[str, Sequence[str]] | None" if get_origin(_bare(parts[1])) is tuple else "Mapping[str, Any] | None"
        )
    if origin is tuple:
        return f"tuple[{', '.join(map(source_of, parts))}]"
    return str(kind.__name__)


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


if __name__ == "__main__":
    print(arguments(), end="")

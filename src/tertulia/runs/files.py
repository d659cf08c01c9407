"""Files of settings: how TOML is read and checked, and how the paths inside become relative to the file's own place."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tertulia.errors import ConfigError
from tertulia.methods.common.describe import section_of
from tertulia.methods.common.settings import Explained, has_mark
from tertulia.runs.former import is_former

_S = TypeVar("_S", bound=Explained)


def read_settings(path: Path, kind: type[_S], anchor_all: Callable[[dict[str, Any], Path], None]) -> _S:
    """Read a TOML file of one kind of settings; errors name the file, the key and the remedy."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no config file {path}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    former = is_former(raw)
    try:
        anchor_all(raw, path.parent)
        return kind(**raw)
    except (ConfigError, RecursionError, TypeError) as error:
        remedy = f". `tertulia upgrade {path}` carries over what an earlier version had" if former else ""
        raise ConfigError(f"{path}: {error}{remedy}") from None


def _name_or_none(field: FieldInfo) -> Any:
    """What may stand in place of a path, but is none: the word list that comes with the package."""
    extra = field.json_schema_extra
    return (extra.get("path") or None) if isinstance(extra, dict) else None


def anchor(section: Any, kind: type[BaseModel], base: Path) -> None:
    """The paths of one section and of those within it; what is no table is left for the check that follows."""
    for name, field in kind.model_fields.items() if isinstance(section, dict) else ():
        value, inner = section.get(name), section_of(field)
        if inner is not None:
            anchor(value, inner, base)
        elif name == "home" and isinstance(value, str):  # a budget must not depend on the working directory
            section[name] = str((base / value).resolve())
        elif has_mark(field, "path") and isinstance(value, str) and value != _name_or_none(field):
            section[name] = os.path.normpath(base / value)
        elif has_mark(field, "paths") and isinstance(value, list):
            section[name] = [os.path.normpath(base / one) if isinstance(one, str) else one for one in value]

"""What a model says about where it comes from: how it was trained, never where parties keep what is theirs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from tertulia.methods.common.settings import has_mark
from tertulia.runs.config import RunSettings

_PRIVATE = ("directory", "address", "parties", "data")  # places, homes, policies, and what parties chose for themselves


def public_settings(settings: RunSettings) -> dict[str, Any]:
    """The settings of a run as plain data, without paths and without the parties' own."""
    return without_paths(settings, leave_out=_PRIVATE)


def without_paths(settings: BaseModel, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """Settings as plain data, but for what names a file."""
    plain, found = settings.model_dump(mode="json"), {}
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        is_path = (has_mark(field, "path") and not isinstance(value, tuple | list)) or has_mark(field, "paths")
        if name not in leave_out and not is_path:
            found[name] = without_paths(value) if isinstance(value, BaseModel) else plain[name]
    return found

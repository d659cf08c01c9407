"""A method's settings for a run on planted documents."""

from __future__ import annotations

from typing import Any, TypeVar

from tertulia.methods.common.settings import MethodSettings, VocabularySettings

_M = TypeVar("_M", bound=MethodSettings)


def audited(method: _M, words: tuple[str, ...] | None) -> _M:
    """Return the same method over a public word list (None: as it is), without scores or choices that follow the data.

    Neither the noise nor the number of its releases changes.
    """
    changes: dict[str, Any] = dict(method.audited)
    if words is not None:
        public = {"mode": "public", "words": words, "max_words": None, "epsilon": None}
        lists = {name: value for name, value in method if isinstance(value, VocabularySettings)}
        changes |= {name: value.replace(**public) for name, value in lists.items()}
    if "evaluate" in type(method).model_fields:
        changes["evaluate"] = False
    return method.replace(**changes)

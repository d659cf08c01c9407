"""What the explorer saves: names, hidden topics and topics to merge, with the model that they belong to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tertulia._plain import plain
from tertulia.errors import InputError

if TYPE_CHECKING:
    from tertulia.models.topics import Topics

FORMAT = "tertulia names"
_LARGEST = 10_000_000  # bytes of a file


class Edits(NamedTuple):
    """What people did to topics, by the numbers of the model that they looked at."""

    names: dict[int, str]
    hidden: list[int]
    merged: list[list[int]]


def digest_of(model: Topics) -> str:
    """A short name of a model's topics, whatever they are called and whether they are hidden."""
    words = model.vocabulary.fingerprint.encode()
    return hashlib.blake2b(words + model.topic_word.tobytes(), digest_size=8).hexdigest()


def read_edits(source: str | Path | Mapping[str, Any], model: Topics) -> Edits:
    """Read edits from a file, or from what it holds; they must be of this model."""
    given, where = (source, "edits") if isinstance(source, Mapping) else (_read(Path(source)), str(source))
    if not isinstance(given, Mapping) or given.get("format") != FORMAT:
        raise InputError(f"{where} holds no names of topics: give what the explorer's button 'Save names' wrote")
    if given.get("model") != digest_of(model):
        raise InputError(
            f"{where} is of another model than this one: explore this one, or load the model that was explored"
        )
    try:
        names = {int(k): _text(name) for k, name in dict(given.get("names", {})).items()}
        hidden = [_number(k) for k in given.get("hidden", [])]
        merged = [[_number(k) for k in group] for group in given.get("merged", [])]
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} is damaged ({plain(str(error), 100)}): save it again in the explorer") from error
    for k in names:
        if not 0 <= k < model.n_topics:
            raise InputError(f"{where} names topic {k}: topics are numbered 0 to {model.n_topics - 1}")
    return Edits(names, hidden, merged)


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path} is too large for names of topics")
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: give what the explorer's button 'Save names' wrote") from error


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a name is {type(name).__name__}")
    return name


def _number(k: Any) -> int:
    if type(k) is not int:
        raise TypeError(f"a topic is {type(k).__name__}")
    return k

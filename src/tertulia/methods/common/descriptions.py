"""Settings in words: what `help()` and the reference page say of them, made from their fields."""

from __future__ import annotations

import textwrap
import types
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

_BOUNDS = (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))


class Described(NamedTuple):
    """One setting, as a user reads of it."""

    key: str  # with the sections that it stands in: `vocabulary.mode`
    kind: str
    default: str
    meaning: str


def describe(kind: type[BaseModel], before: str = "") -> Iterator[Described]:
    """Describe every setting of a class; those in sections of their own come last.

    >>> from pydantic import Field
    >>> class Pace(BaseModel):
    ...     rate: float | None = Field(None, gt=0, description="steps per second")
    >>> list(describe(Pace))
    [Described(key='rate', kind='float > 0 or None', default='None', meaning='steps per second')]
    """
    sections = {name: section for name, field in kind.model_fields.items() if (section := section_of(field))}
    for name, field in kind.model_fields.items():
        if name not in sections:
            yield Described(before + name, kind_of(field), default_of(field), field.description or "")
    for name, section in sections.items():
        yield from describe(section, f"{before}{name}.")


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the class of a field that is itself a section, else None."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def kind_of(field: FieldInfo) -> str:
    """Describe a field's type and bounds: `int >= 1`, say."""
    return _words(field.annotation, field.metadata)


def default_of(field: FieldInfo) -> str:
    """Write a field's default as TOML and Python both write it, as far as they agree."""
    if field.is_required():
        return "required"
    value = field.get_default()
    if isinstance(value, str):
        return f'"{value}"'
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def _words(kind: Any, bounds: list[Any]) -> str:
    """Describe a type in words."""
    if get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        return _words(kind, [*bounds, *(m for one in more for m in getattr(one, "metadata", [one]))])
    if get_origin(kind) in (Union, types.UnionType):
        parts = [_words(part, bounds if part is not type(None) else []) for part in get_args(kind)]
        return " or ".join(dict.fromkeys(" or ".join(parts).split(" or ")))  # None once
    if get_origin(kind) is Literal:
        return ", ".join(f'"{choice}"' for choice in get_args(kind))
    if get_origin(kind) in (tuple, list):
        return f"list of {_words(get_args(kind)[0], [])}"
    if get_origin(kind) is dict:
        return f"table of {_words(get_args(kind)[1], [])}"
    limits = [f"{sign} {getattr(bound, name):g}" for bound in bounds for name, sign in _BOUNDS if hasattr(bound, name)]
    name = {type(None): "None", Any: "any"}.get(kind, getattr(kind, "__name__", str(kind)))
    return f"{name} {' and '.join(limits)}" if limits else name


def document(kind: type[BaseModel], text: str) -> str:
    """Extend a docstring by a list of all settings."""
    lines = [text.rstrip(), "", "Settings:"]
    for key, what, default, meaning in describe(kind):
        if what != default:  # else there is nothing to choose
            given = default if default == "required" else f"default {default}"
            head = f"{key} ({what}; {given}): {meaning}"
            lines += textwrap.wrap(
                head, 100, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False
            )
    return "\n".join(lines) + "\n"


_OTHER_NAMES = {
    **dict.fromkeys(("n_topics", "n_components", "num_topics", "nr_topics", "k", "K"), ("topics",)),
    **dict.fromkeys(("max_iter", "iterations", "passes", "epochs"), ("sweeps", "epochs", "rounds")),
    **dict.fromkeys(("eta", "topic_word_prior"), ("beta",)),
    "doc_topic_prior": ("alpha",),
    "seed": ("random_state",),
    "random_state": ("seed",),
    "n_jobs": ("workers",),
    **dict.fromkeys(("tokenizer", "ngrams", "stop_words", "extra_stop_words", "lowercase", "language"), ("text",)),
}  # what other libraries call our settings
_FORMER_NAMES = {"vouched": "robust"}


def other_name(name: str, known: Collection[str]) -> str:
    """Return a hint for a key that another library, or an earlier version, has for one of ours; else an empty text.

    >>> other_name("n_components", {"topics", "sweeps"})
    "it is called 'topics' here"
    """
    meant = _FORMER_NAMES.get(name) or next((ours for ours in _OTHER_NAMES.get(name, ()) if ours in known), None)
    if meant == "text":
        return f"it belongs to `text`: [text] in TOML, `text=tt.TextOptions({name}=...)` in Python"
    return f"it is called '{meant}' here" if meant else ""


def explain(error: ValidationError, known: Collection[str] = ()) -> str:
    """Say which key is wrong, what it holds, and what it should; `known` are the keys of the whole."""
    lines: list[str] = []
    for problem in error.errors():
        path = tuple(part for part in problem["loc"] if not _is_kind(part))
        path = path[:1] + path[2:] if path[:1] == ("method",) else path  # its second part is the kind of method, no key
        key = ".".join(str(part) for part in path) or "settings"
        if problem["type"] == "misplaced":
            name, before = problem["ctx"]["key"], "".join(f"{part}." for part in path)
            section = f"{before}{problem['ctx']['section']}"
            lines.append(f"unknown key '{before}{name}': it belongs to '{section}', so write '{section}.{name}'")
        elif problem["type"] == "extra_forbidden":
            hint = other_name(str(path[-1]), {*known, "topics", "text"})  # which every run has
            lines.append(f"unknown key '{key}': {hint or 'remove it, or check its spelling'}")
        elif problem["type"] == "secret":  # the value may be one
            lines.append(f"{key}: {problem['msg']}")
        elif problem["type"] == "missing":
            lines.append(f"'{key}' is missing: add it")
        else:
            reason = problem["msg"].removeprefix("Value error, ")
            start, reason = _given(path, key, problem["input"]), f"{reason[0].lower()}{reason[1:]}"
            if lines and lines[-1].startswith(start):  # of several kinds that it may have, the next
                lines[-1] += f", or {reason.removeprefix('input should be ')}"
            else:
                lines.append(start + reason)
    return "; ".join(lines)


def _given(path: tuple[Any, ...], key: str, value: Any) -> str:
    """Return the key with its value, unless the value is a whole section."""
    if isinstance(value, dict | BaseModel):
        return f"{key}: " if path else ""
    return f"{key} = {value!r}: "


def _is_kind(part: str | int) -> bool:
    """Return whether a part of a path is no key, but one of several kinds of allowed values: `literal['auto']`.

    >>> [_is_kind(part) for part in ("sweeps", "literal['auto']", "constrained-int", 3)]
    [False, True, True, False]
    """
    return isinstance(part, str) and (part.startswith("constrained-") or "[" in part)

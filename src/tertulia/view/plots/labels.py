"""Labels of plots, from other people's words: short, on one line, never parsed as formulas."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tertulia._plain import plain
from tertulia.errors import InputError

if TYPE_CHECKING:
    from tertulia.models import Topics

LONGEST = 18  # characters of a word, or of a party's name
_LONGEST_LABEL = 40
_BOX = "□"  # for letters that no installed font has
_FALLBACKS = (  # used if installed and the usual font lacks a letter
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei",
    "WenQuanYi Zen Hei", "Droid Sans Fallback", "Malgun Gothic", "Noto Sans Arabic", "Noto Sans Hebrew",
    "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji", "Arial Unicode MS",
)  # fmt: skip


def check_matplotlib() -> None:
    """Raise an error if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError("plots need matplotlib: pip install 'tertulia[plot]'") from error


def shown(text: str, most: int = LONGEST) -> str:
    r"""Cut a text, escape control characters, and replace letters that no font has by a box.

    >>> shown("a" * 100, 5), shown("red \x1b[31m")
    ('aaaa…', 'red \\x1b[31m')
    """
    clean = plain(" ".join(text[: 8 * most].split()))
    if len(clean) > most or len(text) > 8 * most:
        clean = f"{clean[: most - 1]}…"
    return clean if clean.isascii() else _drawable(clean)


def foreign() -> dict[str, Any]:
    """Return text options for other people's texts: no formulas, and fallback fonts."""
    return {"parse_math": False, "usetex": False, "fontfamily": _families()}


def label(model: Topics, topic: int, words: int = 3) -> str:
    """Return a topic's number with its name, or else its first words."""
    first = shown(model.names[topic], _LONGEST_LABEL) or " ".join(shown(word) for word, _ in model[topic].words[:words])
    return f"{topic}: {first}" if len(first) <= _LONGEST_LABEL else f"{topic}: {first[: _LONGEST_LABEL - 1]}…"


def visible(model: Topics) -> list[int]:
    """Return the topics that are not hidden."""
    shown = [k for k in range(model.n_topics) if k not in model.hidden]
    if not shown:
        raise InputError("all topics are hidden: `model.unhide()` shows them again")
    return shown


def chosen(model: Topics, topics: int | str | Sequence[int] | None, most: int) -> list[int]:
    """Return the requested topics, by number or name; by default the `most` heaviest visible ones, or the first."""
    if topics is None:
        weights = np.zeros(model.n_topics) if model.weights is None else model.weights
        return sorted(visible(model), key=lambda k: -weights[k])[:most]
    numbers = [topics] if isinstance(topics, int | np.integer | str) else list(topics)
    numbers = [_named(model, number) if isinstance(number, str) else number for number in numbers]
    for number in numbers:
        if not isinstance(number, int | np.integer):
            raise InputError(f"topics = {topics!r}: give numbers of topics, such as [0, 3]")
        if not -model.n_topics <= number < model.n_topics:
            raise InputError(f"there is no topic {number}: they are 0 to {model.n_topics - 1}")
    if not numbers:
        raise InputError("topics is empty: name some, or leave it out")
    return [int(number) % model.n_topics for number in numbers]


def _named(model: Topics, name: str) -> int:
    """Return the number of a topic by its name; for a word, the error says which topics have it."""
    if name and name in model.names:
        return model.names.index(name)
    holders = [str(topic.number) for topic in model if any(word == name.lower() for word, _ in topic.words)]
    having = f"; '{name}' is a top word of topic {', '.join(holders)}" if holders else ""
    raise InputError(f"no topic is named '{name}': give numbers from 0 to {model.n_topics - 1}, or names{having}")


def _families() -> list[str]:
    import matplotlib as mpl
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return [*mpl.rcParams["font.family"], *(name for name in _FALLBACKS if name in installed)]


def _drawable(text: str) -> str:
    """Replace letters that no font has by boxes, with one warning; matplotlib would warn for each letter."""
    check_matplotlib()
    from matplotlib.font_manager import FontProperties, findfont, get_font

    fonts = [get_font(findfont(FontProperties(family=[name]))) for name in _families()]
    drawn = "".join(c if c.isascii() or any(font.get_char_index(ord(c)) for font in fonts) else _BOX for c in text)
    if drawn != text:
        warnings.warn(
            "some words have letters that no font here can draw, they are shown as boxes: install a font of their "
            "script, such as Noto Sans CJK",
            stacklevel=2,
        )
    return drawn

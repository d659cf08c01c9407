"""Plot of one document: the shares of its topics, and the topic of each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import numpy as np

from tertulia._arrays import Array
from tertulia.corpus.inputs import as_corpus
from tertulia.errors import InputError
from tertulia.view.plots.canvas import GREY, PALETTE, SMALL, draw_bars, figure_of, inches_of, new_axes
from tertulia.view.plots.labels import foreign, label, shown, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tertulia.models import Topics

_MOST_WORDS = 150
_BAR, _LINE = 0.26, 0.2  # inches
_LETTER, _SPACE = 0.0735, 4.8  # inches of a letter (whole pixels at any size), points between words
_PALE = 0.4  # opacity behind a word, so that it is legible


def draw_document(model: Topics, document: str | Sequence[str], *, topics: int = 5, ax: Axes | None = None) -> Axes:
    """Draw the largest topics of one text, or of one list of tokens, and below them its words in their topics' colours.

    Words are those that the model reads (stop words are gone). Each has the colour of its likeliest topic in this
    document; what is grey is not known to the model, or belongs to a topic that has no bar.
    """
    tokens, known = _tokens(model, document)
    theta = model.transform([document] if isinstance(document, str) else [list(document)])[0]
    order = sorted(visible(model), key=lambda k: -theta[k])[: max(1, min(topics, len(PALETTE)))]
    rest = max(0.0, 1.0 - float(theta[order].sum()))
    labels, values = [label(model, k) for k in order], theta[order].tolist()
    colours = list(PALETTE[: len(order)])
    if len(order) < model.n_topics:
        labels, values, colours = [*labels, f"{model.n_topics - len(order)} more"], [*values, rest], [*colours, GREY]
    axes = new_axes(ax, (8.0, 0.8 + _BAR * len(labels) + _LINE * _lines_of(tokens)))
    draw_bars(axes, labels, values, [f"{value:.0%}" for value in values], colours)
    axes.set(xlim=(0, max(values) * 1.15), ylim=(len(labels) + _LINE / _BAR * _lines_of(tokens), -0.6), xticks=[])
    axes.spines["bottom"].set_visible(False)
    axes.spines["left"].set_bounds(-0.5, len(labels) - 0.5)
    axes.set_title("A document's topics and words")
    _write_words(axes, len(labels) - 0.3, tokens, _colours_of_words(model, theta, order, known))
    return axes


def _tokens(model: Topics, document: str | Sequence[str]) -> tuple[list[str], Array]:
    """Return the document's words in order, and their numbers in the model, -1 for unknown words."""
    if not isinstance(document, str) and not all(isinstance(token, str) for token in document):
        raise InputError("give one document: a text, or a list of its words")
    corpus = as_corpus(None, [document if isinstance(document, str) else list(document)], model.options)
    tokens = [corpus.vocabulary.words[word] for word in corpus.words]
    if not tokens:
        raise InputError("the document has no words: there is nothing to draw")
    return tokens, model.vocabulary.lookup(tuple(tokens))


def _colours_of_words(model: Topics, theta: Array, order: list[int], known: Array) -> list[str]:
    """Return the most probable topic of each word, by theta_k phi_kw."""
    colour_of = dict(zip(order, PALETTE, strict=False))
    likeliest = (theta[:, None] * model.topic_word[:, np.maximum(known, 0)]).argmax(axis=0)
    return [colour_of.get(int(k), GREY) if word >= 0 else GREY for k, word in zip(likeliest, known, strict=True)]


def _lines_of(tokens: list[str]) -> int:
    """Estimate the number of lines in a figure of the usual width; the width of the axes is not known yet."""
    return 1 + sum(_letters(shown(word)) + 1 for word in tokens[:_MOST_WORDS]) // 72


def _letters(text: str) -> int:
    """Return the width of a text in a monospaced font; Chinese characters count twice."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _write_words(axes: Axes, below: float, tokens: list[str], colours: list[str]) -> None:
    """Write the words below the bars, line by line; matplotlib packs them without overlap."""
    from matplotlib.offsetbox import AnchoredOffsetbox, HPacker, TextArea, VPacker

    figure_of(axes).draw_without_rendering()  # determines the width of the axes
    room = inches_of(axes)[0] / _LETTER
    words = [shown(token) for token in tokens[:_MOST_WORDS]]
    if len(tokens) > _MOST_WORDS:
        words, colours = [*words, f"... and {len(tokens) - _MOST_WORDS} more"], [*colours[:_MOST_WORDS], "none"]
    lines: list[list[Any]] = [[]]
    used = 0
    for word, colour in zip(words, colours, strict=True):
        if lines[-1] and used + _letters(word) > room:
            lines.append([])
            used = 0
        used += _letters(word) + 1
        behind = {"facecolor": colour, "alpha": _PALE, "linewidth": 0, "pad": 1.5}
        style = {**foreign(), "fontsize": SMALL, "bbox": behind}
        style["fontfamily"] = ["monospace", *style["fontfamily"]]
        lines[-1].append(TextArea(word, textprops=style))
    packed = VPacker(children=[HPacker(children=line, sep=_SPACE, pad=0) for line in lines], sep=_SPACE, pad=0)
    axes.add_artist(
        AnchoredOffsetbox(
            "upper left", child=packed, bbox_to_anchor=(0.0, below), bbox_transform=axes.get_yaxis_transform(),
            frameon=False, pad=0, borderpad=0,
        )
    )  # fmt: skip

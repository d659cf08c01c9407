"""SVG figures of pages: each is an image with a title, and a table of its numbers.

Colours are classes of the style sheet (`f1` fills, `l1` draws), so that figures follow the light or dark mode. Pages do
not use matplotlib: its SVG has `style` attributes, which the policy of pages forbids. `el` escapes texts of others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tertulia._plain import plain
from tertulia.view.pages.html import Child, Html, details, el, table, text

WIDE = 400  # units of a figure's width: text of 11 units is legible on a phone, and not too large on a desktop
_LEFT, _RIGHT, _BOTTOM = 40, 12, 30
Point = tuple[float, float]


class Series(NamedTuple):
    """A line of a line chart."""

    name: str
    points: Sequence[Point]
    look: str = "l1"  # classes


def figure(title: str, height: float, *marks: Child, caption: Child = None, below: Child = None) -> Html:
    """Build a figure with a title, a caption, and an element below."""
    drawn = el("svg", el("title", title), *marks, viewBox=f"0 0 {WIDE} {height:.0f}", role="img", class_="chart")
    return el("figure", drawn, None if caption is None else el("figcaption", caption), below)


def as_table(head: Sequence[Child], rows: Sequence[Sequence[Child]], numeric: str = "") -> Html:
    """Build a collapsed table of a figure's numbers."""
    return details("the same as a table", table(head, rows, numeric=numeric))


def bar(share: float, look: str = "f1") -> Html:
    """Build a bar for a line of text, filled by `share`. It is hidden from screen readers: the number is beside it."""
    part = el("rect", width=round(100.0 * min(max(share, 0.0), 1.0), 1), height=10, class_=look)
    return el("svg", part, viewBox="0 0 100 10", preserveAspectRatio="none", class_="bar", aria_hidden="true")


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round numbers from `low` to `high`.

    >>> ticks(0, 10)
    [0, 2, 4, 6, 8, 10]
    """
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    step = 10 ** math.floor(math.log10(span / most))
    step *= next(n for n in (1, 2, 5, 10) if span / (step * n) <= most)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def lines(title: str, series: Sequence[Series], *, x: str, y: str, levels: Mapping[str, float] | None = None) -> Html:
    """Build a line chart; `levels` are named horizontal dashed lines."""
    known = [point for one in series for point in one.points if math.isfinite(point[1])]
    if not known:
        return el("p", f"{title}: nothing was measured.", class_="soft")
    levels = {name: value for name, value in (levels or {}).items() if math.isfinite(value)}
    left, right = min(p[0] for p in known), max(p[0] for p in known)
    heights = [p[1] for p in known] + list(levels.values())
    low, high = min(heights), max(heights)
    room = (high - low) * 0.08 or abs(high) * 0.05 or 1.0
    low, high, height = low - room, high + room, 190.0

    def place(point: Point) -> Point:
        across = 0.5 if right == left else (point[0] - left) / (right - left)
        up = (point[1] - low) / (high - low)
        return _LEFT + across * (WIDE - _LEFT - _RIGHT), (height - _BOTTOM) * (1 - up)

    marks: list[Html] = []
    for value in ticks(low, high):
        at = place((left, value))[1]
        marks.append(el("line", x1=_LEFT, x2=WIDE - _RIGHT, y1=at, y2=at, class_="grid"))
        marks.append(el("text", f"{value:g}", x=_LEFT - 5, y=at + 4, text_anchor="end", class_="soft"))
    for value in ticks(left, right, 8):
        if value == int(value):
            at = place((value, low))[0]
            marks.append(el("text", f"{value:g}", x=at, y=height - _BOTTOM + 13, text_anchor="middle", class_="soft"))
    for name, value in levels.items():
        at = place((left, value))[1]
        marks.append(el("line", x1=_LEFT, x2=WIDE - _RIGHT, y1=at, y2=at, class_="l0 dashed"))
        marks.append(el("text", name, x=WIDE - _RIGHT, y=at - 5, text_anchor="end", class_="soft halo"))
    for one in series:
        marks += _line([place(p) for p in one.points if math.isfinite(p[1])], one)
    marks.append(el("text", x, x=(WIDE + _LEFT) / 2, y=height - 2, text_anchor="middle", class_="soft"))
    rows = [
        [text(one.name), f"{p[0]:g}", f"{p[1]:,.4g}" if abs(p[1]) < 1000 else f"{p[1]:,.0f}"]
        for one in series
        for p in one.points
    ]
    return figure(title, height, marks, caption=y, below=as_table(["line", x, "value"], rows, "-rr"))


def _line(places: Sequence[Point], one: Series) -> list[Html]:
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
    dots = one.look.replace("l", "f", 1).split(" ")[0]
    shown = [el("polyline", points=path, class_=one.look)]
    if "thin" not in one.look:
        shown += [el("circle", cx=round(px, 1), cy=round(py, 1), r=2.5, class_=dots) for px, py in places[-60:]]
    return shown


class Bar(NamedTuple):
    """A row of a bar chart."""

    name: str
    value: float
    shown: str
    look: str = "f1"


def bars(title: str, rows: Sequence[Bar], *, caption: Child = None) -> Html:
    """Build a bar chart from zero as a table, so that names wrap and bars take the remaining width."""
    most = max((row.value for row in rows if math.isfinite(row.value)), default=0.0) or 1.0
    body = [
        el("tr", el("th", text(row.name), scope="row"), el("td", bar(row.value / most, row.look), class_="grows"),
           el("td", row.shown, class_="r"))
        for row in rows
    ]  # fmt: skip
    return el("figure", el("table", el("caption", title), el("tbody", body), class_="bars"),
              None if caption is None else el("figcaption", caption))  # fmt: skip


_FIRST, _LAST = 0.1, 1_000.0  # ends of the epsilon scale; larger values are drawn at the end
_END = 0.86  # share of the scale for numbers; "no bound" is beyond it
LANDMARKS = ((1.0, "strong"), (3.0, "a document can be denied"), (10.0, "a word can be, to some degree"))


def epsilon_scale(title: str, numbers: Sequence[tuple[str, float]]) -> Html:
    """Build a logarithmic epsilon scale with landmarks, one row for each number; no bound is at the end."""

    def across(value: float) -> float:
        if math.isinf(value):
            return WIDE - 12.0
        share = math.log(max(value, _FIRST) / _FIRST) / math.log(_LAST / _FIRST)
        return 4.0 + (WIDE - 8.0) * _END * min(share, 1.0)

    marks: list[Html] = []
    for value, _ in LANDMARKS:
        marks.append(el("text", f"{value:g}", x=across(value), y=12, text_anchor="middle", class_="soft"))
    marks.append(el("text", "no bound", x=WIDE, y=12, text_anchor="end", class_="soft"))
    ends = (0.0, across(3.0), across(10.0), float(WIDE))
    for i, (name, value) in enumerate(numbers):
        top, at = 22.0 + 38 * i, across(value)
        shown = "no bound" if math.isinf(value) else f"{value:.4g}"
        marks += [
            el("rect", x=start, y=top + 18, width=end - start - 1, height=6, class_=f"{look} faint")
            for start, end, look in zip(ends, ends[1:], ("good", "weak", "bad"), strict=False)
        ]
        marks.append(el("text", name, x=0, y=top + 12))
        marks.append(el("text", shown, x=WIDE, y=top + 12, text_anchor="end", font_weight="bold"))
        marks.append(el("circle", cx=at, cy=top + 21, r=6, class_="f1 ringed"))
    said = "; ".join(f"{value:g}: {name}" for value, name in LANDMARKS)
    caption = f"Epsilon, from strong protection (left) to none (right), on a logarithmic scale. Landmarks: {said}."
    return figure(title, 22.0 + 38 * len(numbers), marks, caption=caption)


_NAME = 22  # letters of a name on a map
_LETTER = 6.2  # width of one


class Box(NamedTuple):
    """The place of a label."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Tell whether two labels overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def topic_map(title: str, places: Sequence[Point], weights: Sequence[float], names: Sequence[str]) -> Html:
    """Build a map of topics as circles, areas by weight, with numbers inside and names below where there is room."""
    height, most = 320.0, max(weights, default=1.0) or 1.0
    xs, ys = [p[0] for p in places], [p[1] for p in places]
    wide, high = (max(xs) - min(xs)) or 1.0, (max(ys) - min(ys)) or 1.0
    scale = min((WIDE - 56) / wide, (height - 56) / high)
    marks: list[Html] = []
    written: list[Box] = []
    for k in sorted(range(len(places)), key=lambda k: -weights[k]):
        at_x = WIDE / 2 + (xs[k] - (max(xs) + min(xs)) / 2) * scale
        at_y = height / 2 - (ys[k] - (max(ys) + min(ys)) / 2) * scale
        radius = max(22.0 * math.sqrt(weights[k] / most), 6.0)
        circle = el("circle", el("title", names[k][:200]), cx=at_x, cy=at_y, r=radius, class_="f1 faint")
        number = names[k].partition(":")[0] if radius >= 7 else None  # small circles have only a tooltip
        label = number and el("text", number, x=at_x, y=at_y + 4, text_anchor="middle", class_="halo")
        marks.append(el("g", circle, label))
        name = plain(names[k].partition(": ")[2], _NAME)
        half = _LETTER * len(name) / 2
        middle = min(max(at_x, half), WIDE - half)
        box = Box(middle - half, at_y + radius + 2, middle + half, at_y + radius + 14)
        if box.bottom <= height and not any(box.meets(other) for other in written):
            written.append(box)
            marks.append(el("text", name, x=middle, y=box.bottom - 2, text_anchor="middle", class_="soft halo"))
    rows = [[text(name), f"{p[0]:.2f}", f"{p[1]:.2f}"] for name, p in zip(names, places, strict=True)]
    caption = "Topics with similar words stand close; areas are weights. Points are topics, never documents."
    return figure(title, height, marks, caption=caption, below=as_table(["topic", "x", "y"], rows, "-rr"))


def heat(title: str, head: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]], caption: Child) -> Html:
    """Build a heat map as a table of values from 0 to 1."""

    def cell(value: float) -> Html:
        square = el("rect", width=12, height=12, class_="f1", opacity=round(min(max(value, 0.0), 1.0), 2))
        frame = el("rect", width=12, height=12, class_="track")
        drawn = el("svg", frame, square, viewBox="0 0 12 12", class_="cell", aria_hidden="true")
        return el("td", drawn, f"{value:.2f}", class_="r")

    top = el("tr", el("th", "topic", scope="col"), [el("th", text(one, 24), scope="col", class_="r") for one in head])
    body = [el("tr", el("td", text(name, 80)), [cell(value) for value in values]) for name, values in rows]
    drawn = el("table", el("caption", title), el("thead", top), el("tbody", body))
    box = el("div", drawn, class_="wide", tabindex="0", role="group", aria_label=title)
    return el("figure", box, el("figcaption", caption))

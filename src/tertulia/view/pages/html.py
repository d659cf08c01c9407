"""HTML that is safe by construction: what is not built here is text, and text is escaped.

Words, names of parties and reasons are other people's. A page shows them as they are: control characters are written
out, very long ones are cut and stand in full, up to a limit, where the pointer rests. No page asks for anything outside
itself: its policy (Content-Security-Policy) forbids all but its own style sheet and scripts, which it names by hash.
So no element may have an attribute `style`: a width is an attribute of an SVG element, or a class.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from tertulia._plain import plain, plain_json

_LONGEST = 60  # letters of a word in a page
_LONGEST_TITLE = 400  # letters where the pointer rests
_EMPTY = {"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}  # elements without an end tag


class Html(str):
    """Text that is HTML already: only `el`, `text` and `join` make it."""

    __slots__ = ()


Child = str | Iterable[str] | None


def text(value: object, most: int = _LONGEST) -> Html:
    """Other people's text, escaped; what is longer than `most` is cut, and its title has more of it.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    whole = str(value)
    if len(whole) <= most:
        return Html(html.escape(plain(whole)))
    title = html.escape(plain(whole, _LONGEST_TITLE))
    return Html(f'<span title="{title}">{html.escape(plain(whole[:most]))}…</span>')


def join(*children: Child) -> Html:
    """Put HTML and texts together; texts are escaped, None is nothing."""
    return Html("".join(_parts(children)))


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield html.escape(plain(child))
        elif child is not None:
            yield from _parts(child)


def el(tag: str, *children: Child, **attributes: object) -> Html:
    """An element: `el("p", "a < b", class_="note")`; None and False leave an attribute out, True gives it no value.

    >>> el("p", "a < b", class_="note", aria_hidden="true")
    '<p class="note" aria-hidden="true">a &lt; b</p>'
    """
    if any(name == "style" or name.startswith("on") for name in attributes):
        raise ValueError("a page's policy forbids styles and scripts in attributes: use a class, or SVG")
    shown = "".join(_attribute(name, value) for name, value in attributes.items())
    inside = "" if tag in _EMPTY else f"{join(*children)}</{tag}>"
    return Html(f"<{tag}{shown}>{inside}")


def _attribute(name: str, value: object) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    written = f"{value:.6g}" if isinstance(value, float) else plain(str(value))
    return f' {name}="{html.escape(written)}"'


def table(head: Sequence[Child], rows: Iterable[Sequence[Child]], *, numeric: str = "", stacks: bool = False) -> Html:
    """A table that scrolls by itself where it is too wide; `numeric` has an `r` for each column that stands right.

    One that `stacks` shows a block for each row on a narrow screen instead; its heads are texts.
    """
    side = ["r" if i < len(numeric) and numeric[i] == "r" else None for i in range(len(head))]
    names = [str(one) if stacks else None for one in head]
    top = el("tr", [el("th", one, scope="col", class_=at) for one, at in zip(head, side, strict=True)])
    body = [
        el("tr", [
            el("td", el("span", one) if stacks else one, class_=at, data_name=name)
            for one, at, name in zip(row, side, names, strict=True)
        ])
        for row in rows
    ]  # fmt: skip
    drawn = el(
        "table",
        el("thead", top),
        el("tbody", body),
        class_="stacks" if stacks else "narrow" if len(head) <= 3 else None,
    )
    return el("div", drawn, class_="wide", tabindex="0", role="group", aria_label="table")


def details(summary: Child, *inside: Child, is_open: bool = False) -> Html:
    """What is shown when it is asked for; it needs no script."""
    return el("details", el("summary", summary), *inside, open=is_open)


def data(name: str, value: Any) -> Html:
    """A block of JSON for a script: `JSON.parse(document.getElementById(name).textContent)`."""
    written = plain_json(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
    # Inside a script element only `<` could end it; JSON has another way to write that letter.
    return Html(
        f'<script type="application/json" id="{html.escape(name)}">{written.replace("<", chr(92) + "u003c")}</script>'
    )


def page(
    title: str,
    *body: Child,
    scripts: Sequence[str] = (),
    policy: Mapping[str, str] | None = None,
    lang: str = "en",
    layout: str = "",
) -> str:
    """A whole page with its style sheet and its scripts inside.

    `policy` adds to what the page may do, as `{"connect-src": "'self'"}`; else it may load nothing at all. `layout` are
    rules of style that only this page needs.
    """
    style = style_sheet() + layout
    rules = {
        "default-src": "'none'",
        "style-src": _hash(style),
        "script-src": " ".join(map(_hash, scripts)) or "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        **(policy or {}),
    }
    content = "; ".join(f"{name} {value}" for name, value in rules.items())
    head = join(
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=content),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="color-scheme", content="light dark"),
        el("link", rel="icon", href="data:,"),
        el("title", text(title, 120) if len(title) <= 120 else plain(title, 120)),
        Html(f"<style>{style}</style>"),
    )
    skip = el("a", "to the content", href="#content", class_="skip")
    inside = join(skip, *body, *(Html(f"<script>{script}</script>") for script in scripts))
    return f"<!doctype html>\n{el('html', el('head', head), el('body', inside), lang=lang)}\n"


def _hash(source: str) -> str:
    """How a policy names a script or a style sheet: by what it holds."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


@cache
def style_sheet() -> str:
    """The style sheet of all pages."""
    return asset("style.css")


@cache
def asset(name: str) -> str:
    """A file that lies beside this one: a style sheet or a script, which must not hold the end of its own element."""
    source = files("tertulia.view.pages").joinpath(name).read_text(encoding="utf-8")
    if "</script" in source or "</style" in source:
        raise ValueError(f"{name} would end its own element")
    return source

"""HTML that is safe by construction: everything that is not built here is text, and text is escaped.

Words, names of parties and reasons come from other people. Pages escape control characters in them and cut long ones;
the tooltip has more of a cut text, up to a limit. No page loads anything: its Content-Security-Policy forbids all but
its own style sheet and scripts, which it names by hash. So no element may have a `style` attribute: a width is an
attribute of an SVG element, or a class.
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

_LONGEST = 60  # characters of a word in a page
_LONGEST_TITLE = 400  # characters of a tooltip
_EMPTY = {"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}  # elements without an end tag


class Html(str):
    """Text that is HTML already; only `el`, `text` and `join` create it."""

    __slots__ = ()


Child = str | Iterable[str] | None


def text(value: object, most: int = _LONGEST) -> Html:
    """Escape other people's text; cut it at `most` characters, with more of it in a tooltip.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    whole = str(value)
    if len(whole) <= most:
        return Html(html.escape(plain(whole)))
    title = html.escape(plain(whole, _LONGEST_TITLE))
    return Html(f'<span title="{title}">{html.escape(plain(whole[:most]))}…</span>')


def join(*children: Child) -> Html:
    """Concatenate HTML and texts; escape texts, and skip None."""
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
    """Build an element; None and False leave an attribute out, True gives it no value.

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
    """Build a table that scrolls if it is too wide; `numeric` has an `r` for each right-aligned column.

    With `stacks`, a narrow screen shows each row as a block instead; heads must then be texts.
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
    """Build a collapsible element, which needs no script."""
    return el("details", el("summary", summary), *inside, open=is_open)


def data(name: str, value: Any) -> Html:
    """Build a JSON block for a script: `JSON.parse(document.getElementById(name).textContent)`."""
    written = plain_json(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False))
    # Only `<` could end a script element; JSON can escape it.
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
    """Build a whole page with its style sheet and its scripts inside.

    `policy` adds permissions, such as `{"connect-src": "'self'"}`; without it, the page may load nothing. `layout` has
    style rules that only this page needs.
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
    """Return the hash by which a policy names a script or a style sheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


@cache
def style_sheet() -> str:
    """Return the style sheet of all pages."""
    return asset("style.css")


@cache
def asset(name: str) -> str:
    """Read a style sheet or a script beside this module; it must not contain the end tag of its own element."""
    source = files("tertulia.view.pages").joinpath(name).read_text(encoding="utf-8")
    if "</script" in source or "</style" in source:
        raise ValueError(f"{name} would end its own element")
    return source

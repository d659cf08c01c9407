"""HTML as plain text: tags are left out, blocks become paragraphs, entities become characters."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_NAMES = """
    address article aside blockquote body caption dd div dl dt fieldset figcaption footer form h1 h2 h3 h4 h5 h6 header
    hr li main nav ol p pre section table tbody td tfoot th thead title tr ul
"""
_BLOCKS = frozenset(_NAMES.split())
_UNSEEN = frozenset({"script", "style", "head", "template", "noscript"})
_TAG = re.compile(r"<(?:/?[a-zA-Z][a-zA-Z0-9]*(?:\s[^<>]*)?/?|!--)>?")
_ENTITY = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{2,6}|#[xX][0-9a-fA-F]{2,5});")
_LINES = re.compile(r"\s*\n\s*")


class _Text(HTMLParser):
    """The text of a page, with a blank line at the borders of blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the beginning of an element."""
        if tag in _UNSEEN:
            self._unseen += 1
        elif tag == "body":  # the end of the head may be left out
            self._unseen = 0
        if tag in _BLOCKS or tag == "br":
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        """Note the end of an element."""
        if tag in _UNSEEN:
            self._unseen = max(self._unseen - 1, 0)
        if tag in _BLOCKS:
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        """Take the text of visible elements."""
        if not self._unseen:
            self.parts.append(data)


def plain_text(html: str) -> str:
    r"""Return the text of HTML, or of XML; broken markup loses its tags, too.

    >>> plain_text("<p>Rain &amp; wind.</p><script>x()</script><p>Rivers<br>rose.")
    'Rain & wind.\n\nRivers\n\nrose.'
    """
    parser = _Text()
    parser.feed(html)
    parser.close()
    return _LINES.sub("\n\n", "".join(parser.parts)).strip()


def looks_like_html(text: str) -> bool:
    """Return whether a text has tags or entities of HTML.

    >>> looks_like_html("<p>Rain</p>"), looks_like_html("p < 0.05 and q > 3"), looks_like_html("R&D; rain &amp; wind")
    (True, False, True)
    """
    return ("<" in text and _TAG.search(text) is not None) or ("&" in text and _ENTITY.search(text) is not None)

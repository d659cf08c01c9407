"""Examples in docstrings (lines after `>>>`) as blocks of code on the site's pages."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

FLAG = re.compile(r"\s*# doctest: .*$", re.M)
EXAMPLE = re.compile(r"^>>>.*(?:\n(?!\n).+)*", re.M)


class Examples(Extension):
    """Put fences around examples that stand in no section of their own."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        """Change a docstring before it is parsed."""
        if obj.docstring:
            plain = FLAG.sub("", obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", plain)

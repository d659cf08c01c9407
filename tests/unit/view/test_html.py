"""HTML that is safe by construction."""

import base64
import hashlib
import json
import re

import pytest

from tertulia.view.pages.html import Html, data, details, el, join, page, style_sheet, table, text

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a\x00\x1b[31m\u202eb", "&amp;", "x" * 10_000]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_others_wrote_is_text_wherever_it_stands(name):
    whole = page(name, el("p", name, title=name), table([name], [[name]], stacks=True), details(name, text(name)))
    inside = whole.partition("</style>")[2]
    assert "<img" not in inside
    assert "<script" not in inside
    assert not re.search("[\x00-\x08\x1b\u202e]", whole)


def test_a_long_word_is_cut_and_its_title_has_more():
    shown = text("x" * 10_000, 20)
    assert re.sub("<[^>]*>", "", shown) == "x" * 20 + "…"
    assert 100 < len(shown) < 600


def test_html_is_not_escaped_twice_and_lists_are_taken_apart():
    assert join("<", el("b", "&"), None, [Html("<i>"), [">"]]) == "&lt;<b>&amp;</b><i>&gt;"


def test_attributes_may_hold_neither_styles_nor_scripts():
    for name in ("style", "onclick"):
        with pytest.raises(ValueError, match="policy forbids"):
            el("p", **{name: "x"})


def test_data_comes_back_as_it_was_and_cannot_end_its_element():
    value = {"word": "</script><b>\u2028", "n": [1, 2.5, None]}
    block = data("facts", value)
    assert block.count("</script>") == 1
    assert json.loads(re.fullmatch("<script[^>]*>(.*)</script>", block)[1]) == value


def test_a_page_may_load_nothing_but_what_it_holds():
    script = "document.title = 'b'"
    whole = page("a", el("main", id="content"), scripts=[script])
    policy = re.search('Content-Security-Policy" content="([^"]*)"', whole)[1].replace("&#x27;", "'")
    for source in (script, style_sheet()):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search("https?:", whole)

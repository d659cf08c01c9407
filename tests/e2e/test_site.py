"""The site is built without a warning, all of its links lead somewhere, and it loads nothing from elsewhere."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from deploy import website
from helpers.browser import DESKTOP, PHONE
from helpers.marks import slow

ROOT = website.ROOT
LOADS = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "link": "href",
    "object": "data",
    "form": "action",
}
STYLE = re.compile(r"url\(\s*['\"]?(?!data:|#)([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """A built page: its anchors, what it links to, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.anchors, self.links, self.loads = path, set(), [], []
        text = path.read_text()
        self.feed(text)
        self.loads += [found for pair in STYLE.findall(text) for found in pair if found]

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if (
            tag in LOADS
            and found.get(LOADS[tag])
            and found.get("rel") not in ("canonical", "alternate", "prev", "next")
        ):
            self.loads.append(found[LOADS[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, as `make site` builds it."""
    folder = tmp_path_factory.mktemp("built") / "site"
    subprocess.run([sys.executable, ROOT / "deploy" / "website.py", folder], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def built(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def is_elsewhere(target):
    return re.match(r"(?:[a-z]+:)?//", target) is not None


def test_links_and_anchors_lead_somewhere(built, site):
    assert len(built) > 50
    for path, page in built.items():
        for link in page.links:
            name, _, anchor = link.partition("#")
            if is_elsewhere(link) or name.startswith("mailto:"):
                continue
            folder = (
                site if name.startswith("/") else path.parent
            )  # of the page for what is not found, from the root on
            target = (folder / unquote(name).lstrip("/")).resolve() if name else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.relative_to(site)}: {link}"
            if anchor and target in built:
                assert unquote(anchor) in built[target].anchors, f"{path.relative_to(site)}: {link}"


def test_nothing_is_loaded_from_elsewhere(built, site):
    loaded = {load for page in built.values() for load in page.loads}
    loaded |= {part for css in site.rglob("*.css") for pair in STYLE.findall(css.read_text()) for part in pair if part}
    assert [load for load in loaded if is_elsewhere(load)] == []
    assert any("iframe-worker" in load for load in loaded)


def test_formulas_are_drawn(site):
    for name in ("consensus", "ftm", "fedlda", "pctd", "gfedntm", "lda", "privacy"):
        text = (site / f"{name}.html").read_text()
        assert text.count('<math xmlns="http://www.w3.org/1998/Math/MathML"') > 3, name
        visible = re.sub(r"<(script|code)\b.*?</\1>", "", text, flags=re.S)
        assert "$" not in visible, name
        assert "\\" not in visible, name


def test_settings_and_docstrings_are_there(site):
    assert "min_similarity" in (site / "reference.html").read_text()
    models = (site / "api" / "models.html").read_text()
    assert 'id="tertulia.Topics.transform"' in models
    assert '<span class="gp">&gt;&gt;&gt; </span>' in models  # an example as code
    assert "doctest:" not in models


def test_search_knows_every_page(site):
    known = {item["location"].partition("#")[0] for item in json.loads((site / "search.json").read_text())["items"]}
    assert {str(path.with_suffix(".html")) for path in website.pages().values()} <= known


def test_language_models_find_every_page(site):
    text = (site / "llms.txt").read_text()
    assert text.startswith("# Tertulia\n\n> One topic model")
    linked = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): (.*)$", text, re.M)
    assert {place for place, _ in linked} == {str(path.with_suffix(".html")) for path in website.pages().values()}
    assert all((site / place).is_file() for place, _ in linked)
    assert sum(len(said) > 40 for _, said in linked) > 0.8 * len(linked)


def test_every_page_has_its_place():
    """Zensical builds pages that its navigation lacks; nobody would find them."""
    listed = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2], re.M)
    assert len(listed) == len(set(listed))
    assert set(listed) == {str(place) for place in website.pages().values()}, "mkdocs.yml has a line for each page"


def test_hidden_preparations_do_not_appear(built):
    assert [path for path in built if "<!-- setup" in path.read_text()] == []


def test_links_are_turned_and_files_taken_along():
    wanted = set()
    page = ROOT / "docs" / "guides" / "researcher.md"
    text = (
        "[a](../ftm.md#modes) [b](../../benchmarks/RESULTS.md) [c](../../examples/topics.py) [d](https://example.org/)"
    )
    turned = website.links(text, page, wanted)
    assert (
        turned
        == "[a](../ftm.md#modes) [b](../results/index.md) [c](../files/examples/topics.py) [d](https://example.org/)"
    )
    assert wanted == {ROOT / "examples" / "topics.py"}


def test_a_link_that_leads_nowhere_is_an_error():
    with pytest.raises(website.SiteError, match=r"docs/ftm\.md: no\.md is no file"):
        website.links("[a](no.md)", ROOT / "docs" / "ftm.md", set())


def test_code_is_left_alone():
    text = "`$x$` and\n\n```\n$HOME [a](no.md)\n```\n\nbut $x_1$"
    laid = website.outside_code(text, website.formulas)
    assert laid.startswith(text[: text.index("but")])
    assert "<msub><mi>x</mi><mn>1</mn></msub>" in laid


def test_signs_of_markdown_in_formulas_are_entities():
    assert "&#91;" in website.formulas("$P[a, b]$")
    assert "|" not in website.formulas(r"$p(a | b \mid c)$")  # in a table it would end a cell
    assert "five $ or six $" in website.formulas("five $ or six $ more")


@pytest.mark.parametrize(("width", "dark"), [(PHONE, False), (DESKTOP, True)], ids=["phone-light", "desktop-dark"])
@pytest.mark.parametrize("name", ["index", "consensus", *map(slow, ["concepts", "api/documents"])])
def test_pages_in_a_browser(browser, site, name, width, dark):
    """No error, no request, nothing serious for axe, nothing too wide."""
    opened = browser.open(site / f"{name}.html", width=width, dark=dark)
    opened.page.locator("h1").wait_for()
    opened.check(f"site-{name.replace('/', '-')}-{width}{'-dark' if dark else ''}")


def test_search_works_from_files(browser, site):
    """Opened from a disk, without a server and without a network. (Its window is Zensical's, with axe's findings.)"""
    opened = browser.open(site / "index.html")
    opened.page.keyboard.press("Control+k")
    opened.page.locator("input:visible").first.fill("randomised response")
    opened.page.get_by_role("option", name=re.compile("Privacy|Mechanisms|noise", re.I)).first.wait_for()
    opened.picture("site-search")
    assert (opened.errors, opened.outside) == ([], [])


def test_pages_that_only_a_link_leads_to_are_pages(monkeypatch, tmp_path):
    first = ROOT / "docs" / "guides" / "officer.md"
    monkeypatch.setattr(website, "pages", lambda: {first: Path("guides/officer.md")})
    website.lay_out(tmp_path)
    assert {"guides/officer.md", "concepts.md", "files/benchmarks/results/door.md"} <= {
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")
    }

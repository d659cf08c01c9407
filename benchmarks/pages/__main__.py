"""Measure the pages: size, time to open, findings of axe, and requests to other servers.

Documents are the demo's. Pages are opened in a real browser, without a network, light and dark, at phone and
desktop width; `make test` installs browser and axe-core. A missing part (explorer, site builder) is null, and reported.
"""

from __future__ import annotations

import importlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import arguments, finish, say
from benchmarks.pages.live import measure_live
from tertulia.api.federated import Consensus
from tertulia.corpus import Corpus
from tertulia.corpus.demo_corpus import demo_parties
from tertulia.models import Topics
from tertulia.view.pages.report import report

ROOT = Path(__file__).parents[2]
LOOKS = [(360, False), (360, True), (1600, False), (1600, True)]
KB = 1024


def main() -> None:
    """Measure all pages; the JSON line has one number for each."""
    quick = arguments(__doc__ or "").quick
    sys.path.insert(0, str(ROOT / "tests"))
    parties = demo_parties()
    if quick:
        parties = {party: corpus.split(0.7)[0] for party, corpus in parties.items()}
    found: dict[str, Any] = {"benchmark": "pages", "quick": quick}
    with (
        tempfile.TemporaryDirectory() as folder,
        importlib.import_module("helpers.browser").launch_browser() as browser,
    ):
        place = Path(folder)
        say("a run of 50 topics")
        model = Consensus(topics=50, rounds=4 if quick else 20).fit(
            parties, workers=2, heldout=0.1, directory=place / "run", progress=False
        )
        files = write_reports(place, parties)
        found["report_kb"] = largest(files)
        explorer = write_explorer(place / "explorer.html", model)
        found["explorer_kb"] = None if explorer is None else largest([explorer])
        found["explorer_k50_open_ms"] = None if explorer is None else time_to_open(browser, explorer)
        say("the live page")
        live = measure_live(browser, parties, place / "live", 6 if quick else 20)
        serious, outside = look_at(browser, [*files, *([explorer] if explorer else [])])
        found |= {"axe_serious": serious + live.pop("serious"), "external_requests": outside + live.pop("outside")}
        found |= live | measure_site(place / "site") | {"snippets_run": count_snippets()}
    finish(found)


def write_reports(place: Path, parties: Mapping[str, Corpus]) -> list[Path]:
    """The project's page, and the officer's of the first party."""
    files = []
    for name, party in (("project", None), ("officer", next(iter(parties)))):
        files.append(place / f"{name}.html")
        files[-1].write_text(report(place / "run", party), encoding="utf-8")
    return files


def largest(files: list[Path]) -> float:
    """Kilobytes of the largest."""
    return round(max(path.stat().st_size for path in files) / KB, 1)


def write_explorer(path: Path, model: Topics) -> Path | None:
    """The explorer of a model without documents, if this version has one."""
    explore = getattr(model, "explore", None)
    if explore is None:
        say("there is no explorer: its figures are null")
        return None
    explore(path)
    return path


def time_to_open(browser: Any, path: Path) -> float:
    """Milliseconds from asking for a page until it is drawn, the median of five."""
    times = []
    for _ in range(5):
        started = time.perf_counter()
        opened = browser.open(path)
        opened.page.wait_for_selector("html[data-ready]")  # the explorer has drawn its topics
        opened.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        times.append(1000 * (time.perf_counter() - started))
        browser.close_pages()
    return round(statistics.median(times))


def look_at(browser: Any, files: list[Path]) -> tuple[int, int]:
    """How many serious things axe finds on pages, in all their looks, and how often they ask for anything outside."""
    serious, outside = [], []
    for path in files:
        for width, dark in LOOKS:
            say(f"{path.name}, {width} pixels, {'dark' if dark else 'light'}")
            opened = browser.open(path, width=width, dark=dark)
            serious += opened.serious()
            outside += opened.outside
            browser.close_pages()
    for one in serious:
        say(one)
    return len(serious), len(outside)


def measure_site(folder: Path) -> dict[str, Any]:
    """Build the site, strictly; its pages, and their size with all that they load."""
    nothing = {"site_kb": None, "site_pages": None}
    builder = ROOT / "deploy" / "website.py"
    if not builder.exists():
        say("there is no site: its figures are null")
        return nothing
    say("the site")
    done = subprocess.run([sys.executable, str(builder), str(folder)], cwd=ROOT, check=False)
    if done.returncode:
        say("the site could not be built: its figures are null")
        return nothing
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"site_kb": round(size / KB), "site_pages": len(list(folder.rglob("*.html")))}


def count_snippets() -> int | None:
    """How many blocks of Python on pages run; null if there is no test of them, or one fails."""
    tests = ROOT / "tests" / "e2e" / "test_snippets.py"
    if not tests.exists():
        say("snippets are not tested: their number is null")
        return None
    say("the snippets")
    command = [sys.executable, "-m", "pytest", "-q", str(tests), str(tests.with_name("test_readme.py"))]
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        say(f"snippets do not run: {done.stdout[-2000:]}")
        return None
    snippets = importlib.import_module("helpers.snippets")
    every = [block for page in snippets.PAGES for block in snippets.blocks(page)]
    return len([block for block in every if block.language == "python" and block.excuse is None])


if __name__ == "__main__":
    main()

"""Pages in a real browser: Debian's headless Chromium, without a network, with axe-core.

The fixture `browser` (in `conftest.py`) is one browser for a module of tests:

>>> opened = browser.open(tmp_path / "report.html", width=PHONE, dark=True)     # doctest: +SKIP
>>> opened.page.get_by_role("heading", name="Topics").click()                   # doctest: +SKIP
>>> opened.check("report-phone-dark")  # no error, no request, nothing serious for axe; a picture  # doctest: +SKIP
"""

import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

BROWSERS = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
AXE = Path(sys.prefix) / "axe.min.js"
PICTURES = Path(__file__).parents[2] / "build" / "screenshots"
PHONE, DESKTOP, WIDE = 360, 1280, 1600  # pixels
PATIENCE = 90_000  # milliseconds: a loaded machine draws slowly
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost , EXCLUDE [::1]",
)  # fmt: skip


def executable_or_none() -> str | None:
    """Where a browser is, if there is one."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


@dataclass
class Opened:
    """A page that was opened, and what happened on it."""

    page: Any
    scripts: bool = True
    errors: list[str] = field(default_factory=list)  # of the console, and uncaught ones
    outside: list[str] = field(default_factory=list)  # addresses that it asked for, and may not

    def serious(self, within: str = "html") -> list[str]:
        """What axe finds that is serious or critical in a part of the page: rule, place and text of each."""
        if not self.scripts:
            raise ValueError("axe is a script: look at a page with scripts off by your own assertions")
        self.page.evaluate(_axe())
        how = "{resultTypes: ['violations'], preload: false}"  # pages have all that they need inside
        found = self.page.evaluate(f"async within => (await axe.run(within, {how})).violations", within)
        return [
            f"{rule['id']}: {node['html'][:200]}: {' '.join(node['failureSummary'].split())}"
            for rule in found
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(
            self.page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
        )

    def picture(self, name: str, *, whole: bool = True) -> Path:
        """Take a picture into build/screenshots, which is kept."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        self.page.screenshot(path=path, full_page=whole, animations="disabled", timeout=PATIENCE)
        return path

    def check(self, name: str, within: str = "html") -> None:
        """Nothing serious for axe (if scripts run), no error, no request, nothing too wide; take a picture."""
        self.picture(name)
        assert (self.errors, self.outside) == ([], [])
        assert not self.scripts or self.serious(within) == []
        assert self.overflow() <= 0


class Browser:
    """A browser that reaches nothing but files and, if a page has one, its own loopback address."""

    def __init__(self, chromium: Any) -> None:
        self._chromium, self._contexts = chromium, []

    def open(
        self,
        where: str | Path,
        *,
        width: int = DESKTOP,
        height: int = 900,
        dark: bool = False,
        scripts: bool = True,
        **more: Any,
    ) -> Opened:
        """Open a file, or an address of this machine; `more` goes to Playwright's `new_context`."""
        address = where.resolve().as_uri() if isinstance(where, Path) else where
        context = self._chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            reduced_motion="reduce",
            **more,
        )
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        opened = Opened(context.new_page(), scripts)
        _watch(context, opened, address)
        opened.page.goto(address)
        return opened

    def close_pages(self) -> None:
        """After each test."""
        while self._contexts:
            self._contexts.pop().close()


def _watch(context: Any, opened: Opened, address: str) -> None:
    """Collect errors; let through what is of the page's own origin, and note all else."""
    own = urlsplit(address)

    def let(route: Any) -> None:
        asked = urlsplit(route.request.url)
        if asked.scheme in ("data", "blob") or (asked.scheme, asked.netloc) == (own.scheme, own.netloc):
            route.continue_()
        else:
            opened.outside.append(route.request.url)
            route.abort()

    context.route("**/*", let)
    page = opened.page
    page.on("console", lambda said: opened.errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: opened.errors.append(str(error)))
    page.on("websocket", lambda socket: opened.outside.append(socket.url))


@contextmanager
def launch_browser():
    """One browser, in a fresh profile; where there is none, tests skip, but not with CI set."""
    reason = _why_not()
    if reason:
        if os.environ.get("CI"):
            raise RuntimeError(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="browser-") as temporary, sync_playwright() as playwright:
        environment = {**os.environ, "TMPDIR": temporary}  # the profile is made there, and goes with it
        chromium = playwright.chromium.launch(
            executable_path=executable_or_none(), args=list(FLAGS), env=environment, timeout=PATIENCE
        )
        try:
            yield Browser(chromium)
        finally:
            chromium.close()


def _why_not() -> str:
    missing = [] if executable_or_none() else ["browser (Debian: apt-get install chromium-headless-shell)"]
    missing += [] if AXE.exists() else ["axe-core (npm)"]
    return f"there is no {' and no '.join(missing)}: `make test` as root installs it" if missing else ""


@cache
def _axe() -> str:
    return AXE.read_text(encoding="utf-8") + ";0"  # nothing to hand back

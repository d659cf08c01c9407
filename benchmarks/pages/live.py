"""How far the live page is behind the journal: what a browser shows, beside when each round was committed."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tertulia.corpus import Corpus
from tertulia.runs.driver import finish
from tertulia.runs.one_machine import begin
from tertulia.runs.settings import RunSettings
from tertulia.view.pages.live import live_page, page_of
from tertulia.view.watch import monitor

_NOTE = """() => {
  const shown = window.shown = {}, number = () => document.getElementById('round').textContent.split(' ')[1];
  const look = () => { shown[number()] = shown[number()] || Date.now(); };
  new MutationObserver(look).observe(document.getElementById('head'), {childList: true, subtree: true});
}"""


def measure_live(browser: Any, parties: Mapping[str, Corpus], directory: Path, rounds: int) -> dict[str, Any]:
    """Run a federation beside its page; a round's lag is from its commit until the page shows it, or a later one."""
    method = {"name": "consensus", "topics": 20, "rounds": rounds, "sweeps": 20, "start_sweeps": 20}
    run = begin(RunSettings(directory=str(directory), method=method, heldout=0.1, workers=2), dict(parties))
    committed: dict[int, float] = {}

    def observe(kind: str, facts: Mapping[str, Any]) -> None:
        if kind == "round":
            committed[int(facts["round"])] = 1000 * time.time()

    with live_page(monitor(directory), "0") as address:
        opened = browser.open(address)
        opened.page.evaluate(_NOTE)
        worker = threading.Thread(target=finish, args=(run, None, observe))
        worker.start()
        while worker.is_alive():
            opened.page.wait_for_timeout(100)  # lets the browser's events in
        opened.page.get_by_text(f"round {rounds + 1} of").wait_for()
        shown = {int(n): float(at) for n, at in opened.page.evaluate("() => window.shown").items()}
        serious = opened.serious()
    lags = [min(at for n, at in shown.items() if n >= number) - when for number, when in committed.items()]
    return {
        "live_lag_ms": round(max(lags)),
        "live_lag_median_ms": round(statistics.median(lags)),
        "live_kb": round(len(page_of("{}").encode()) / 1024, 1),
        "serious": len(serious),
        "outside": len(opened.outside),
    }

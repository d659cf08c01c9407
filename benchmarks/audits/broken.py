"""Protections that are broken on purpose (`tests/helpers/broken.py`): how many of them audits catch."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from benchmarks.audits.cells import cell, helper


def broken(quick: bool) -> dict[str, Any]:
    """Return `{"broken_caught": [caught, total]}`, and the false alarms on sound protections."""
    variants = helper("broken")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        caught = {name: cell(f"broken, {name}", partial(variants.is_caught, name)) for name in variants.BROKEN}
        clean = {} if quick else {
            name: cell(f"broken, {name}, sound", partial(variants.is_clean, name)) for name in variants.BROKEN
        }  # fmt: skip
    missed = [name for name, found in caught.items() if not found]
    result: dict[str, Any] = {"broken_caught": [len(caught) - len(missed), len(caught)], "broken_missed": missed}
    return result if quick else {**result, "false_alarms": [name for name, found in clean.items() if not found]}

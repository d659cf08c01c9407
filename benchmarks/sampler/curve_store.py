"""The store of curves: this machine's, in `benchmarks/out`, and those of peers, published with the results.

tomotopy takes half an hour for a thousand topics. A peer's scores with a seed are the same everywhere, but its seconds
depend on the processor: a published curve replaces a training only on the same kind of processor, or where no peer may
be trained at all. `python -m benchmarks.sampler.curve_store` publishes the peers' curves of this machine.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

from benchmarks.common import OUT, say

_OWN = OUT / "sampler" / "curves"
_PUBLISHED = Path(__file__).parents[1] / "results" / "sampler_curves.jsonl"
_DIGITS = 6  # of the numbers that are published
Curve = dict[str, Any]  # the points of a training, its memory, the machine's load


def processor() -> str:
    """Name the processor of this machine."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def find_or_none(name: str, *, anywhere: bool = False) -> Curve | None:
    """Find the curve of a training: of this machine, of another like it or, with `anywhere`, of any."""
    path = _OWN / f"{name}.json"
    if path.exists():
        found: Curve = json.loads(path.read_text())
        return found
    known = _published().get(name)
    return known if known and (anywhere or known["processor"] == processor()) else None


def keep(name: str, found: Curve) -> None:
    """Store a curve of this machine."""
    _OWN.mkdir(parents=True, exist_ok=True)
    (_OWN / f"{name}.json").write_text(json.dumps(found))


def _published() -> dict[str, Curve]:
    lines = _PUBLISHED.read_text().splitlines() if _PUBLISHED.exists() else []
    return {line["name"]: line for line in map(json.loads, lines)}


def _round(x: Any) -> Any:
    return float(f"{x:.{_DIGITS}g}") if isinstance(x, float) else x


def main() -> None:
    """Publish the peers' curves of this machine; they replace those of other machines."""
    lines = _published()
    for path in sorted(_OWN.glob("*.json")):
        if "-tertulia" in path.stem:
            continue  # our code changes, and ours is soon trained
        found = json.loads(path.read_text())
        curve = [{key: _round(value) for key, value in point.items()} for point in found["curve"]]
        facts = {key: _round(value) for key, value in found.items() if key != "curve"}
        lines[path.stem] = {"name": path.stem, "processor": processor(), **facts, "curve": curve}
    _PUBLISHED.write_text("".join(json.dumps(lines[name]) + "\n" for name in sorted(lines)))
    say(f"{len(lines)} curves are in {_PUBLISHED.name}")


if __name__ == "__main__":
    main()

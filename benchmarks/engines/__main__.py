"""The same runs on every engine: whether they end alike, how fast they exchange, what kills do. `--parts` chooses.

identical  `identical`: five methods, bit for bit as on `local`
rates      `rounds_per_s`, `vs_local`, `start_s`: tiny, 1 MB and 20 MB each way
bytes      `bytes_over_dense`, `wire_over_message`: what travels, against dense float32
crash      `crash`: kills, aimed and at random; right ends of all trials
recovery   `recovery_s`: what a killed party costs a round
many       `parties_50`: fifty parties at once
soak       `soak`: a link that is idle for an hour (`--quick`: a minute)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common import run_parts
from benchmarks.engines import bytes as wire_bytes
from benchmarks.engines import network
from benchmarks.engines.crash import crash
from benchmarks.engines.identical import identical
from benchmarks.engines.rates import rates
from tertulia.federation.engines.base import ENGINES

PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "identical": lambda quick: {"identical": identical(list(ENGINES), quick)},
    "rates": lambda quick: rates(list(ENGINES), quick),
    "bytes": wire_bytes.run,
    "crash": lambda quick: {"crash": crash(list(ENGINES), quick)},
    "recovery": lambda _: {"recovery_s": network.recovery(list(ENGINES))},
    "many": lambda quick: {"parties_50": network.parties_50(quick)},
    "soak": lambda quick: {"soak": network.soak(1 if quick else 60)},
}


if __name__ == "__main__":
    run_parts("engines", "engines beside each other", PARTS)

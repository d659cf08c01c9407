"""The same runs on every engine: equal results, speed of exchange, recovery from kills. `--parts` chooses.

identical  `identical`: five methods, bit for bit as on `local`; in NVIDIA FLARE, as their copies without it
rates      `rounds_per_s`, `vs_local`, `start_s`: tiny, 1 MB and 20 MB each way
bytes      `bytes_over_dense`, `wire_over_message`: bytes on the wire, relative to dense float32
crash      `crash`: kills, at fault points and at random, of a toy and of Consensus; correct results of all trials
           (`--quick`: ten trials for each engine, about a quarter of an hour)
recovery   `recovery_s`: seconds that a killed party adds to a round
scaling    `ray_scaling`, `ray_cost`: Consensus and FedLDA on 1, 2, 4 actors, and on three nodes of this machine
nodes      `ray_nodes`: one of three nodes killed, or the driver killed and resumed; correct results of all trials
many       `parties_50`: fifty parties at once
continue   `continue`: quarter after quarter from the last model, against training from scratch
poison     `poison`: perplexity with one poisoned party of five, by defence
soak       `soak`: a link that is idle for an hour; `long_step`: a step of ten minutes (`--quick`: one, and half of one)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common import run_parts, say
from benchmarks.engines import bytes as wire_bytes
from benchmarks.engines import cluster, continuation, network
from benchmarks.engines.crash import crash, missing_or_none
from benchmarks.engines.identical import identical
from benchmarks.engines.poison import poison
from benchmarks.engines.rates import rates
from tertulia.federation.engines.base import APART, ENGINES


def _with_nvflare(found: dict[str, dict[str, bool]], quick: bool) -> dict[str, dict[str, bool]]:
    """Add the results of jobs in FLARE, which carries no simulations."""
    if (missing := missing_or_none("nvflare")) is not None:
        say(f"nvflare: left out ({missing})")
        return found
    from benchmarks.engines import nvflare

    jobs = nvflare.identical(quick)
    return {method: {**engines, "nvflare": jobs[method]} for method, engines in found.items()}


PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "identical": lambda quick: {"identical": _with_nvflare(identical(list(ENGINES), quick), quick)},
    "rates": lambda quick: rates(list(ENGINES), quick),
    "bytes": wire_bytes.run,
    "crash": lambda quick: {"crash": crash([*ENGINES, *APART], quick)},
    "recovery": lambda _: {"recovery_s": network.recovery(list(ENGINES))},
    "scaling": cluster.scaling,
    "nodes": lambda quick: {"ray_nodes": cluster.nodes_killed(quick)},
    "many": lambda quick: {"parties_50": network.parties_50(quick)},
    "continue": continuation.run,
    "poison": poison,
    "soak": lambda quick: {
        "soak": network.soak(1 if quick else 60),
        "long_step": network.long_step(0.5 if quick else 10),
    },
}


if __name__ == "__main__":
    run_parts("engines", "engines beside each other", PARTS)

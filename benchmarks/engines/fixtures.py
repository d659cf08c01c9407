"""The tests' helpers for runs that are prepared, killed and compared; benchmarks repeat them more often than tests."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
if (_TESTS := str(_ROOT / "tests")) not in sys.path:
    sys.path.append(_TESTS)
# Processes that are started find the helpers, too: among them is what aims kills (`sitecustomize`).
os.environ["PYTHONPATH"] = os.pathsep.join([_TESTS, str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])

from helpers import masked_toys, steering  # type: ignore[import-not-found]  # noqa: E402
from helpers.poisons import (  # type: ignore[import-not-found]  # noqa: E402
    Poisoned,
    copied_topics,
    mixed_topics,
    no_less_than_nothing,
    random_topics,
    scaled,
)
from helpers.processes import Nursery, kill_a_party, party_pids  # type: ignore[import-not-found]  # noqa: E402
from helpers.ray_nodes import Nodes, parent  # type: ignore[import-not-found]  # noqa: E402
from helpers.runs import change, outcome, prepared  # type: ignore[import-not-found]  # noqa: E402

__all__ = [
    "Nodes", "Nursery", "Poisoned", "change", "copied_topics", "kill_a_party", "masked_toys", "mixed_topics",
    "no_less_than_nothing", "outcome", "parent", "party_pids", "prepared", "random_topics", "scaled", "steering",
    "texts",
]  # fmt: skip


def texts(seed: int, documents: int) -> list[str]:
    """Generate documents over sixty words, half of which are rare."""
    draw = random.Random(seed)
    words = [f"w{i}" for i in range(60)]
    weights = [1.0 / (1 + (i + 7 * seed) % 30) for i in range(60)]
    made: list[str] = [" ".join(draw.choices(words, weights, k=draw.randint(8, 20))) for _ in range(documents)]
    return made

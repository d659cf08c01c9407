"""What a new user waits for and meets, from a fresh clone to the first topics. `--parts` chooses.

cold        `cold_first_fit_s, cold_first_consensus_s, cold_transform_s`: CPU seconds of a new process with no compiled
            kernels, imports included; `cold_transform_s` is what the first `transform` adds to the first `fit`
            `warm_...`: the same once kernels are on disk
import      `import_s`: CPU seconds of `import tertulia` and of a first name, `tt.LDA`
estimators  `estimator_checks`: scikit-learn's own, on counts: how many passed, and the names of those that did not
install     `install_s, install_mb`: the core into a new environment, from a clone of the last commit;
            `commands_to_first_topic`: what must be typed there until topics are shown;
            `demo_warm_s`: CPU seconds of the demo after that
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common import run_parts
from benchmarks.experience import cold, estimators, installing

PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "cold": cold.run,
    "import": cold.run_import,
    "estimators": estimators.run,
    "install": installing.run,
}


if __name__ == "__main__":
    run_parts("experience", "what a new user waits for and meets", PARTS)

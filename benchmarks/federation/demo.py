"""The demo with several seeds: what its eight teams gain, and how the shared model compares with pooled ones.

A seed deals the documents out to the teams and starts all training. `gain` is the share by which a team's perplexity on
its own held-out documents falls; `over_pooled` and `over_converged` are how much higher the shared model's perplexity
of everybody's documents is than that of a pooled model with as many sweeps, and of one that was trained until it had
settled. `--quick` is seed 0 alone.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common import finish, parser, say
from tertulia.cli.demo import CONVERGED, EVERYBODY, compare_models, train_demo
from tertulia.corpus.demo_corpus import demo_teams


def demo(seed: int) -> dict[str, Any]:
    """Return the demo's figures with one seed."""
    teams = demo_teams(seed=seed)
    together = train_demo(teams, seed=seed)
    found = compare_models(teams, together, seed)
    scores = found["perplexity"]
    gains = [1 - scores["federated"][team] / scores["alone"][team] for team in teams]
    everybody = {name: own[EVERYBODY] for name, own in scores.items()}
    result = {
        "seed": seed,
        "perplexity": {name: round(value, 1) for name, value in everybody.items()},
        "sweeps": found["sweeps"],
        "gain": [round(min(gains), 3), round(max(gains), 3)],
        "over_pooled": round(everybody["federated"] / everybody["pooled"] - 1, 4),
        "over_converged": round(everybody["federated"] / everybody[CONVERGED] - 1, 4),
    }
    say(f"{result}")
    return result


def main() -> None:
    """Run the benchmark."""
    command = parser("The demo with several seeds")
    command.add_argument("--seeds", help="a list of seeds; 0,1,2, or with --quick 0")
    given = command.parse_args()
    seeds = [int(seed) for seed in (given.seeds or ("0" if given.quick else "0,1,2")).split(",")]
    finish({"benchmark": "demo", "runs": [demo(seed) for seed in seeds]})


if __name__ == "__main__":
    main()

"""Outputs of commands with `--json`: the only place where their keys are declared.

Keys are stable: within a major version none is renamed, removed or given another type; new ones may be added.
docs/commands.md and docs/commands.schema.json are generated from these classes.
"""

from __future__ import annotations

from typing import Any

from tertulia.cli.outputs import privacy, results
from tertulia.cli.outputs.base import Output

OUTPUTS: dict[str, type[Output]] = {
    "train": results.TrainedHere,
    "run": results.Trained,
    "resume": results.Trained,
    "demo": results.Demo,
    "scenarios": results.Scenarios,
    "compare": results.Comparison,
    "compare --check": privacy.Check,
    "check": privacy.Check,
    "disclosures": privacy.Disclosures,
    "privacy": privacy.Privacy,
    "audit": privacy.Audit,
    "topics": results.TopicsOutput,
    "drift": results.Drift,
    "transform": results.Transformed,
    "evaluate": results.Evaluation,
    "doctor": results.Doctor,
    "status": results.Status,
    "upgrade": results.Upgraded,
    "warm": results.Warm,
    "ledger show": privacy.LedgerOutput,
}


def schemas() -> dict[str, Any]:
    """Return a JSON Schema for each command, by its name."""
    return {name: output.model_json_schema() for name, output in OUTPUTS.items()}

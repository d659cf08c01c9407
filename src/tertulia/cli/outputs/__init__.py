"""What `--json` prints, command by command: the only place where these keys are declared.

Keys are stable: within a major version none is renamed, removed or given another type; new ones may come. The page
docs/commands.md and the schemas in docs/commands.schema.json are made from here.
"""

from __future__ import annotations

from typing import Any

from tertulia.cli.outputs import privacy, results
from tertulia.cli.outputs.base import Output

OUTPUTS: dict[str, type[Output]] = {
    "run": results.Trained,
    "resume": results.Trained,
    "demo": results.Demo,
    "scenarios": results.Scenarios,
    "compare": results.Comparison,
    "compare --check": privacy.Check,
    "check": privacy.Check,
    "disclosures": privacy.Disclosures,
    "privacy": privacy.Privacy,
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
    """A JSON Schema for each command, by its name."""
    return {name: output.model_json_schema() for name, output in OUTPUTS.items()}

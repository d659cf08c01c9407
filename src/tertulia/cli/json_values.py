"""Values for `--json`, made from table rows: keys without spaces, numbers as numbers, null for missing numbers.

Tables for people print "infinite (non-private)"; here an epsilon without a bound is null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tertulia.view.verdicts import Summary

_EPSILONS = {
    "real_epsilon",
    "single_reply_epsilon",
    "audited_lower_bound",
    "spent_so_far",
    "after_it",
    "this_run",
    "budget",
    "left",
}
_NAMES = {
    "would_leave_though_in_one_document_only": "words_of_one_document",
    "rows": "summary",
    "before_packing": "bytes_before_packing",
}
_TRUTHS = {"yes": True, "no": False}


def rows_of(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert the rows of a table.

    >>> rows_of([{"real epsilon": "infinite (non-private)", "claimed epsilon": "8 (sec. 3, delta 1e-06)"}])
    [{'real_epsilon': None, 'claimed_epsilon': 8.0, 'claimed_in': 'sec. 3', 'claimed_delta': 1e-06}]
    """
    return [{key: value for name, cell in row.items() for key, value in _cells(name, cell)} for row in rows]


def _cells(name: str, value: Any) -> list[tuple[str, Any]]:
    key = name.replace(" ", "_")
    key = _NAMES.get(key, key)
    if key == "claimed_epsilon":
        number, _, rest = str(value).partition(" ")
        source, _, delta = rest.strip("()").rpartition(", delta ")
        return [(key, epsilon_of(number)), ("claimed_in", source or None), ("claimed_delta", epsilon_of(delta))]
    if key in _EPSILONS:
        return [(key, epsilon_of(value))]
    if key == "bytes":
        return [(key, value if isinstance(value, int) else None)]
    if key == "shape":
        return [(key, [int(n) for n in value.split("x")] if value else None)]
    if key in ("change", "charged"):
        return [(key, _TRUTHS[value])]
    if key in ("remarks", "reports"):
        return [(key, [remark for remark in value.split("; ") if remark])]
    return [(key, value)]


def epsilon_of(text: Any) -> float | None:
    """Parse an epsilon; return None if there is no bound, or none was set.

    >>> epsilon_of("8"), epsilon_of("infinite (non-private)"), epsilon_of("nothing more")
    (8.0, None, 0.0)
    """
    if str(text) == "nothing more":
        return 0.0
    try:
        return float(text)
    except ValueError:
        return None


def dry_run_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the report of `check`; `terms` and `train` hold settings as a config file writes them."""
    plain = {key: value for key, value in report.items() if isinstance(value, Mapping) or key == "remarks"}
    return {key: plain[key] if key in plain else rows_of(value) for key, value in report.items()}


def verdicts_of(pages: Sequence[Summary]) -> list[dict[str, Any]]:
    """Return the verdict of each party's page, one row each."""
    shown = ("party", "verdict", "rare_words", "refused", "withdrawn")
    return [{name: getattr(page, name) for name in shown} for page in pages]


def comparison_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the tables of `compare`; columns named for parties become one object."""
    parties = found["parties"]

    def nested(row: Mapping[str, Any], name: str) -> dict[str, Any]:
        rest = {key: value for key, value in row.items() if key not in parties}
        return {**rest, name: {party: row[party] for party in parties}}

    epsilon = found["epsilon"]
    return {
        **found,
        "epsilon": epsilon if isinstance(epsilon, int | float) else None,
        "prevalence": rows_of(nested(row, "shares") | {"words": row["words"].split()} for row in found["prevalence"]),
        "similarity": [nested(row, "similarity") for row in found["similarity"]],
    }

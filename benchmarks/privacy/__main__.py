"""`python -m benchmarks.privacy [--quick] [--parts ...]`: see `benchmarks/results/privacy.md`.

Finished cells are cached in benchmarks/out, so a stopped run continues.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common import run_parts
from benchmarks.privacy import documents


def dpsgd(quick: bool) -> dict[str, Any]:
    """Measure ProdLDA under DP-SGD; it needs the extra `neural`."""
    from benchmarks.privacy.dpsgd import measure, measure_beside

    return {"dpsgd": measure(quick), "dpsgd_beside": measure_beside(quick)}


def pctd(quick: bool) -> dict[str, Any]:
    """Measure PC-TD's mode `sound`."""
    from benchmarks.privacy.pctd import measure_pctd

    return {"pctd": measure_pctd(quick)}


def withdrawal(quick: bool) -> dict[str, Any]:
    """Measure how far topics move if documents are withdrawn."""
    from benchmarks.privacy.withdrawal import measure

    return measure(quick)


if __name__ == "__main__":
    run_parts(
        "privacy",
        __doc__ or "",
        {
            "doc": documents.doc,
            "token": documents.token,
            "verdict": documents.verdict,
            "dpsgd": dpsgd,
            "pctd": pctd,
            "withdrawal": withdrawal,
        },
    )

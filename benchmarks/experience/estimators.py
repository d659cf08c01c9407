"""How many of scikit-learn's own checks of estimators `tt.LDA` passes, on counts."""

from __future__ import annotations

import warnings
from typing import Any


def run(quick: bool) -> dict[str, Any]:
    """Run all checks, also if `quick`; name those that did not pass."""
    from sklearn.utils.estimator_checks import check_estimator

    import tertulia as tt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke them
        found = check_estimator(tt.LDA(topics=3, sweeps=5), on_fail=None, on_skip=None)
    rest = {check["check_name"]: check["status"] for check in found if check["status"] != "passed"}
    return {"estimator_checks": {"passed": len(found) - len(rest), "excluded": rest}}

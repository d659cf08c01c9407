"""Two classes told apart by topic features: logistic regression, and how well it does on documents it has not seen.

>>> features = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
>>> model = fit(features, [True, True, False, False])
>>> model.scores(features, [True, True, False, False]).auc
1.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

from tertulia._arrays import F64, Array, Bool
from tertulia.errors import InputError


@dataclass(frozen=True)
class Scores:
    """How well predicted probabilities tell positives from negatives; the first three at a threshold of 1/2."""

    precision: float
    recall: float
    f1: float
    auc: float  # the probability that a positive ranks above a negative

    def to_dict(self) -> dict[str, float]:
        """All scores by name."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class LogisticRegression:
    """Probabilities of the positive class from standardised features."""

    centre: F64  # [n]
    scale: F64  # [n]
    weights: F64  # [n]
    bias: float

    def predict(self, features: Array) -> F64:
        """The probability [D] that each document, given by its features [D, n], is positive."""
        features = np.asarray(features, dtype=np.float64)
        if features.ndim != 2 or features.shape[1] != len(self.weights):
            raise InputError(
                f"features have shape {features.shape}: the model was fitted to {len(self.weights)} columns"
            )
        return np.asarray(expit((features - self.centre) / self.scale @ self.weights + self.bias))

    def scores(self, features: Array, labels: Sequence[bool] | Array) -> Scores:
        """Precision, recall, F1 and the area under the ROC curve on labelled documents."""
        return scores(self.predict(features), labels)


def fit(
    features: Array, labels: Sequence[bool] | Array, penalty: float = 1.0, iterations: int = 100
) -> LogisticRegression:
    """Fit by L-BFGS, at most so many iterations; `penalty` times half the squared weights keeps them finite."""
    x, y = np.asarray(features, dtype=np.float64), _labels(labels)
    if x.ndim != 2 or len(x) != len(y):
        raise InputError(f"features of shape {x.shape} do not fit {len(y)} labels: give a row a label")
    if not np.all(np.isfinite(x)):
        raise InputError("features hold infinite or missing numbers: fill or drop them first")
    centre, scale = x.mean(axis=0), x.std(axis=0)
    scale[scale == 0] = 1.0  # a constant column tells nothing and does no harm
    x, sign = (x - centre) / scale, np.where(y, 1.0, -1.0)

    def loss(weights: F64) -> tuple[float, F64]:
        margin = sign * (x @ weights[:-1] + weights[-1])
        pull = -sign * expit(-margin)
        shrunk = np.append(penalty * weights[:-1], 0.0)  # the bias is free
        value = np.logaddexp(0, -margin).sum() + 0.5 * float(weights @ shrunk)
        return float(value), np.append(x.T @ pull, pull.sum()) + shrunk

    found = minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": iterations}).x
    return LogisticRegression(centre, scale, found[:-1], float(found[-1]))


def scores(probability: Array, labels: Sequence[bool] | Array) -> Scores:
    """Score predicted probabilities; equal ones share their ranks.

    >>> scores(np.array([0.9, 0.4, 0.6, 0.1]), [True, True, False, False])
    Scores(precision=0.5, recall=0.5, f1=0.5, auc=0.75)
    """
    probability, y = np.asarray(probability, dtype=np.float64), _labels(labels)
    if probability.shape != y.shape:
        raise InputError(f"{probability.shape} probabilities do not fit {len(y)} labels")
    said = probability > 0.5
    hits = float((said & y).sum())
    precision, recall = hits / max(said.sum(), 1), hits / y.sum()
    positives, negatives = y.sum(), (~y).sum()
    above = rankdata(probability)[y].sum() - positives * (positives + 1) / 2  # Mann and Whitney's U
    f1 = 2 * hits / (said.sum() + positives)
    return Scores(float(precision), float(recall), float(f1), float(above / (positives * negatives)))


def _labels(labels: Sequence[bool] | Array) -> Bool:
    y = np.asarray(labels)
    if y.dtype != np.bool_ or y.ndim != 1:
        raise InputError(f"labels are {y.dtype} of shape {y.shape}: give True or False for each document")
    if y.all() or not y.any():
        raise InputError(f"all {len(y)} labels are {bool(y.any())}: both classes are needed")
    return y

"""Logistic regression on topic features, against its own optimality conditions and hand-made scores."""

import numpy as np
import pytest
from scipy.special import expit

from tertulia.applications.classification import fit, scores
from tertulia.errors import InputError

rng = np.random.default_rng(0)
X = rng.dirichlet(np.full(4, 0.3), size=600)
Y = rng.random(600) < expit(6 * X[:, 0] - 5 * X[:, 1])


def test_the_fit_is_a_stationary_point():
    model = fit(X, Y, penalty=0.5)
    residual = Y - model.predict(X)
    assert residual.sum() == pytest.approx(0, abs=0.05)
    assert ((X - model.centre) / model.scale).T @ residual == pytest.approx(0.5 * model.weights, abs=0.05)


def test_it_learns_what_can_be_learned():
    half = 300
    model = fit(X[:half], Y[:half])
    best = scores(expit(6 * X[half:, 0] - 5 * X[half:, 1]), Y[half:]).auc
    assert model.scores(X[half:], Y[half:]).auc > best - 0.03


def test_scores_by_hand():
    found = scores(np.array([0.9, 0.8, 0.7, 0.2, 0.6, 0.1]), [True, True, False, True, False, False])
    assert found.to_dict() == pytest.approx({"precision": 0.5, "recall": 2 / 3, "f1": 4 / 7, "auc": 7 / 9})
    assert scores(np.full(4, 0.3), [True, False, True, False]).auc == 0.5
    assert scores(np.full(2, 0.3), [True, False]).precision == 0.0


def test_a_constant_column_does_no_harm():
    model = fit(np.column_stack([X, np.ones(600)]), Y)
    assert model.weights[-1] == 0
    assert model.predict(np.column_stack([X, np.ones(600)])) == pytest.approx(fit(X, Y).predict(X), abs=1e-3)


@pytest.mark.parametrize(
    ("features", "labels", "says"),
    [
        (X, Y[:-1], "do not fit 599 labels"),
        (X, np.ones(600, dtype=bool), "both classes are needed"),
        (X, Y.astype(int), "give True or False"),
        (np.full((600, 2), np.nan), Y, "infinite or missing"),
    ],
)
def test_wrong_input(features, labels, says):
    with pytest.raises(InputError, match=says):
        fit(features, labels)


def test_wrong_features_and_probabilities():
    with pytest.raises(InputError, match="fitted to 4 columns"):
        fit(X, Y).predict(X[:, :3])
    with pytest.raises(InputError, match="do not fit 600 labels"):
        scores(np.zeros(3), Y)

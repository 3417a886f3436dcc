"""Contributions by position of linear systems whose filters cancel, against exact arithmetic."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from genkern import LDS, FisherScore, ModelLogOdds, explain
from genkern.features.positions import as_vector
from genkern.models.class_mixture import ClassMixture
from tests.oracles_exact import DIGITS, exact_log_prob
from tests.test_affinity_unstable import hidden

CASES = {
    "unstable": hidden(3.0, 1.0),
    "hardly seen": hidden(3.0, 1e-2),
    "all but unknown": LDS([[1.0]], [[1.0]], 0.1, 1.0, [0.0], 1e12),
    "all but unknown and fast": LDS([[1.7]], [[1.0]], 0.1, 1.0, [0.0], 1e14),
    "two of which one sum is seen": LDS(np.diag([1.5, 1.5]), [[1.0, 1.0]], 0.1, 0.1, [0.0, 0.0], 1.0),
}
X = np.random.default_rng(0).standard_normal((9, 1))


def positions_of(model: LDS, x: Any) -> Any:
    (found,) = model.position_statistics(model.pack([x]))
    return found


@pytest.mark.parametrize("case", CASES)
def test_log_densities_are_those_of_exact_beginnings(case: str) -> None:
    model = CASES[case]
    beginnings = [exact_log_prob(model, X[:k]) for k in range(1, len(X) + 1)]
    found = positions_of(model, X).log_prob
    np.testing.assert_allclose(found, np.diff(beginnings, prepend=0.0), rtol=0, atol=1e-8)


def exact_slope(model: LDS, name: str, step: float, length: int) -> float:
    """Derivative by the first entry of a parameter, from exact densities on both sides."""
    sides = []
    for sign in (1.0, -1.0):
        fields = {field: np.array(getattr(model, field), float) for field in LDS._fields}
        fields[name].reshape(-1)[0] += sign * step
        with localcontext() as context:
            context.prec = DIGITS
            sides.append(exact_log_prob(LDS(**fields), X[:length], Decimal))
    return (sides[0] - sides[1]) / (2.0 * step)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["transition", "observation", "offset"])
def test_derivatives_are_those_of_exact_beginnings(case: str, name: str) -> None:
    model = CASES[case]
    slopes = [exact_slope(model, name, 1e-5, k) for k in range(1, len(X) + 1)]
    found = positions_of(model, X)[name].reshape(len(X), -1)[:, 0]
    scale = 1.0 + np.abs(slopes).max()
    np.testing.assert_allclose(found, np.diff(slopes, prepend=0.0), rtol=0, atol=3e-7 * scale)


@pytest.mark.parametrize("case", CASES)
def test_contributions_leave_nothing_to_the_rest(case: str) -> None:
    embedding = FisherScore(CASES[case], "identity").fit([X])
    terms = embedding.position_features([X]).toarray()
    gap = np.abs(as_vector(embedding.transform([X])) - terms.sum(axis=0))
    assert (gap <= 1e-8 * (1e-3 + np.abs(terms).sum(axis=0))).all()


def test_what_is_lost_is_refused() -> None:
    model = hidden(3.0, 1e-6)
    long = np.random.default_rng(1).standard_normal((25, 1))
    model.log_prob([long])  # known by a filter on square roots, of which there are no derivatives
    odds = ModelLogOdds(ClassMixture({0: model, 1: hidden(0.5, 1.0)})).fit([long, long], [0, 1])
    with pytest.raises(ValueError, match=r"LDS: object 0: states that no observation tells apart"):
        odds.position_features([long])


def test_explain_has_no_rest() -> None:
    rng = np.random.default_rng(3)
    series = [np.cumsum(rng.standard_normal((12, 1)), axis=0) for _ in range(12)]
    y = np.arange(12) % 2
    system = CASES["all but unknown"]
    pipeline = make_pipeline(FisherScore(system, "identity"), LogisticRegression()).fit(series, y)
    found = explain(pipeline, series[0])
    assert abs(found.rest) <= 1e-8 * (1.0 + np.abs(found.positions).sum())

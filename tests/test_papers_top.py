"""The experiments of the TOP paper: their starts, weights and variants, and their quick runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal

from genkern import HMM, Categorical, ClassMixture, FisherScore, Mixture, TopScore
from genkern.datasets import two_mixtures
from genkern.papers import protein_classes, protein_variants, run, top_mixtures

DATA = Path(os.environ.get("GENKERN_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))


def density(model: Mixture, points: Any) -> Any:
    """Return log-densities by SciPy's."""
    parts = zip(model.weights, model.components.mean, model.components.cov)
    return logsumexp([np.log(w) + multivariate_normal(m, v).logpdf(points) for w, m, v in parts], axis=0)


# --- mixtures of Gaussians


def test_taylor_weights_recover_the_true_odds_to_first_order() -> None:
    truth = dict(zip(("first", "second"), two_mixtures(4)))
    rng = np.random.default_rng(0)
    points = np.concatenate([*truth["first"].sample(20, rng=1), *truth["second"].sample(20, rng=2)])
    exact = density(truth["second"], points) - density(truth["first"], points)
    rest = []
    for size in (1e-2, 1e-3):
        models = {}
        for label, model in truth.items():
            moved = model.with_parameters(
                model.parameters("natural") * (1.0 + size * rng.standard_normal(len(model.parameters("natural")))),
                "natural",
            )
            models[label] = Mixture(moved.weights[::-1], moved.components[::-1])  # the narrow component first
        model = ClassMixture(models)
        features = TopScore(model, coordinates="natural").fit(points).transform(points)
        rest.append(np.abs(features @ top_mixtures._taylor_weights(model, truth) - exact).max())
        assert rest[-1] < 0.1 * np.abs(features[:, 0] - exact).max()
    assert rest[1] < 0.05 * rest[0]  # of second order


def test_starts_of_mixtures() -> None:
    points = np.random.default_rng(0).normal(size=(9, 3))
    start = top_mixtures._common_start(points)
    np.testing.assert_allclose(start.components.mean, np.tile(points.mean(axis=0), (2, 1)), rtol=1e-12)
    np.testing.assert_allclose(start.components.cov, points.var(axis=0).mean() * np.array([2.0, 0.5]), rtol=1e-12)
    first = np.clip(0.5 + 0.1 * np.random.default_rng(1).standard_normal(9), 0.01, 0.99)
    soft = top_mixtures._soft_start(points, 0.1, np.random.default_rng(1))
    for k, shares in enumerate((first, 1.0 - first)):
        mean = sum(s * x for s, x in zip(shares, points)) / shares.sum()
        variance = sum(s * ((x - mean) ** 2).sum() for s, x in zip(shares, points)) / shares.sum() / 3
        np.testing.assert_allclose(soft.components.mean[k], mean, rtol=1e-12)
        np.testing.assert_allclose(soft.components.cov[k], variance, rtol=1e-12)
        np.testing.assert_allclose(soft.weights[k], shares.mean(), rtol=1e-12)


def test_likelihood_of_points_is_that_of_their_classes() -> None:
    truth = dict(zip(("first", "second"), two_mixtures(3)))
    points, labels = np.random.default_rng(0).normal(size=(6, 3)), np.array(["first", "second"] * 3)
    by_hand = np.mean([density(truth[c], x) for c, x in zip(labels, points)])
    np.testing.assert_allclose(top_mixtures._likelihood(ClassMixture(truth), points, labels), by_hand, rtol=1e-12)


def test_quick_top_mixtures() -> None:
    report = run("top_mixtures", quick=True)
    errors = {row[0]: [float(cell.split()[0]) for cell in row[1:]] for row in report.tables[0].rows}
    assert all(2.0 < rate < 6.0 for rate in errors["OPT"])
    for name in ("P", "FK", "TOP"):
        assert errors[name][0] > 20.0 > 8.0 > errors[name][1] > errors["OPT"][1]  # 30 points are few, 240 enough
        assert errors["W*"][1] < errors[name][1]  # the true direction of the correction
    assert errors["TOP"][0] < errors["FK"][0]
    assert errors["TOP"][1] < errors["FK"][1]
    assert errors["TOP*"][0] < errors["FK*"][0] < 15.0
    assert [len(figure.axes) for figure in report.figures.values()] == [2, 4]


# --- protein classes


def protein_models() -> ClassMixture:
    """Return hidden Markov models of two classes, which end nearly always in their first state."""
    rng = np.random.default_rng(0)
    models = {
        c: HMM(
            rng.dirichlet(np.ones(3)),
            rng.dirichlet(np.ones(3), size=3),
            Categorical(rng.dirichlet(np.ones(4), size=3), alphabet="ABCD"),
            end=[1.0 - 2e-9, 1e-9, 1e-9],
        )
        for c in (0, 1)
    }
    return ClassMixture(models)


def words(count: int) -> list[str]:
    rng = np.random.default_rng(1)
    return ["".join(rng.choice(list("ABCD"), size)) for size in rng.integers(5, 40, count)]


def test_scores_at_temperature_one_are_fisher_scores() -> None:
    model, X = protein_models(), words(30)
    fisher = FisherScore(model, "identity", "ratio").fit(X).transform(X)
    top = TopScore(model, coordinates="ratio").fit(X).transform(X)
    count = (top.shape[1] - 1) // 2
    gated = protein_variants._gated(top, 1.0)
    np.testing.assert_allclose(gated[:, :count], fisher[:, 1 + count :], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(-gated[:, count:], fisher[:, 1 : 1 + count], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(protein_variants._gated(top, 1e12), top[:, 1:] / 2, rtol=1e-9, atol=1e-9)


def test_scores_of_rare_ends_follow_the_posterior() -> None:
    model, X = protein_models(), words(200)
    embedding = FisherScore(model, "identity", "ratio").fit(X)
    scores, names = embedding.transform(X), list(embedding.get_feature_names_out())
    odds = model.models[1].log_prob(X) - model.models[0].log_prob(X)
    ratio = [np.exp(m.log_prob(X)) for m in _ends(model.models[1])]
    np.testing.assert_allclose(
        scores[:, names.index("1.end[1]")], expit(odds) * (ratio[1] / ratio[0] - 1.0), rtol=1e-6, atol=1e-7
    )


def _ends(model: HMM) -> list[HMM]:
    """Return the model with each of its states as the only one in which it ends."""
    return [HMM(model.start, model.transitions, model.emissions, end=row) for row in np.eye(len(model.start))]


def test_superfamilies_are_kept_apart() -> None:
    rng = np.random.default_rng(0)
    families = [f"a.{k}" for k in rng.integers(12, size=100)]
    domains = [f"{family}:{i}" for i, family in enumerate(families)]
    for apart in (False, True):
        parts = protein_classes._divided(domains, families, "a", 3, apart)
        assert sorted(one for part in parts for one in part) == sorted(domains)
        shared = [{one.split(":")[0] for one in part} for part in parts]
        assert not apart or not (shared[0] & shared[1] or shared[1] & shared[2] or shared[0] & shared[2])
        assert [len(part) >= 25 for part in parts[:2]] == [True, True]
        assert len(parts[2]) >= 25
    assert [len(part) for part in protein_classes._divided(domains, families, "a", 3, False)] == [25, 25, 50]


def test_errors_with_both_thresholds() -> None:
    rng = np.random.default_rng(0)
    labels = [np.zeros(0), *(rng.integers(2, size=size) for size in (40, 60))]
    odds = [rng.normal(size=len(y)) + y for y in labels[1:]]
    found = protein_variants.errors(odds, labels)

    def rates(y: Any, values: Any, threshold: float) -> tuple[float, float]:
        return float(np.mean(values[y == 0] > threshold)), float(np.mean(values[y == 1] <= threshold))

    best = min(max(rates(labels[2], odds[1], t)) for t in odds[1])
    assert abs(found["paper"] - best) < 0.05
    thresholds = sorted(odds[0])
    gaps = [abs(np.subtract(*rates(labels[1], odds[0], t))) for t in thresholds]
    near = [sum(rates(labels[2], odds[1], t)) / 2 for t, gap in zip(thresholds, gaps) if gap <= min(gaps) + 0.06]
    assert min(near) <= found["nested"] <= max(near)


@pytest.mark.skipif(not (DATA / "scope40").exists(), reason="needs scope40 of the data, see GENKERN_DATA")
def test_quick_protein_classes() -> None:
    report = run("protein_classes", quick=True, data=DATA)
    means = {tuple(row[:2]): float(row[-1]) for row in report.tables[0].rows}
    for threshold in ("as the paper", "nested"):
        assert means[threshold, "TOP"] < means[threshold, "FK"] < 45.0
    variants = {row[0]: [float(cell) for cell in row[1:]] for row in report.tables[3].rows}
    softer = [variants[name][-1] for name in ("FK", "FK, temperature 3", "FK, temperature 10", "FK, temperature 100")]
    assert softer == sorted(softer)  # separation of the classes
    assert softer[-1] > 1.3 * softer[0]
    assert variants["FK, temperature 100"][-2] < variants["FK"][-2]
    training, test = ([float(cell.split()[0]) for cell in row[1:]] for row in report.tables[2].rows[:2])
    assert np.mean(training) < np.mean(test)  # the models were fitted to the training part
    assert [len(figure.axes) for figure in report.figures.values()] == [6, 6]

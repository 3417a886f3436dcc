"""Fits that are shared over the settings of a grid, and series that are embedded state by state."""

import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from genkern import (
    CategoricalEstimator,
    FisherScore,
    GaussianEstimator,
    HMMEstimator,
    LatentMean,
    LogisticMap,
    LogMap,
    Marginalized,
    PlugInClassifier,
    Posteriors,
    PowerMap,
    StateSpace,
    Store,
    TopScore,
)

RNG = np.random.default_rng(0)
X = ["".join(RNG.choice(list("ab"), 15, p=p)) for p in ([0.7, 0.3], [0.4, 0.6]) for _ in range(9)]
Y = np.repeat([0, 1], 9)


@pytest.fixture
def fits(monkeypatch):
    """Count fits of hidden Markov models."""
    count, plain = [], HMMEstimator.fit
    monkeypatch.setattr(HMMEstimator, "fit", lambda self, *args, **kw: count.append(1) or plain(self, *args, **kw))
    return count


def estimator():
    return HMMEstimator(2, max_iter=3, tol=0, random_state=0)


@pytest.mark.parametrize("make", [StateSpace, Marginalized])
@pytest.mark.parametrize("per_class", [False, True])
def test_a_grid_over_maps_fits_each_model_once(make, per_class, fits):
    grid = {"map__map": [None, PowerMap(0.3), PowerMap(0.5), LogMap(), LogisticMap()], "map__apply": ["sum", "time"]}

    def search(store):
        embedding = make(estimator(), per_class=per_class, store=store)
        steps = Pipeline([("map", embedding), ("learner", LogisticRegression())])
        return GridSearchCV(steps, grid, cv=3).fit(X, Y)

    models = 2 if per_class else 1
    apart = search(None)
    assert len(fits) == models * (3 * 10 + 1)
    fits.clear()
    shared = search(Store())
    assert len(fits) == models * (3 + 1)  # the folds and all objects
    np.testing.assert_array_equal(shared.cv_results_["mean_test_score"], apart.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(shared.predict_proba(X), apart.predict_proba(X))


def test_all_embeddings_and_the_plug_in_share_class_models(fits):
    store = Store()
    shared = [
        PlugInClassifier(estimator(), store=store).fit(X, Y),
        TopScore(estimator(), store=store).fit(X, Y),
        FisherScore(estimator(), per_class=True, store=store).fit(X, Y),
        StateSpace({0: estimator(), 1: estimator()}, store=store).fit(X, Y),
    ]
    assert len(fits) == 2
    assert all(one.model_ == PlugInClassifier(estimator()).fit(X, Y).model_ for one in shared)


def test_a_grid_over_a_latent_kernel_fits_each_model_once(fits):
    store = Store()
    found = [
        LatentMean(lam_x, 1.0)(Posteriors(estimator(), store=store, fit_on=label).fit_transform(X, y))
        for lam_x in (0.5, 1.0, 2.0)
        for label, y in ((None, None), (1, Y))
    ]
    assert len(fits) == 2
    np.testing.assert_array_equal(found[4], LatentMean(2.0, 1.0)(Posteriors(estimator()).fit_transform(X)))


def test_other_objects_orders_and_settings_are_other_fits(fits):
    store = Store()
    StateSpace(estimator(), store=store).fit(X)
    StateSpace(estimator(), store=store).fit(X[:-1])
    StateSpace(estimator(), store=store).fit(X[::-1])
    StateSpace(HMMEstimator(3, max_iter=3, tol=0, random_state=0), store=store).fit(X)
    StateSpace(HMMEstimator(2, CategoricalEstimator("abc"), max_iter=3, tol=0, random_state=0), store=store).fit(X)
    assert len(fits) == 5
    with pytest.raises(TypeError, match=r"StateSpace: 'store' must be a Store or None. Got str"):
        StateSpace(estimator(), store="folder").fit(X)


def series(d, gaps):
    rng = np.random.default_rng(d)
    found = [rng.normal(size=(n, d)).cumsum(axis=0) for n in (1, 7, 30, 2)]
    for x in found[1:]:
        x[rng.random(x.shape) < gaps] = np.nan
    return found


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("features", ["mean", "raw"])
@pytest.mark.parametrize("apply", ["sum", "time"])
@pytest.mark.parametrize("order", [1, 2])
def test_series_state_by_state_are_plain_loops(d, gaps, features, apply, order):
    X = series(d, gaps)
    model = HMMEstimator(2, GaussianEstimator("diagonal"), max_iter=3, tol=0, random_state=0).fit(X).model_
    found = Marginalized(model, order, features, apply=apply, map=LogisticMap()).fit_transform(X)
    mean, deviation = model.emissions.mean, np.sqrt(model.emissions.cov)
    mapped = LogisticMap().apply
    for x, row in zip(X, found):
        gamma = model.state_posteriors([x])
        weights = gamma if order == 1 else model.pair_posteriors([x])
        states = [(i,) for i in range(2)] if order == 1 else [(i, j) for i in range(2) for j in range(2)]
        terms = [[], []]
        for t in range(len(weights)):
            terms[0].append(weights[t])
            cells = []
            for column, pair in enumerate(states):
                for step, i in enumerate(pair):
                    # missing entries have their mean under the state: channels are independent in it
                    point = np.where(np.isnan(x[t + step]), mean[i], x[t + step])
                    cells.append(
                        weights[t, column] * ((point - mean[i]) / deviation[i] if features == "mean" else point)
                    )
            terms[1].append(np.concatenate(cells))
        if not len(weights):
            continue
        table = np.concatenate([np.array(part) for part in terms], axis=1)
        count = len(table)
        expected = mapped(table).sum(axis=0) / count if apply == "time" else mapped(table.sum(axis=0) / count)
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{}, {"features": "rbf", "apply": "time", "map": LogisticMap(), "n_components": 40}]
)
def test_memory_does_not_grow_with_states_times_channels(options):
    frames, n, d = 20_000, 10, 40
    X = [np.random.default_rng(1).normal(size=(frames, d))]
    model = HMMEstimator(n, GaussianEstimator("diagonal"), max_iter=1, tol=0, random_state=0).fit([X[0][:200]]).model_
    embedding = Marginalized(model, **options).fit(X)
    embedding.transform(X)
    tracemalloc.start()
    embedding.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.8 * 8 * frames * n * d  # the array of all is as large, and had copies

"""Ready pipelines: they classify, can be searched, and fit each object once per setting."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from genkern import (
    CategoricalEstimator,
    CentreSeries,
    FitEach,
    GaussianEstimator,
    MeanMap,
    ProbabilityProduct,
    ScaleSeries,
    Store,
    Windows,
    recipes,
)
from genkern.datasets import load_japanese_vowels
from genkern.recipes import fisher_svm, meanmap_svm, product_svm, spectrum_svm

RECIPES = {
    "fisher": lambda: fisher_svm(n_states=2),
    "product": lambda: product_svm(n_states=2, length=5),
    "meanmap": lambda: meanmap_svm(n_states=2, length=5),
}


def strings(count=36):
    """Three classes of strings, each with a favourite letter."""
    rng = np.random.default_rng(0)
    y = np.arange(count) % 3
    lengths = rng.integers(15, 30, count)
    return ["".join(rng.choice(list("abc"), n, p=np.roll([0.6, 0.2, 0.2], c))) for n, c in zip(lengths, y)], y


def series(count=36, unit=1.0):
    """Three classes of two-channel series of different means."""
    rng = np.random.default_rng(0)
    y = np.arange(count) % 3
    lengths = rng.integers(8, 20, count)
    return [unit * (rng.standard_normal((n, 2)) + np.array([1.5, -1.0]) * c) for n, c in zip(lengths, y)], y


def vowels(part, count):
    """So many series of each of three speakers."""
    X, y = load_japanese_vowels().part(part)
    chosen = np.concatenate([np.flatnonzero(y == speaker)[:count] for speaker in np.unique(y)[:3]])
    return [X[i] for i in chosen], y[chosen]


@pytest.mark.parametrize("make", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("data", [strings, series])
def test_recipes_classify(make, data):
    X, y = data()
    assert cross_val_score(make(), X, y, cv=3).mean() > 0.8


def test_spectrum_recipe_classifies():
    X, y = strings()
    assert cross_val_score(spectrum_svm(k=3), X, y, cv=3).mean() > 0.8


@pytest.mark.parametrize("make", RECIPES.values(), ids=RECIPES)
def test_units_do_not_matter(make):
    X, y = series()
    small, _ = series(unit=2.0**-20)
    first, second = make().fit(X[:24], y[:24]), make().fit(small[:24], y[:24])
    np.testing.assert_array_equal(first.decision_function(X[24:]), second.decision_function(small[24:]))


UNITS = {"1e-9": 1e-9, "1e-6": 1e-6, "1.37": 1.37, "1e6": 1e6, "1e9": 1e9, "mixed": np.geomspace(1e-6, 1e6, 12)}
OF_SERIES = RECIPES | {
    "series": lambda: recipes.series(4, 2),
    "closed": lambda: recipes.series(4, 2, circular=True),
}


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("make", OF_SERIES.values(), ids=OF_SERIES)
def test_any_units_of_vowels_give_the_same_learner(make, unit):
    (X, y), (new, _) = vowels("train", 8), vowels("test", 6)
    plain, scaled = make().fit(X, y), make().fit([unit * x for x in X], y)
    other = [unit * x for x in new]
    np.testing.assert_allclose(scaled[:-1].transform(other), plain[:-1].transform(new), rtol=0, atol=1e-6)
    np.testing.assert_allclose(scaled.decision_function(other), plain.decision_function(new), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(scaled.predict(other), plain.predict(new))


@pytest.mark.parametrize("unit", [1e-6, 1.37, 1e6, 1e20])
@pytest.mark.parametrize("embedding", [ScaleSeries(), Windows((1, 5)), Windows(5, normalize=True)], ids=repr)
def test_units_of_channels_that_are_constant_in_training(embedding, unit):
    rng = np.random.default_rng(0)
    X = [np.column_stack([rng.normal(size=9), np.full(9, 3.0), np.zeros(9)]) for _ in range(4)]
    new = [x + [0.0, 0.1, 0.0] * rng.normal(size=x.shape) for x in X]
    plain = clone(embedding).fit(X).transform(new)
    scaled = clone(embedding).fit([unit * x for x in X]).transform([unit * x for x in new])
    np.testing.assert_allclose(np.concatenate(scaled), np.concatenate(plain), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", [*RECIPES.values(), lambda: spectrum_svm(2)], ids=[*RECIPES, "spectrum"])
def test_recipes_survive_cloning_and_pickling(make):
    X, y = strings()
    fitted = clone(make()).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("data", [strings, series])
def test_grid_search_fits_each_object_once_per_setting(data):
    X, y = data()
    store = Store()
    grid = {
        "models__estimator__n_states": [1, 2],
        "gram__kernel__kernel__rho": [0.5, 1.0],
        "gram__kernel__kernel__length": [2, 5],
        "svm__estimator__C": [1.0, 100.0],
    }
    search = GridSearchCV(product_svm(store=store), grid, cv=StratifiedKFold(3), error_score="raise").fit(X, y)
    assert search.best_score_ > 0.8
    # Settings of the estimator times objects, whatever rho, length and C; each fold has a scale, if there is one.
    assert store.misses == (2 * len(X) if data is strings else (2 * 3 + 1) * len(X))
    assert store.hits > 0


def test_recipes_without_a_store_make_one():
    store = product_svm().named_steps["models"].store
    assert isinstance(store, Store)
    assert store is not meanmap_svm().named_steps["models"].store


def test_emission_may_be_an_estimator():
    X, y = strings()
    pipeline = product_svm(n_states=1, emission=CategoricalEstimator("abc", pseudocount=1.0), length=3)
    assert pipeline.fit(X, y).named_steps["models"].estimator_.emission.pseudocount == 1.0


@pytest.mark.parametrize(("recipe", "kernel"), [(product_svm, ProbabilityProduct(0.7)), (meanmap_svm, MeanMap(0.5))])
def test_points_of_a_set_have_no_order(recipe, kernel):
    rng = np.random.default_rng(0)
    X = [rng.normal(scale=(1.0, 1.0 + 2.0 * (i % 2)), size=(rng.integers(4, 9), 2)) for i in range(12)]
    y = np.arange(12) % 2
    settings = {"rho": 0.7} if recipe is product_svm else {"lam": 0.5}
    fitted = recipe(kind="points", **settings).fit(X, y)
    shuffled = [rng.permutation(x) for x in X]
    np.testing.assert_allclose(fitted.decision_function(shuffled), fitted.decision_function(X), atol=1e-10, rtol=0)
    laws = FitEach(GaussianEstimator("full", min_covar=0.1)).fit_transform(ScaleSeries().fit_transform(X))
    np.testing.assert_allclose(fitted[:-1].transform(X), kernel.normalized()(laws), atol=1e-12, rtol=0)
    named = recipe(kind="points", emission=GaussianEstimator("diagonal")).named_steps["models"].estimator
    assert named.covariance == "diagonal"


def test_settings_reach_their_places():
    fisher = fisher_svm(3, structure="left-right", information="diagonal", C=7.0, random_state=5, n_jobs=2).get_params()
    assert fisher["fisher__estimator__n_states"] == 3
    assert fisher["fisher__estimator__structure"] == "left-right"
    assert fisher["fisher__information"] == "diagonal"
    assert fisher["svm__C"] == 7.0
    assert fisher["fisher__estimator__random_state"] == fisher["svm__random_state"] == 5
    assert fisher["fisher__n_jobs"] == fisher["fisher__estimator__n_jobs"] == 2
    for pipeline, name in (
        (product_svm(rho=0.7, length=4, C=3.0), "rho"),
        (meanmap_svm(lam=0.7, length=4, C=3.0), "lam"),
    ):
        params = pipeline.get_params()
        assert params[f"gram__kernel__kernel__{name}"] == 0.7
        assert params["gram__kernel__kernel__length"] == 4
        assert params["svm__estimator__C"] == 3.0
    spectrum = spectrum_svm(2, alphabet="dna", C=0.5).get_params()
    assert (spectrum["spectrum__k"], spectrum["spectrum__alphabet"], spectrum["svm__C"]) == (2, "dna", 0.5)


def test_centre_series():
    X = [np.array([[1.0, np.nan], [5.0, np.nan]]), np.array([[7.0, 2.0], [np.nan, 4.0], [9.0, 9.0]])]
    first, second = CentreSeries().fit_transform(X)
    np.testing.assert_array_equal(first, [[-2.0, np.nan], [2.0, np.nan]])
    np.testing.assert_array_equal(second, [[-1.0, -3.0], [np.nan, -1.0], [1.0, 4.0]])
    np.testing.assert_array_equal(CentreSeries().fit_transform(np.array([[1.0, 3.0]]))[0], [[-1.0], [1.0]])
    with pytest.raises(ValueError, match="1 channels"):
        CentreSeries().fit(X).transform([np.zeros((3, 1))])


def test_scale_series():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, 2)) * [1000.0, 0.01] + [5.0, -7.0] for n in (50, 70)]
    X[0][3, 1] = np.nan
    scaled = ScaleSeries().fit(X)
    rows = np.concatenate(scaled.transform(X))
    np.testing.assert_allclose(np.nanstd(rows, axis=0), np.sqrt([0.5, 0.5]), rtol=1e-12)
    np.testing.assert_allclose(np.concatenate(X), rows * scaled.scale_, rtol=1e-15)
    assert ScaleSeries().fit([[3.0, 3.0]]).scale_ == [3.0]
    assert ScaleSeries().fit([[0.0, 0.0]]).scale_ == [1.0]
    assert ScaleSeries().fit_transform(["ab"]) == ["ab"]
    with pytest.raises(ValueError, match="3 channels"):
        scaled.transform([np.zeros((3, 3))])

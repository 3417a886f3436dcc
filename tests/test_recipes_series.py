"""The recipe of series: it classifies what differs in shape, level or order, and takes what real series bring."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from genkern import FisherScore, GaussianEstimator, MultiScale, explain, load, save
from genkern.datasets import load_japanese_vowels
from genkern.recipes import contours, series
from genkern.recipes.series_parts import Outline, OwnUnits


def waves(count=30, seed=0, gaps=0.0):
    """Return series of one channel, of three classes that differ in frequency or in the direction of time."""
    rng = np.random.default_rng(seed)
    X, y = [], np.arange(count) % 3
    for label in y:
        t = np.arange(rng.integers(30, 60)) + rng.uniform(0, 10)
        x = (t / 6) % 1 if label == 0 else (-t / 6) % 1 if label == 1 else (t / 9) % 1
        x = x + 0.1 * rng.standard_normal(len(x))
        x[rng.random(len(x)) < gaps] = np.nan
        X.append(x)
    return X, y


def with_widths(recipe, *widths):
    """Return a recipe with windows of some widths only."""
    names = [name for name in recipe.get_params() if name.endswith("__widths") and "windows" not in name]
    return recipe.set_params(**dict.fromkeys(names, widths))


def small(**options):
    return with_widths(series(n_components=6, n_states=2, **options), 1, 9)


@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_recipe_tells_shapes_apart(gaps):
    X, y = waves(gaps=gaps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a fixed number of EM steps is no failure to converge
        warnings.filterwarnings("ignore", message=".*rests on an effective number of")  # four components, few windows
        assert cross_val_score(series(n_components=6, n_states=2), X, y, cv=3).mean() > 0.9


def test_windows_are_needed():
    X, y = waves()
    single = with_widths(small(), 1)
    assert cross_val_score(single, X, y, cv=3).mean() < 0.8


def test_recipe_survives_cloning_and_pickling():
    X, y = waves()
    fitted = clone(small()).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.decision_function(X), fitted.decision_function(X))
    threads = small(n_jobs=2).fit(X, y)
    np.testing.assert_allclose(threads.decision_function(X), fitted.decision_function(X), rtol=0, atol=1e-8)


def test_recipe_can_be_searched_and_takes_groups():
    X, y = waves()
    grid = {"scores__bag__widths": [(1,), (1, 9)], "scores__bag__embedding__embedding__estimator__n_components": [4]}
    bags = small().set_params(scores__chain="drop", scores__centred="drop")
    search = GridSearchCV(bags, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["scores__bag__widths"] == (1, 9)
    groups = np.arange(30) // 6
    alone, together = small().fit(X, y), small().fit(X, y, ridge__groups=groups)
    assert abs(alone["ridge"].cv_squared_ - together["ridge"].cv_squared_).max() > 1e-4


def test_steps_and_features_have_names():
    X, y = waves()
    fitted = small().fit(X, y)
    assert list(fitted.named_steps) == ["scores", "ridge"]
    names = fitted["scores"].get_feature_names_out()
    assert len(names) == fitted["ridge"].n_features_in_
    assert "bag__w9_normalized__occupancy[5]" in names
    assert "chain__w9__occupancy[1,3]" in names
    assert "centred__bag__w1__occupancy[0]" in names


def test_units_do_not_matter():
    X, y = waves()
    other = [2.0**20 * x for x in X]
    np.testing.assert_allclose(
        small().fit(other, y).decision_function(other), small().fit(X, y).decision_function(X), rtol=0, atol=1e-8
    )


def test_constant_and_short_series_are_legal():
    X = [np.zeros(20), np.zeros(3), np.zeros(1), np.ones(20), np.ones(2), np.ones(30)]
    y = [0, 0, 0, 1, 1, 1]
    fitted = series(n_components=2, n_states=2).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), y)
    assert np.isfinite(fitted.decision_function([np.full(5, 1e3)])).all()
    flat = series(n_components=2, n_states=2).fit([np.zeros(20)] * 4, [0, 0, 1, 1])
    assert np.isfinite(flat.decision_function([np.arange(9.0)])).all()


def test_level_and_what_is_left_without_it():
    """Two classes that differ in shape, under levels that say nothing, and two that differ in their level alone."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    t = np.arange(40)
    shapes = [np.sin(t / (2 + label)) + rng.normal(0, 30) for label in y]
    noises = [rng.standard_normal(40) + label for label in y]
    for X in (shapes, noises):
        assert cross_val_score(small(), X, y, cv=3).mean() > 0.9
    centred = small().set_params(scores__bag="drop", scores__chain="drop")
    assert cross_val_score(centred, shapes, y, cv=3).mean() > 0.9
    assert cross_val_score(centred, noises, y, cv=3).mean() < 0.8


def test_centred_series_have_half_the_weight():
    """Squared lengths of the features: equal for every model, width and version, and half of that without the level."""
    X, y = waves(18)
    scores = small().fit(X, y)["scores"]
    assert scores.weights_ == {"main": 1.0, "own": 0.0, "whole": 0.0}  # of eighteen series nothing is chosen
    features = scores.transform(X)
    sizes = (features**2) @ [name.startswith("centred") for name in scores.get_feature_names_out()]
    np.testing.assert_allclose(sizes, sizes[0], rtol=1e-9)
    np.testing.assert_allclose((features**2).sum(axis=1), 3.0 * sizes, rtol=1e-9)
    np.testing.assert_allclose(features.var(axis=0).sum(), 1.0, rtol=1e-9)


def many(kind, count=90, seed=0):
    """Return series of two classes that differ in their shape, under sizes from one to a thousand, or in one place."""
    rng = np.random.default_rng(seed)
    y, t = np.arange(count) % 2, np.arange(40)
    if kind == "sizes":
        noise = 0.5 * rng.standard_normal((count, 40))
        wave = np.sin(t / np.array([2.0, 2.6])[y][:, None] + rng.uniform(0, 6, (count, 1)))
        return list((wave + noise) * 10.0 ** rng.uniform(0, 3, (count, 1))), y
    X = rng.standard_normal((count, 40))
    X[np.arange(count), np.array([8, 30])[y] + rng.integers(-1, 2, count)] += 6.0
    return list(X), y


@pytest.mark.parametrize(("kind", "key"), [("sizes", "own"), ("places", "whole")])
def test_parts_that_tell_something_are_chosen(kind, key, tmp_path):
    X, y = many(kind)
    new, labels = many(kind, seed=1)
    fitted = small().fit(X, y)
    scores = fitted["scores"]
    assert scores.weights_[key] > 0
    plain = small().set_params(scores__own="drop", scores__whole="drop").fit(X, y)
    assert plain["scores"].weights_ == {"main": 1.0, "own": 0.0, "whole": 0.0}
    assert fitted.score(new, labels) > plain.score(new, labels) + 0.05
    names = scores.get_feature_names_out()
    assert any(name.startswith(key) for name in names)
    assert len(names) == fitted["ridge"].n_features_in_
    save(fitted, tmp_path / "model.gk")
    again = load(tmp_path / "model.gk")
    np.testing.assert_array_equal(again.decision_function(new), fitted.decision_function(new))
    seen = explain(fitted, new[0], label=1)
    np.testing.assert_allclose(seen.decision, fitted.decision_function(new[:1])[0], rtol=1e-7)


def test_series_in_one_unit_are_not_tried_in_their_own():
    X = np.random.default_rng(0).standard_normal((6, 30, 2))
    alike = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    assert series()["scores"].offered(list(alike)) == {"whole"}
    alike[0] *= 3.0
    assert series()["scores"].offered(list(alike)) == {"own", "whole"}


def test_own_units_and_outlines_against_plain_loops():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((length, 2)) * scale for length, scale in ((5, 1.0), (9, 50.0), (1, 2.0), (7, 0.0))]
    X[1][3, 0] = np.nan
    units, outline = OwnUnits().fit(X), Outline(4).fit(X)
    values = np.concatenate(X)
    mean, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    for x, own, row in zip(X, units.transform(X), outline.transform(X)):
        expected = (x - np.nanmean(x, axis=0)) / (np.nanstd(x, axis=0) + 1e-3 * spread)
        np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-12)
        for i, at in enumerate(np.linspace(0, len(x) - 1, 4)):
            for c in range(2):
                known = np.flatnonzero(~np.isnan(x[:, c]))
                value = np.interp(at, known, x[known, c])
                np.testing.assert_allclose(row[2 * i + c], (value - mean[c]) / spread[c], rtol=1e-9, atol=1e-12)
    assert outline.get_feature_names_out()[:3].tolist() == ["x0_0", "x1_0", "x0_1"]


def test_models_are_learnt_from_some_of_many_series(monkeypatch):
    X, _ = waves()
    order = np.random.default_rng(0).permutation(30)
    positions = sum(len(X[i]) for i in order[:10])  # no fewer than ten series have them
    everything = MultiScale(FisherScore(GaussianEstimator()), widths=(1,)).fit(X)
    enough = MultiScale(FisherScore(GaussianEstimator()), widths=(1,), most=positions).fit(X)
    np.testing.assert_array_equal(enough.transform(X), everything.transform(X))  # of thirty, fewer than two hundred
    monkeypatch.setattr("genkern.preprocess.multi_scale.LEAST", 5)
    some = clone(enough).fit(X)
    rows = np.sort(order[:10])
    own = MultiScale(FisherScore(GaussianEstimator()), widths=(1,)).fit([X[i] for i in rows])
    np.testing.assert_allclose(some.transform(X), own.transform(X), rtol=1e-12)
    np.testing.assert_array_equal(clone(some).fit_transform(X), some.transform(X))


def test_very_many_series_take_the_linear_path():
    X, y = many("sizes", 120)
    recipe = small().set_params(scores__large=100, ridge__exact=100).fit(X, y)
    assert recipe["ridge"].solver_ == "conjugate gradients"
    assert recipe.score(X, y) > 0.9
    assert recipe[:-1].transform(X).dtype == np.float32


def rectangle(a, b, turned=0):
    """Return the chain code of a rectangle, rotated by an eighth of a turn so many times."""
    return "".join(str((code + turned) % 8) * n for code, n in zip((0, 2, 4, 6), (a, b, a, b)))


def test_contours_may_begin_anywhere():
    sides = [(9, 8), (12, 9), (10, 10), (8, 9)]
    X = [rectangle(a, b, turned) for turned in (0, 1) for a, b in sides]
    y = np.repeat([0, 1], 4)
    recipe = with_widths(contours(n_components=6, n_states=2), 1, 9).fit(X, y)
    np.testing.assert_array_equal(recipe.predict([x[7:] + x[:7] for x in X]), y)


def test_contours_may_be_rotated():
    squares, strips = [(8, 8), (10, 10), (9, 9)], [(14, 3), (12, 4), (15, 4)]
    train = [rectangle(a, b) for a, b in squares + strips]
    test = [rectangle(a, b, turned=3) for a, b in squares + strips]
    y = np.repeat([0, 1], 3)
    recipe = with_widths(contours(n_components=6, n_states=2), 1, 9).fit(train, y)
    np.testing.assert_array_equal(recipe.predict(test), y)
    codes = [[int(code) for code in x] for x in train]
    integers = with_widths(contours(8, n_components=6, n_states=2), 1, 9).fit(codes, y)
    np.testing.assert_array_equal(integers.decision_function(codes), recipe.decision_function(train))


def test_japanese_vowels():
    vowels = load_japanese_vowels()
    train, test = vowels.part("train"), vowels.part("test")
    fitted = with_widths(series(), 1, 5).fit(train.X, train.y)
    assert np.mean(fitted.predict(test.X) != test.y) < 0.025


STRAIGHT = [code * length for code in "0246" for length in (1, 2, 5, 30)]


@pytest.mark.parametrize(
    ("X", "alphabet"),
    [
        (["0246"] * 6, "01234567"),
        ([[0, 1, 2, 3]] * 5, 4),
        (["0" * length for length in (30, 2, 8, 5, 1, 3)], "01234567"),
        (STRAIGHT, "01234567"),
        (["0", "2", "4", "6"] * 2, "01234567"),
        (["0123", "0011", "3333", "0", "31"], "0123"),
    ],
)
@pytest.mark.parametrize("n_states", [1, 3])
def test_contours_of_few_codes(X, alphabet, n_states):
    y = np.arange(len(X)) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = contours(alphabet, n_components=2, n_states=n_states).fit(X, y)
        decisions = learner.decision_function([*X, X[0]])
    assert np.isfinite(decisions).all()
    np.testing.assert_allclose(decisions[-1], decisions[0], rtol=0, atol=1e-12)
    if all(x == X[0] for x in X):
        np.testing.assert_allclose(decisions, np.mean(2 * y - 1), atol=1e-9)


@pytest.mark.parametrize("constant", [0.0, 7.3])
def test_curves_with_constant_channels(constant):
    turns = [2 * np.pi * np.arange(T) / T for T in (1, 3, 9, 20, 30, 5)]
    flat = [np.column_stack([np.cos(t), np.full(len(t), constant)]) for t in turns]
    points = [np.full((len(t), 2), constant) for t in turns]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X in (flat, points):
            learner = series(2, 2, circular=True).fit(X, np.arange(6) % 2)
            assert np.isfinite(learner.decision_function([*flat, *points])).all()

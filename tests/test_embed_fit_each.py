"""One model per object: what it depends on, and how often it is fitted."""

import pickle

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline

from genkern import HMM, Categorical, CategoricalEstimator, FitEach, GaussianEstimator, HMMEstimator, Store
from genkern.recipes import meanmap_svm, product_svm

TEXTS = ["abab", "aabbab", "bbba", "aaaab", "babab", "abba", "bb", "aabaab"]
LABELS = np.array([0, 1] * 4)


class CountingEstimator(CategoricalEstimator):
    """Counts the objects that are really fitted, over all clones."""

    fits = 0

    def fit_each(self, X):
        models = super().fit_each(X)
        type(self).fits += len(models)
        return models


class Nearest(ClassifierMixin, BaseEstimator):
    """One nearest neighbour on first probabilities: a learner that takes models."""

    def __init__(self, C=1.0):
        self.C = C

    def fit(self, models, y):
        self.classes_ = np.unique(y)
        self.values_, self.labels_ = np.array([model.probs[0] for model in models]), np.asarray(y)
        return self

    def predict(self, models):
        gaps = np.abs(np.array([model.probs[0] for model in models])[:, None] - self.values_)
        return self.labels_[gaps.argmin(axis=1)]


def test_each_object_has_the_model_it_would_have_alone():
    estimator = HMMEstimator(2, random_state=3, max_iter=20, tol=0)
    fit_each = FitEach(estimator).fit(TEXTS)
    models = fit_each.transform(TEXTS)
    assert len(models) == len(TEXTS)
    for i in (0, 3, 6):
        assert fit_each.transform([TEXTS[i]])[0] == models[i]
    assert fit_each.transform(TEXTS[::-1])[::-1] == models


def test_alphabet_is_that_of_the_training_list():
    fit_each = FitEach(CategoricalEstimator()).fit(["ab", "c"])
    assert fit_each.transform(["aa"])[0].probs.shape == (3,)
    with pytest.warns(UserWarning, match=r"1 of 2 symbols.*'d' \(object 0, position 1\)"):
        assert fit_each.transform(["ad"])[0].probs.argmax() == 0
    with pytest.raises(ValueError, match="'d' is not in"):
        FitEach(CategoricalEstimator(unknown="error")).fit(["ab", "c"]).transform(["ad"])
    assert FitEach(HMMEstimator(2, max_iter=1, tol=0)).fit(["ab", "c"]).transform(["a"])[0].emissions.alphabet.size == 3


def test_estimator_with_a_named_alphabet_keeps_it():
    model = FitEach(HMMEstimator(1, emission=CategoricalEstimator("dna"))).fit_transform(["AC", "AA"])[0]
    assert model.emissions.alphabet.name == "dna"


def test_channels_must_agree_with_those_of_fit():
    fit_each = FitEach(GaussianEstimator()).fit([np.zeros((3, 2)), np.ones((4, 2))])
    with pytest.raises(ValueError, match="2 channels, as in fit"):
        fit_each.transform([np.zeros((3, 5))])


def test_store_gives_the_same_models_and_fits_once():
    store = Store()
    estimator = HMMEstimator(2, max_iter=20, tol=0)
    plain = FitEach(estimator).fit_transform(TEXTS)
    kept = FitEach(estimator, store=store)
    assert kept.fit_transform(TEXTS) == plain
    assert store.misses == len(TEXTS)
    assert clone(kept).set_params(n_jobs=2, estimator__n_jobs=2).fit_transform(TEXTS + TEXTS[:2]) == plain + plain[:2]
    assert store.misses == len(TEXTS)


def test_store_tells_settings_alphabets_and_objects_apart():
    store = Store()
    fit_each = FitEach(CategoricalEstimator(), store=store)
    fit_each.fit_transform(["ab", "ba"])
    assert store.misses == 2
    clone(fit_each).set_params(estimator__pseudocount=1.0).fit_transform(["ab"])
    assert store.misses == 3
    wider = fit_each.fit(["abc"]).transform(["ab"])[0]
    assert store.misses == 4
    assert wider.probs.shape == (3,)
    FitEach(HMMEstimator(1), store=store).fit_transform(["ab"])
    assert store.misses == 5


def test_grid_search_fits_each_object_once_per_setting():
    CountingEstimator.fits = 0
    pipe = Pipeline([("models", FitEach(CountingEstimator(alphabet="ab"), store=Store())), ("learner", Nearest())])
    grid = {"learner__C": [0.1, 1.0, 10.0], "models__estimator__pseudocount": [0.01, 0.1]}
    GridSearchCV(pipe, grid, cv=StratifiedKFold(4)).fit(TEXTS, LABELS)
    assert CountingEstimator.fits == 2 * len(TEXTS)


def test_folder_store_survives_pickling(tmp_path):
    fit_each = FitEach(CategoricalEstimator(), store=Store(tmp_path)).fit(TEXTS)
    models = fit_each.transform(TEXTS)
    again = pickle.loads(pickle.dumps(fit_each))
    assert again.transform(TEXTS) == models
    assert again.store.path == fit_each.store.path
    assert Store(tmp_path).n_entries == len(TEXTS)


def test_threads_reach_the_estimator():
    seen = []

    class Recording(HMMEstimator):
        def fit_each(self, X):
            seen.append((self.n_jobs, self.verbose))
            return super().fit_each(X)

    given = Recording(1, n_jobs=1)
    fit_each = FitEach(given, n_jobs=2).fit(TEXTS)
    fit_each.transform(TEXTS)
    assert (given.n_jobs, fit_each.estimator_.n_jobs) == (1, 1)
    assert fit_each.estimator_ is not given
    FitEach(Recording(1, n_jobs=1)).fit_transform(TEXTS)
    assert seen == [(2, 0), (1, 0)]


def test_given_estimator_is_not_the_fitted_one():
    estimator = GaussianEstimator()
    assert FitEach(estimator).fit([np.zeros((3, 2))]).estimator_ is not estimator


def test_what_cannot_be_used_is_refused(tmp_path):
    with pytest.raises(TypeError, match="estimator of models"):
        FitEach(Nearest()).fit(TEXTS)
    with pytest.raises(TypeError, match="must be a Store"):
        FitEach(CategoricalEstimator(), store=str(tmp_path)).fit(TEXTS)
    moving = HMMEstimator(1, random_state=np.random.RandomState(0))
    with pytest.raises(TypeError, match="random generator"):
        FitEach(moving, store=Store()).fit_transform(TEXTS)


@pytest.mark.parametrize("recipe", [product_svm, meanmap_svm])
@pytest.mark.parametrize("store", [None, Store()])
def test_an_object_without_values_is_named_by_its_index(recipe, store):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(12, 2)) for _ in range(8)]
    learner = recipe(n_states=2, store=store).fit(X, np.arange(8) % 2)
    with (
        pytest.warns(UserWarning, match=r"\(object 2\)"),
        pytest.raises(ValueError, match=r"object 2 has no observed value in column 0, .* Drop object 2, with"),
    ):
        learner.predict([X[0], X[1], X[2][:9] * np.nan])
    X[1] = np.where([True, False], X[1], np.nan)
    with pytest.raises(ValueError, match=r"object 1 has no observed value in column 1, .* Drop object 1"):
        learner.predict([X[0], X[1][:7]])


def _words(count: int) -> list[str]:
    own = np.random.default_rng(5)
    return ["".join(own.choice(list("ab"), own.integers(4, 12))) for _ in range(count)]


def test_processes_fit_parts_to_the_same_models(tmp_path) -> None:
    X = _words(21)
    alone = FitEach(HMMEstimator(2, max_iter=4, tol=0.0)).fit_transform(X)
    with parallel_config("loky", n_jobs=2):
        found = FitEach(HMMEstimator(2, max_iter=4, tol=0.0)).fit_transform(X)
        stored = FitEach(HMMEstimator(2, max_iter=4, tol=0.0), Store(tmp_path)).fit_transform(X)
        few = FitEach(HMMEstimator(2, max_iter=4, tol=0.0)).fit_transform(X[:1])
    assert found == alone
    assert stored == alone
    assert few == alone[:1]


def test_processes_tell_of_their_objects() -> None:
    X = _words(21)
    with parallel_config("loky", n_jobs=2), pytest.warns(ConvergenceWarning) as caught:
        FitEach(HMMEstimator(2, max_iter=1, tol=1e-9)).fit_transform(X)
    texts = [str(one.message) for one in caught]
    assert texts[0].startswith("Objects 0 to 1: HMMEstimator: 2 of 2 models did not converge")
    assert texts[-1].startswith("Objects 18 to 20: HMMEstimator")


def test_errors_from_processes_name_the_objects_as_given() -> None:
    X = ["aaaa"] * 7 + ["aaba"] + ["aa"] * 3
    start = HMM([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], Categorical([[1.0, 0.0]] * 2, alphabet="ab"))
    with pytest.raises(ValueError, match="object 7") as alone:
        FitEach(HMMEstimator(2, init=start, max_iter=2, pseudocount=0.0)).fit_transform(X)
    with parallel_config("loky", n_jobs=2), pytest.raises(ValueError, match="object 7") as parts:
        FitEach(HMMEstimator(2, init=start, max_iter=2, pseudocount=0.0)).fit_transform(X)
    assert str(parts.value) == str(alone.value)

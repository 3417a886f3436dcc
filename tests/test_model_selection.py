"""Scores of estimators, free parameters, information criteria, and sizes chosen by them."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from genkern import (
    HMM,
    Categorical,
    CategoricalEstimator,
    FactorialHMM,
    FactorialHMMEstimator,
    Gaussian,
    GaussianEstimator,
    HMMEstimator,
    KDEEstimator,
    LDSEstimator,
    MarkovChainEstimator,
    MixtureEstimator,
    PoissonEstimator,
)
from tests.cases import path_weights, random_hmm, rows
from tests.cases_zoo import ZOO

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("ab"), size=n)) for n in (3, 4, 5, 3, 4, 5, 4, 3)]
SERIES = [RNG.normal(size=(n, 2)) for n in (6, 9, 7, 5, 8, 6)]


# --- scores


def test_the_score_of_an_hmm_is_the_mean_over_sums_of_all_paths():
    estimator = HMMEstimator(2, emission=CategoricalEstimator(alphabet="ab", pseudocount=0.1), max_iter=3, tol=0)
    model = estimator.fit(WORDS[:5]).model_
    logs = [np.log(path_weights(model, [int(c == "b") for c in x])[1].sum()) for x in WORDS[5:]]
    assert estimator.score(WORDS[5:]) == pytest.approx(np.mean(logs), rel=1e-12)


@pytest.mark.parametrize(
    ("estimator", "X"),
    [
        (CategoricalEstimator(), WORDS),
        (MarkovChainEstimator(1), WORDS),
        (HMMEstimator(2, max_iter=3, tol=0), SERIES),
        (GaussianEstimator("full"), SERIES),
        (MixtureEstimator(2, max_iter=3, tol=0), SERIES),
        (KDEEstimator(), SERIES),
        (LDSEstimator(1, max_iter=3, tol=0), SERIES),
        (PoissonEstimator(), [np.abs(np.rint(3 * x)) for x in SERIES]),
    ],
    ids=lambda case: type(case).__name__,
)
def test_cross_validation_takes_ragged_lists(estimator, X):
    folds = KFold(2)
    found = cross_val_score(estimator, X, cv=folds, error_score="raise")
    for value, (train, test) in zip(found, folds.split(X)):
        model = clone(estimator).fit([X[i] for i in train]).model_
        assert value == pytest.approx(np.mean([model.log_prob([X[i]])[0] for i in test]), rel=1e-10)
    with pytest.raises(NotFittedError):
        clone(estimator).score(X)


def test_a_grid_of_states_finds_those_that_there_are():
    truth = HMM([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], Gaussian([[0.0], [6.0]], [[1.0], [1.0]]))
    X = truth.sample(12, length=40, rng=0)
    search = GridSearchCV(HMMEstimator(random_state=0), {"n_states": [1, 2]}, cv=3, error_score="raise").fit(X)
    assert search.best_params_ == {"n_states": 2}
    assert search.score(X) == pytest.approx(search.best_estimator_.model_.log_prob(X).mean(), rel=1e-12)


def test_an_inexact_likelihood_is_refused_by_the_model():
    many = FactorialHMM([[0.5, 0.5]] * 13, [[[0.5, 0.5]] * 2] * 13, [np.zeros((2, 1))] * 13, 1.0)
    estimator = FactorialHMMEstimator(2, 13)
    estimator.model_ = many
    with pytest.raises(ValueError, match="bound"):
        estimator.score([np.zeros((3, 1))])


# --- free parameters

# What a parameter vector has more directions than the distributions: of mixtures of single symbols (three), of rows at
# positions that come before the first step, of levels of factorial chains, of the basis of a hidden state, of tables
# and weights of hidden nodes, and of two ways into the first column of a profile and out of the last.
BOUNDS = {
    "Mixture of symbols": 3,
    "PositionalChain": 2,
    "FactorialHMM": 2,
    "LDS": 1,
    "SwitchingLDS": 1,
    "BayesNet": 6,
    "LinearGaussianNet": 4,
    "ProfileHMM that stops": 4,
    "local ProfileHMM that stops": 2,
}


@pytest.mark.parametrize("name", ZOO)
def test_free_parameters_are_the_rank_of_the_scores(name):
    model = ZOO[name]
    lengths = {"PositionalChain": [1, 2, 3], "SiteModel": [None]}.get(name, range(1, 6))
    X = [x for n in lengths for x in model.sample(200, length=n, rng=n)]
    scores = model.log_prob_grad(X)
    scores = scores / np.maximum(np.abs(scores).max(axis=0), 1e-300)
    rank = np.linalg.matrix_rank(scores, tol=1e-7 * np.linalg.norm(scores, 2))
    assert model.n_free_parameters == rank + BOUNDS.get(name, 0)


@pytest.mark.parametrize("ending", [None, "end", "stop"])
def test_what_structure_forbids_is_no_parameter(ending):
    stop = {"stop": [0.2, 0.2, 1.0]}.get(ending)
    steps = np.array([[0.5, 0.5, 0.0], [0.0, 0.4, 0.6], [0.0, 0.0, 1.0]])
    if stop:
        steps = steps * (1 - np.array(stop))[:, None]
    end = [0.0, 0.4, 0.6] if ending == "end" else None
    model = HMM([1.0, 0.0, 0.0], steps, Categorical(rows(RNG, 3, 4)), stop=stop, end=end)
    chain = {None: 2, "end": 3, "stop": 4}[ending]
    assert model.n_free_parameters == chain + 3 * 3
    # By differences: how many directions the parameters that are not zero have, as probabilities.
    theta, eps = model.parameters(), 1e-6
    base = model.parameters("raw")
    free = np.flatnonzero(np.isfinite(theta))
    moved = [model.with_parameters(theta + eps * (np.arange(len(theta)) == i)).parameters("raw") - base for i in free]
    assert np.linalg.matrix_rank(np.array(moved) / eps, tol=1e-4) == model.n_free_parameters


@pytest.mark.parametrize(("form", "count"), [("isotropic", 1), ("diagonal", 3), ("full", 6)])
def test_covariances_count_by_their_form(form, count):
    model = random_hmm(np.random.default_rng(1), form, 2, size=3)
    assert model.n_free_parameters == 1 + 2 + 2 * (3 + count)


def test_a_stack_is_asked_member_by_member():
    with pytest.raises(ValueError, match="one model"):
        _ = HMM.stack([random_hmm(RNG), random_hmm(RNG)]).n_free_parameters


# --- criteria


def test_criteria_are_those_of_sums_over_all_paths():
    model = random_hmm(np.random.default_rng(2), n=2, size=3)
    X = [np.array([0, 2, 1]), np.array([1, 1])]
    total = sum(np.log(path_weights(model, x)[1].sum()) for x in X)
    assert model.aic(X) == pytest.approx(2 * 7 - 2 * total, rel=1e-12)
    assert model.bic(X) == pytest.approx(7 * np.log(5) - 2 * total, rel=1e-12)


def test_criteria_of_mixtures_are_scikit_learns():
    points = np.vstack([RNG.normal(size=(40, 2)), RNG.normal(size=(40, 2)) + 5])
    theirs = GaussianMixture(2, random_state=0, reg_covar=0).fit(points)
    ours = MixtureEstimator(2, GaussianEstimator("full", relative_floor=0), pseudocount=0, tol=1e-9).fit(points).model_
    assert ours.aic(points) == pytest.approx(theirs.aic(points), rel=1e-4)
    assert ours.bic(points) == pytest.approx(theirs.bic(points), rel=1e-4)
    assert ours.n_free_parameters == theirs._n_parameters()


# --- sizes


def of_three_states():
    truth = HMM(
        [1 / 3] * 3,
        0.8 * np.eye(3) + 0.2 / 3,
        Gaussian(np.array([[0.0], [7.0], [14.0]]), np.ones((3, 1))),
    )
    return truth.sample(6, length=60, rng=0)


@pytest.mark.parametrize("criterion", ["aic", "bic"])
def test_states_by_a_criterion_are_those_of_the_best_fit_of_all(criterion):
    X = of_three_states()
    chosen = HMMEstimator(criterion, max_states=8, random_state=0, tol=1e-3).fit(X)
    by_hand = [getattr(HMMEstimator(n, random_state=0, tol=1e-3).fit(X).model_, criterion)(X) for n in range(1, 6)]
    best = int(np.argmin(by_hand)) + 1
    assert chosen.model_.n_states == best
    assert best == 3 or criterion == "aic"
    np.testing.assert_allclose(chosen.criterion_[:5], by_hand[: len(chosen.criterion_)], rtol=1e-12)
    assert len(chosen.criterion_) == min(8, int(np.argmin(chosen.criterion_)) + 3)
    assert chosen.model_ == HMMEstimator(chosen.model_.n_states, random_state=0, tol=1e-3).fit(X).model_
    assert chosen.n_states == criterion  # a parameter stays what it was


def test_components_by_a_criterion():
    bag = np.vstack([RNG.normal(size=(60, 1)), RNG.normal(size=(60, 1)) + 9])
    estimator = MixtureEstimator("bic", random_state=0)
    assert estimator.fit([bag]).model_.n_components == 2
    first, one = estimator.fit_each([bag, RNG.normal(size=(40, 1))])
    assert (first.n_components, one.n_components) == (2, 1)
    assert first == estimator.fit_each([bag])[0]  # whoever stands beside it
    with pytest.raises(ValueError, match="n_components"):
        HMMEstimator(2, MixtureEstimator("bic")).fit([bag])


def test_own_states_by_a_criterion_depend_on_the_object_alone():
    X = [*of_three_states()[:2], RNG.normal(size=(50, 1))]
    estimator = HMMEstimator("bic", max_states=5, random_state=0, tol=1e-3)
    together = estimator.fit_each(X)
    assert [model.n_states for model in together] == [3, 3, 1]
    assert together[1] == estimator.fit_each(X[1:2])[0]
    assert together[2] == HMMEstimator(1, random_state=0, tol=1e-3).fit_each(X[2:])[0]


def test_a_start_has_a_number_of_states():
    start = random_hmm(RNG, "diagonal", 2, size=1)
    with pytest.raises(ValueError, match="n_states"):
        HMMEstimator("bic", init=start).fit([RNG.normal(size=(9, 1))])
    with pytest.raises(ValueError, match="'auto', 'aic', 'bic'"):
        HMMEstimator("best").fit(WORDS)


@pytest.mark.parametrize("kind", ["hmm", "mixture"])
def test_only_the_kept_model_may_warn(kind):
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(30, 1)) for _ in range(3)]  # one state is best, and needs one step
    estimator = HMMEstimator("bic", max_iter=2) if kind == "hmm" else MixtureEstimator("bic", max_iter=2)
    with warnings.catch_warnings(action="error"):
        estimator.fit(X)
        models = estimator.fit_each(X)
    sizes = [len(model.start if kind == "hmm" else model.weights) for model in (estimator.model_, *models)]
    assert sizes == [1] * 4
    assert len(estimator.criterion_) == 3  # larger models were tried
    apart = [np.concatenate([x, x + 6.0, x - 7.0]) for x in X]
    with pytest.warns(ConvergenceWarning, match="1 of 1 models did not converge in 2 steps") as caught:
        clone(estimator).fit(apart)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(ConvergenceWarning, match="of 3 models did not converge in 2 steps") as caught:
        clone(estimator).fit_each(apart)
    assert len(caught) == 1
    assert caught[0].filename == __file__

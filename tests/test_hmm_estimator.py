import itertools

import numpy as np
import pytest
from hmmlearn import hmm as peer
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from genkern import HMM, Categorical, CategoricalEstimator, Gaussian, GaussianEstimator, HMMEstimator
from genkern.models.hmm.estimator import states_by_length
from tests.cases import hmmlearn_as_it_is, random_hmm, random_sequence


def symbols(seed=0, count=20, lengths=(3, 30), size=3):
    rng = np.random.default_rng(seed)
    model = random_hmm(rng, n=2, size=size)
    return [model.sample(1, length=int(rng.integers(*lengths)), rng=rng)[0] for _ in range(count)]


def series(seed=0, count=12, missing=0.0):
    rng = np.random.default_rng(seed)
    return [random_sequence(rng, "full", int(rng.integers(4, 15)), 2, missing) + rng.integers(3) for _ in range(count)]


def concatenated(X):
    return np.concatenate(X), [len(x) for x in X]


def test_categorical_em_equals_hmmlearn():
    X = [np.asarray(x) for x in symbols()]
    start = random_hmm(np.random.default_rng(5), n=3)
    ours = HMMEstimator(init=start, pseudocount=0, max_iter=20, tol=0).fit(X)
    theirs = peer.CategoricalHMM(3, n_iter=20, tol=-np.inf, init_params="", params="ste", n_features=3)
    theirs.startprob_, theirs.transmat_, theirs.emissionprob_ = start.start, start.transitions, start.emissions.probs
    values, lengths = concatenated(X)
    with hmmlearn_as_it_is():
        theirs.fit(values[:, None], lengths)
    np.testing.assert_allclose(ours.model_.transitions, theirs.transmat_, atol=1e-8)
    np.testing.assert_allclose(ours.model_.start, theirs.startprob_, atol=1e-8)
    np.testing.assert_allclose(ours.model_.emissions.probs, theirs.emissionprob_, atol=1e-8)
    np.testing.assert_allclose(ours.history_[-1], theirs.score(values[:, None], lengths), rtol=1e-8)


@pytest.mark.parametrize(("ours", "theirs"), [("diagonal", "diag"), ("full", "full"), ("isotropic", "spherical")])
def test_gaussian_em_equals_hmmlearn(ours, theirs):
    X = series()
    rng = np.random.default_rng(1)
    mean = rng.standard_normal((2, 2)) + 1.0
    cov = {"diagonal": np.ones((2, 2)), "full": np.tile(np.eye(2), (2, 1, 1)), "isotropic": np.ones(2)}[ours]
    start = HMM([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], Gaussian(mean, cov))
    emission = GaussianEstimator(ours, min_covar=0.0)
    fitted = HMMEstimator(emission=emission, init=start, pseudocount=0, max_iter=15, tol=0).fit(X)
    other = peer.GaussianHMM(
        2, theirs, n_iter=15, tol=-np.inf, init_params="", min_covar=0, covars_prior=0, covars_weight=0
    )
    if theirs == "full":
        other.covars_weight = 2  # hmmlearn adds (weight - n_features) to the denominator of full covariances
    if theirs in ("diag", "spherical"):
        other.covars_weight = 1  # and max(weight - 1, 0) to that of diagonal ones
    other.startprob_, other.transmat_, other.means_, other.covars_ = start.start, start.transitions, mean, cov
    values, lengths = concatenated(X)
    with hmmlearn_as_it_is():
        other.fit(values, lengths)
    np.testing.assert_allclose(fitted.model_.transitions, other.transmat_, atol=1e-8)
    np.testing.assert_allclose(fitted.model_.emissions.mean, other.means_, atol=1e-8)
    np.testing.assert_allclose(fitted.history_[-1], other.score(values, lengths), rtol=1e-8)


@pytest.mark.parametrize("ending", [None, "stop", "end"])
@pytest.mark.parametrize("structure", ["ergodic", "left-right"])
@pytest.mark.parametrize("kind", ["symbols", "diagonal", "full", "missing", "ambiguous"])
def test_objective_never_falls(kind, structure, ending):
    if kind == "symbols":
        X, emission = symbols(1), CategoricalEstimator(pseudocount=0.3)
    elif kind == "ambiguous":
        rng = np.random.default_rng(3)
        X, emission = ["".join(rng.choice(list("ACGTRYN"), 12)) for _ in range(8)], CategoricalEstimator("dna")
    else:
        X = series(2, missing=0.2 if kind == "missing" else 0.0)
        emission = GaussianEstimator("diagonal" if kind == "diagonal" else "full", min_covar=0.05)
    estimator = HMMEstimator(3, emission, max_iter=30, tol=0, structure=structure, ending=ending, pseudocount=0.2)
    history = np.array(estimator.fit(X).history_)
    assert len(history) == 31
    assert np.diff(history).min() >= -1e-9 * np.abs(history).max()
    assert history[-1] > history[0]


def test_left_right_models_keep_their_zeros():
    model = HMMEstimator(4, structure="left-right").fit(symbols(2, lengths=(8, 20))).model_
    assert model.start[0] == 1.0
    assert (model.transitions[~(np.eye(4, dtype=bool) | np.eye(4, k=1, dtype=bool))] == 0.0).all()


def test_recovers_a_known_model():
    truth = HMM([1.0, 0.0], [[0.9, 0.1], [0.2, 0.8]], Gaussian([[-2.0], [2.0]], [0.5, 1.0]))
    X = truth.sample(100, length=60, rng=0)
    model = HMMEstimator(2, tol=1e-7).fit(X).model_
    order = np.argsort(model.emissions.mean[:, 0])
    np.testing.assert_allclose(model.emissions.mean[order, 0], [-2.0, 2.0], atol=0.1)
    np.testing.assert_allclose(model.transitions[np.ix_(order, order)], truth.transitions, atol=0.03)


def test_restarts_keep_the_best():
    X = symbols(4)
    runs = [HMMEstimator(3, n_init=k, random_state=1, max_iter=50, tol=0).fit(X).history_[-1] for k in (1, 4, 8)]
    assert runs[0] <= runs[1] <= runs[2]


def test_convergence_is_reported():
    X = symbols(5)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        short = HMMEstimator(3, max_iter=2, tol=1e-9).fit(X)
    assert not short.converged_
    assert short.n_iter_ == 2
    full = HMMEstimator(2, max_iter=3000, tol=1e-6).fit(X)
    assert full.converged_
    assert full.n_iter_ < 3000
    assert len(full.history_) == full.n_iter_ + 1


@pytest.mark.parametrize("kind", ["symbols", "series"])
@pytest.mark.parametrize("n_states", [2, "auto"])
def test_fit_each_depends_on_its_object_alone(kind, n_states):
    X = symbols(6, lengths=(20, 120)) if kind == "symbols" else series(7)
    emission = CategoricalEstimator(3) if kind == "symbols" else "gaussian"
    estimator = HMMEstimator(n_states, emission, max_iter=60, tol=1e-2, n_init=2)
    models = estimator.fit_each(X)
    backwards = estimator.fit_each(X[::-1])[::-1]
    alone = [estimator.fit_each([x])[0] for x in X[:4]]
    assert models == backwards
    assert models[:4] == alone
    assert len(models) == len(X)


def test_fit_each_equals_fit_on_one_sequence():
    X = symbols(8, count=3, lengths=(30, 40))
    start = random_hmm(np.random.default_rng(9), n=2)
    estimator = HMMEstimator(init=start, max_iter=10, tol=0)
    for x, model in zip(X, estimator.fit_each(X)):
        np.testing.assert_allclose(model.transitions, estimator.fit([x]).model_.transitions, rtol=1e-9)


def test_maximize_is_the_m_step():
    X = symbols(10)
    start = random_hmm(np.random.default_rng(11), n=2)
    estimator = HMMEstimator(init=start, max_iter=1, tol=0)
    stepped = estimator.maximize(start.statistics(X).total())
    np.testing.assert_allclose(stepped.transitions, estimator.fit(X).model_.transitions, rtol=1e-12)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_do_not_depend_on_threads(n_jobs):
    X = symbols(12, count=100)
    assert HMMEstimator(3, n_jobs=n_jobs).fit(X).model_ == HMMEstimator(3).fit(X).model_


@pytest.mark.parametrize(("length", "m"), list(itertools.product([1, 10, 100, 5000], [2, 4, 20])))
def test_rule_for_the_number_of_states(length, m):
    n = states_by_length(length, m, 0.1)
    # n - 1 is the largest integer not above the root of (n - 1)(n + m + 1) = 0.1 L.
    assert n >= 2

    def load(k):
        return (k - 1) * (k + m + 1)

    assert load(n - 1) <= 0.1 * length + 1e-9 < load(n)


@pytest.mark.parametrize("init", ["random", "segmental", "kmeans", "auto"])
def test_every_first_guess_works_on_vectors_with_gaps(init):
    fitted = HMMEstimator(3, init=init, max_iter=50, tol=1e-3).fit(series(13, missing=0.3))
    assert np.isfinite(fitted.history_).all()


def test_alphabet_is_kept_and_unseen_symbols_are_improbable_not_impossible():
    model = HMMEstimator(2, CategoricalEstimator("dna"), tol=1e-3).fit(["acac", "ccaa"]).model_
    assert model.emissions.alphabet.name == "dna"
    assert np.isfinite(model.log_prob(["GTN"])).all()


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({"n_states": 0}, ["ab"], "n_states.*int >= 1"),
        ({"emission": "weibull"}, ["ab"], "'auto', 'bernoulli', 'categorical'"),
        ({"init": "kmeans"}, ["ab"], "needs vectors"),
        ({"init": "magic"}, ["ab"], "must be one of"),
        ({"structure": "ring"}, ["ab"], "must be one of"),
        ({"tol": -1}, ["ab"], ">= 0"),
        ({"emission": GaussianEstimator(), "min_covar": 0.1}, [[0.1, 0.2]], "belongs to the emission"),
        ({"n_states": 3, "init": random_hmm(np.random.default_rng(0))}, [[0, 1]], "make them agree"),
        ({}, [], "0 sample"),
        ({}, ["ab", ""], "object 1"),
    ],
)
def test_errors_say_what_and_what_to_do(parameters, X, message):
    with pytest.raises(ValueError, match=message):
        HMMEstimator(**parameters).fit(X)


def test_clone_and_params():
    estimator = HMMEstimator(3, GaussianEstimator("full"), random_state=5)
    assert clone(estimator).get_params()["emission__covariance"] == "full"


def test_constant_and_short_data_are_legal():
    fitted = HMMEstimator(3, tol=1e-3).fit([np.zeros((4, 2)), np.zeros((1, 2))])
    assert np.isfinite(fitted.model_.log_prob([np.zeros((2, 2))])).all()


def test_emission_stack_of_one_state():
    model = HMMEstimator(1).fit([[0, 1, 1], [1]]).model_
    np.testing.assert_allclose(model.emissions.probs, [[1.01 / 4.02, 3.01 / 4.02]], rtol=1e-9)
    assert isinstance(model.emissions, Categorical)


@pytest.mark.parametrize("kind", ["symbols", "series"])
def test_random_guesses_have_states_that_differ(kind):
    # States that start equal stay equal: the more data, the more a guess must not average over them.
    X = symbols(14, count=500) if kind == "symbols" else series(15, count=500)
    model = HMMEstimator(3, init="random", max_iter=0).fit(X).model_
    spread = model.emissions.probs if kind == "symbols" else model.emissions.mean
    assert np.ptp(spread, axis=0).max() > 0.2


# --- a model to start from, and the other parameters


def test_a_start_that_contradicts_other_parameters_is_refused():
    symbols, X = HMM([0.5, 0.5], np.full((2, 2), 0.5), Categorical(np.full((2, 4), 0.25), "dna")), ["ACGT", "AAC"]
    vectors, series = HMM([1.0, 0.0], np.eye(2), Gaussian(np.zeros((2, 1)), np.ones((2, 1)))), [np.arange(4.0)]

    def refuse(match, model, data, **parameters):
        for fit in (HMMEstimator.fit, HMMEstimator.fit_each):
            with pytest.raises(ValueError, match=match):
                fit(HMMEstimator(init=model, max_iter=1, tol=0, **parameters), data)

    refuse("'init' goes from state 1 to 0, which structure='left-right' forbids", symbols, X, structure="left-right")
    late = HMM([0.5, 0.5], [[0.5, 0.5], [0.0, 1.0]], symbols.emissions)
    refuse("'init' starts in other states than 0", late, X, structure="left-right")
    refuse("ending='stop', and 'init' has no such probabilities", symbols, X, ending="stop")
    ends = HMM([0.5, 0.5], np.full((2, 2), 0.5), symbols.emissions, end=[0.5, 0.5])
    refuse("ending='stop', and 'init' has end probabilities", ends, X, ending="stop")
    for emission in ("gaussian", GaussianEstimator()):
        refuse(r"'init' has emissions Categorical\(.*, and 'emission' is .*aussian", symbols, X, emission=emission)
    refuse(r"'emission' asks for .*Alphabet\('protein'\)", symbols, X, emission=CategoricalEstimator("protein"))
    refuse("'emission' asks for ", symbols, X, emission=CategoricalEstimator("ACGT"))
    refuse(r"cov=\(2, 1, 1\)", vectors, series, emission=GaussianEstimator("full"))
    # What agrees is taken, and what is not said follows from the start.
    for emission in ("auto", "categorical", CategoricalEstimator(), CategoricalEstimator("dna")):
        fitted = HMMEstimator(emission=emission, init=ends, max_iter=1, tol=0).fit(X).model_
        assert fitted.emissions.alphabet.name == "dna"
        assert fitted.end is not None
    spelled = HMMEstimator(emission=CategoricalEstimator("dna", missing="!"), init=ends, max_iter=1, tol=0)
    assert spelled.fit(["AC!"]).model_ == HMMEstimator(init=ends, max_iter=1, tol=0).fit(["ACN"]).model_
    assert HMMEstimator(ending="end", init=ends, max_iter=1, tol=0).fit(X).model_.end is not None
    assert HMMEstimator(init=ends).resolve(["AC"]).fit(X).model_.emissions.alphabet.name == "dna"
    full = HMM([1.0, 0.0], np.eye(2), Gaussian(np.zeros((2, 1)), np.ones((2, 1, 1))))
    fitted = HMMEstimator(emission="gaussian", init=full, max_iter=2, tol=0).fit(series)
    assert fitted.model_.emissions.cov.ndim == 3
    assert (fitted.model_.start[1], fitted.model_.transitions[0, 1]) == (0.0, 0.0)  # its zeros are no pseudocount's
    assert np.isfinite(fitted.history_).all()


@pytest.mark.parametrize("family", ["categorical", "diagonal"])
@pytest.mark.parametrize("ending", [None, "stop", "end"])
def test_the_step_sums_statistics_of_objects(family, ending):
    rng = np.random.default_rng(3)
    model = random_hmm(rng, family, 2, ending=ending)
    X = [random_sequence(rng, family, int(length)) for length in rng.integers(1, 9, 5)]
    step = HMMEstimator(2).maximize
    summed, by_objects, first = (
        step(statistics).parameters()
        for statistics in (model.statistics(X, totals=True), model.statistics(X), model.statistics(X[:1]))
    )
    np.testing.assert_allclose(by_objects, summed, rtol=1e-12, atol=1e-12)
    assert np.abs(by_objects - first).max() > 1e-3


def test_columns_without_any_value_are_refused():
    """As the estimator of the emissions alone refuses them: nothing is known of their mean."""
    nothing, half = np.full(3, np.nan), np.column_stack([np.arange(3.0), np.full(3, np.nan)])
    for fit in (HMMEstimator.fit, HMMEstimator.fit_each):
        with pytest.raises(ValueError, match="no observed value in column 0"):
            fit(HMMEstimator(2), [nothing])
        with pytest.raises(ValueError, match="no observed value in column 1"):
            fit(HMMEstimator(2), [half])
    with pytest.raises(ValueError, match="object 1 has no observed value in column 0"):
        HMMEstimator(2).fit_each([np.arange(3.0), nothing])
    assert np.isfinite(HMMEstimator(2).fit([np.arange(3.0), nothing]).model_.parameters()).all()

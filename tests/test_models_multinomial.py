"""Rows of counts: Multinomial, DirichletMultinomial and their estimator."""

import copy
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from genkern import (
    HMM,
    DirichletMultinomial,
    FisherScore,
    FitEach,
    Gaussian,
    Geometric,
    HMMEstimator,
    Multinomial,
    MultinomialEstimator,
    Poisson,
    Store,
    check_score,
)
from genkern.data.objects import object_digests
from tests.cases import rows

TOTALS = {"given": None, "fixed": 4, "poisson": Poisson(3.0), "geometric": Geometric(0.4)}


def row_list(total, m=3):
    """All rows of m counts with a given sum."""
    return np.array([c for c in itertools.product(range(total + 1), repeat=m) if sum(c) == total], dtype=float)


def models(total=None, ordered=True, seed=0, m=3):
    rng = np.random.default_rng(seed)
    return [
        Multinomial(rows(rng, m), total, ordered),
        DirichletMultinomial(rng.random(m) * 3 + 0.1, total, ordered),
    ]


def documents(rng, n=30, m=3, total=None):
    sums = np.full(n, total) if total is not None else rng.integers(0, 7, n)
    return rng.multinomial(sums, rows(rng, m)).astype(float)


# --- densities


def test_unordered_densities_are_those_of_scipy():
    X = row_list(5)
    multinomial, dirichlet = models(5, ordered=False)
    np.testing.assert_allclose(multinomial.log_prob(X), stats.multinomial(5, multinomial.probs).logpmf(X), rtol=1e-10)
    expected = stats.dirichlet_multinomial(dirichlet.alpha, 5).logpmf(X.astype(int))
    np.testing.assert_allclose(dirichlet.log_prob(X), expected, rtol=1e-10)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("law", TOTALS)
def test_probabilities_sum_to_one(which, law):
    total = TOTALS[law]
    unordered, ordered = (models(total, flag)[which] for flag in (False, True))
    mass = lists = 0.0
    for s in [4] if law in ("given", "fixed") else range(11):
        mass += np.exp(unordered.log_prob(row_list(s))).sum()
        if s < 6:
            words = np.array([np.bincount(word, minlength=3) for word in itertools.product(range(3), repeat=s)])
            weight = np.exp(ordered.log_prob(words.reshape(-1, 3))).sum()
            expected = {"poisson": stats.poisson(3.0).pmf(s), "geometric": 0.4 * 0.6**s}.get(law, 1.0)
            np.testing.assert_allclose(weight, expected, rtol=1e-12)
            lists += weight
    beyond = {"poisson": stats.poisson(3.0).sf(10), "geometric": 0.6**11}.get(law, 0.0)
    np.testing.assert_allclose(mass, 1.0 - beyond, rtol=1e-12)
    assert 0.0 < lists <= 1.0 + 1e-12


def test_a_dirichlet_multinomial_is_a_mixture_of_multinomials():
    alpha = np.array([0.7, 2.5])
    grid, weights = np.polynomial.legendre.leggauss(400)
    theta = 0.5 + 0.5 * np.sin(0.5 * np.pi * grid)  # crowds the ends, where a density may be infinite
    weights = weights * 0.25 * np.pi * np.cos(0.5 * np.pi * grid)
    prior = stats.beta(*alpha).pdf(theta) * weights
    X = np.array([[3, 0], [1, 2], [0, 5], [0, 0]])
    expected = [(prior * theta**a * (1 - theta) ** b).sum() for a, b in X]
    np.testing.assert_allclose(np.exp(DirichletMultinomial(alpha).log_prob(X)), expected, rtol=1e-5)


def test_zero_probabilities_and_empty_rows_are_legal():
    model = Multinomial([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    X = np.array([[1, 0, 0], [1, 0, 2], [0, 0, 0]])
    expected = [[np.log(0.5), np.log(0.2)], [-np.inf, np.log(0.2 * 0.25)], [0.0, 0.0]]
    for points in (X, scipy.sparse.csr_array(X)):
        np.testing.assert_allclose(model.log_prob(points), expected, rtol=1e-12)
    assert np.isfinite(model[0].log_prob_grad(X[[0, 2]], "ratio")).all()
    with pytest.raises(ValueError, match="object 1 has probability zero"):
        model[0].statistics(X)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("law", TOTALS)
@pytest.mark.parametrize("ordered", [True, False])
def test_sparse_rows_are_dense_rows(which, law, ordered):
    model = models(TOTALS[law], ordered)[which]
    X = documents(np.random.default_rng(1), total=4)
    dense = model.log_prob(X)
    for kind in (scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.coo_array):
        np.testing.assert_allclose(model.log_prob(kind(X.astype(int))), dense, rtol=1e-12)
    gradient = model.log_prob_grad(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(gradient, model.log_prob_grad(X), rtol=1e-12, atol=1e-12)


def test_bags_of_rows_are_sums():
    X = documents(np.random.default_rng(2))
    for model in models(Poisson(3.0), ordered=False):
        bags = [X[:5], X[5:6], X[6:]]
        np.testing.assert_allclose(model.log_prob(bags), [model.log_prob(bag).sum() for bag in bags], rtol=1e-12)


# --- derivatives and information


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), law=st.sampled_from(list(TOTALS)), ordered=st.booleans())
def test_scores_match_differences(seed, law, ordered):
    rng = np.random.default_rng(seed)
    X = documents(rng, 6, total=4)
    for model in models(TOTALS[law], ordered, seed):
        assert max(check_score(model, [X[:4], X[4:]]).values()) < 1e-6
        assert max(check_score(model, scipy.sparse.csr_array(X)).values()) < 1e-6


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("law", ["fixed", "poisson"])
@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt"])
def test_information_is_the_second_moment_of_scores(which, law, coordinates):
    model = models(TOTALS[law], ordered=False)[which]
    X = np.concatenate([row_list(s) for s in ([4] if law == "fixed" else range(24))])
    scores = model.log_prob_grad(X, coordinates)
    weights = np.exp(model.log_prob(X))
    block = model.stack([model]).member_information(np.ones(1), coordinates)[0]
    np.testing.assert_allclose(block, (weights * scores.T) @ scores, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(weights @ scores, 0.0, atol=1e-7)


def test_information_of_random_totals_is_that_of_their_mean():
    probs = models()[0].probs
    one, many = (
        Multinomial([probs], total).member_information(np.ones(1), "ratio")[0] for total in (1, Geometric(0.4))
    )
    np.testing.assert_allclose(many, 1.5 * one, rtol=1e-12)


def test_information_of_given_totals_is_that_of_one_draw():
    for model in models():
        scores = model.log_prob_grad(np.eye(3))
        moment = (np.exp(model.log_prob(np.eye(3))) * scores.T) @ scores
        block = model.stack([model]).member_information(np.ones(1), "softmax")[0]
        np.testing.assert_allclose(block, moment, rtol=1e-10, atol=1e-12)


def test_fisher_kernel_is_linear_in_counts():
    X = documents(np.random.default_rng(3))
    model = models()[0]
    for points in (X, scipy.sparse.csr_array(X)):
        features = FisherScore(model).fit(points).transform(points)
        expected = (X / model.probs) @ X.T - np.outer(X.sum(axis=1), X.sum(axis=1))
        np.testing.assert_allclose(features @ features.T, expected, atol=1e-9)


# --- sampling


@pytest.mark.parametrize("which", [0, 1])
def test_sample_and_density_agree(which):
    model = models(3, ordered=False)[which]
    draws = np.concatenate(model.sample(2000, length=2, rng=0))
    outcomes = row_list(3)
    counts = [(draws == outcome).all(axis=1).sum() for outcome in outcomes]
    assert sum(counts) == 4000
    assert stats.chisquare(counts, 4000 * np.exp(model.log_prob(outcomes))).pvalue > 1e-3


@pytest.mark.parametrize("law", ["poisson", "geometric"])
def test_sampled_totals_follow_their_law(law):
    expected = {"poisson": stats.poisson(3.0), "geometric": stats.geom(0.4, loc=-1)}[law]
    for model in models(TOTALS[law]):
        sums = np.concatenate(model.sample(3000, rng=1)).sum(axis=1)
        counts = np.bincount(np.minimum(sums, 8).astype(int), minlength=9)
        chances = np.append(expected.pmf(np.arange(8)), expected.sf(7))
        assert stats.chisquare(counts, 3000 * chances).pvalue > 1e-3


def test_tiny_parameters_give_rows_of_one_outcome():
    draws = np.concatenate(DirichletMultinomial(np.full(4, 1e-4), total=6).sample(200, rng=0))
    assert (draws.max(axis=1) == 6).mean() > 0.95


# --- stacks and values


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("law", TOTALS)
def test_stacks_share_the_law_of_totals(which, law):
    total = TOTALS[law]
    members = [models(total, seed=seed)[which] for seed in range(3)]
    stack = type(members[0]).stack(members)
    assert stack.shape == (3,)
    assert stack.total == total
    assert stack.unstack() == members
    assert [stack[i] for i in range(3)] == members
    for twin in (pickle.loads(pickle.dumps(stack)), copy.deepcopy(stack)):
        assert twin == stack
    X = documents(np.random.default_rng(4), total=4)
    np.testing.assert_allclose(stack.log_prob(X), np.stack([m.log_prob(X) for m in members], axis=1), rtol=1e-12)
    vector = stack.parameters("sqrt")
    back = stack.with_parameters(vector, "sqrt")
    np.testing.assert_allclose(back.log_prob(X), stack.log_prob(X), rtol=1e-12)
    assert len(stack.parameter_names) == len(vector) == 9
    other = models(7, seed=0)[which]
    with pytest.raises(ValueError, match="same 'total'"):
        type(other).stack([members[0], other])


@pytest.mark.parametrize("which", [0, 1])
def test_own_members_belong_to_their_objects(which):
    rng = np.random.default_rng(5)
    stack = type(models()[which]).stack([models(Poisson(3.0), False, seed)[which] for seed in range(6)])
    own = stack[np.arange(6).reshape(2, 3)]
    X = [documents(rng, 4), documents(rng, 2)]
    packed = own.pack(X)
    logs = own.own_log_density(packed)
    sparse = packed._replace(values=scipy.sparse.csr_array(packed.values))
    np.testing.assert_allclose(own.own_log_density(sparse), logs, rtol=1e-12)
    np.testing.assert_allclose(logs[:4], own[0].log_density(X[0]), rtol=1e-12)
    np.testing.assert_allclose(logs[4:], own[1].log_density(X[1]), rtol=1e-12)
    weights = rng.random((6, 3))
    for name, block in own.weigh(packed, weights, totals=False).items():
        for i, part in enumerate((weights[:4], weights[4:])):
            alone = own[i].weigh(own.pack([X[i]]), part, totals=False)[name]
            np.testing.assert_allclose(block[i], alone[0], rtol=1e-12)
    if which == 0:
        spiked = Multinomial([[[1.0, 0.0, 0.0]], [[0.5, 0.5, 0.0]]])
        logs = spiked.own_log_density(spiked.pack([[[1, 0, 0], [0, 1, 0]], [[1, 1, 0]]]))
        np.testing.assert_allclose(logs[:, 0], [0.0, -np.inf, np.log(0.25)], rtol=1e-12)


def test_hmm_emissions_of_given_totals():
    rng = np.random.default_rng(6)
    emissions = Multinomial(rows(rng, 2, 3), None)
    model = HMM(rows(rng, 2), rows(rng, 2, 2), emissions)
    X = [documents(rng, 5), documents(rng, 3)]
    for x, value in zip(X, model.log_prob(X)):
        total = 0.0
        for path in itertools.product(range(2), repeat=len(x)):
            weight = model.start[path[0]]
            for t, k in enumerate(path):
                weight *= (model.transitions[path[t - 1], k] if t else 1.0) * np.prod(emissions.probs[k] ** x[t])
            total += weight
        np.testing.assert_allclose(value, np.log(total), rtol=1e-10)
    assert max(check_score(model, X).values()) < 1e-6


def test_hmm_of_documents_is_recovered_and_em_never_falls():
    emissions = Multinomial([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], 8)
    true = HMM([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], emissions)
    X = true.sample(40, length=30, rng=0)
    estimator = HMMEstimator(2, emission=MultinomialEstimator(total=8), random_state=0).fit(X)
    history = np.array(estimator.history_)
    assert np.diff(history).min() >= -1e-9 * abs(history[-1])
    order = np.argsort(-estimator.model_.emissions.probs[:, 0])
    np.testing.assert_allclose(estimator.model_.emissions.probs[order], emissions.probs, atol=0.03)
    assert estimator.model_.emissions.total == 8
    assert HMMEstimator(2, emission="multinomial", max_iter=2, tol=0).fit(X).model_.emissions.total is None
    with pytest.raises(ValueError, match="M-step"):
        HMMEstimator(2, emission=MultinomialEstimator(estimate="predictive")).fit(X)


# --- estimation


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_estimates_are_smoothed_shares(kind):
    X = kind(np.array([[2, 1, 0], [1, 0, 0]]))
    counts = np.array([3.0, 1.0, 0.0])
    for estimate, extra in (("ml", 0.0), ("map", 0.5)):
        model = MultinomialEstimator(estimate=estimate, pseudocount=0.5).fit(X).model_
        np.testing.assert_allclose(model.probs, (counts + extra) / (counts + extra).sum(), rtol=1e-12)
    model = (
        MultinomialEstimator(total=Poisson(2.0), ordered=False, estimate="predictive", pseudocount=0.5).fit(X).model_
    )
    assert model == DirichletMultinomial(counts + 1.5, Poisson(2.0), ordered=False)


@pytest.mark.parametrize("estimate", ["ml", "map", "predictive"])
def test_fit_each_equals_fits_one_by_one(estimate):
    X = documents(np.random.default_rng(7), 12) + 1
    estimator = MultinomialEstimator(estimate=estimate)
    together = estimator.fit_each([X[:4], X[4:5], X[5:]])
    for bag, model in zip([X[:4], X[4:5], X[5:]], together):
        assert estimator.fit_each([bag])[0] == model
        field = model._fields[0]
        np.testing.assert_allclose(getattr(estimator.fit([bag]).model_, field), getattr(model, field), rtol=1e-12)
    for dense, sparse in zip(estimator.fit_each(X), estimator.fit_each(scipy.sparse.csr_array(X)), strict=True):
        assert dense == sparse


def test_maximize_gives_the_fit():
    X = documents(np.random.default_rng(8))
    estimator = MultinomialEstimator(pseudocount=0.2)
    for points in (X, scipy.sparse.csr_array(X)):
        fitted = estimator.fit(X).model_
        again = estimator.maximize(fitted.statistics(points))
        np.testing.assert_allclose(again.probs, fitted.probs, rtol=1e-12)


def test_large_sparse_matrices_are_never_made_dense():
    rng = np.random.default_rng(9)
    n, m = 20_000, 500_000  # 80 GB if dense
    columns = rng.integers(0, m, (n, 10))
    X = scipy.sparse.csr_array((np.ones(10 * n), columns.ravel(), 10 * np.arange(n + 1)), shape=(n, m))
    model = MultinomialEstimator().fit(X).model_
    expected = (np.bincount(columns.ravel(), minlength=m) + 0.01) / (10 * n + 0.01 * m)
    np.testing.assert_allclose(model.probs, expected, rtol=1e-10)
    np.testing.assert_allclose(model.log_prob(X), np.log(expected)[columns].sum(axis=1), rtol=1e-10)
    predictive = MultinomialEstimator(estimate="predictive").fit(X).model_
    assert np.isfinite(predictive.log_prob(X[:100])).all()


def test_fit_each_with_a_store_knows_sparse_rows_by_content():
    X = scipy.sparse.csr_array(documents(np.random.default_rng(10)))
    store = Store()
    models_ = FitEach(MultinomialEstimator(), store=store).fit_transform(X)
    assert models_ == MultinomialEstimator().fit_each(X)
    order = np.arange(X.shape[0])[::-1]
    packed = MultinomialEstimator().pack(X)
    assert object_digests(packed.take(order)) == object_digests(packed)[::-1]
    assert len(set(object_digests(packed))) == len({tuple(row) for row in X.toarray()})
    assert FitEach(MultinomialEstimator(), store=store).fit(X).transform(X[order]) == models_[::-1]


def test_the_callers_matrix_is_not_changed():
    X = scipy.sparse.csr_array((np.array([1.0, 1.0, 0.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    model = MultinomialEstimator(estimate="ml").fit(X).model_
    np.testing.assert_array_equal(model.probs, [0.0, 1.0])
    for old, new in zip(before, (X.data, X.indices, X.indptr)):
        np.testing.assert_array_equal(old, new)
    pack = MultinomialEstimator().pack
    clean = scipy.sparse.csr_array(X.toarray())
    assert object_digests(pack(X)) == object_digests(pack(clean))


def test_objects_without_counts_are_uniform():
    for estimate in ("ml", "map"):
        model = MultinomialEstimator(estimate=estimate).fit(np.zeros((2, 4))).model_
        np.testing.assert_allclose(model.probs, 0.25, rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Multinomial([0.5, 0.6]), "sum to 1"),
        (lambda: DirichletMultinomial([1.0, 0.0]), "positive.*index \\(1,\\)"),
        (lambda: Multinomial([0.5, 0.5], -1), "total"),
        (lambda: Multinomial([0.5, 0.5], 2.5), "total"),
        (lambda: Multinomial([0.5, 0.5], Gaussian(0.0, 1.0)), "Poisson or Geometric"),
        (lambda: Multinomial([0.5, 0.5], Poisson([1.0, 2.0])), "one dimension"),
        (lambda: Multinomial([0.5, 0.5], Poisson([[1.0], [2.0]])), "one Poisson"),
        (
            lambda: Multinomial([0.5, 0.5], 2).log_prob([[[1, 1]], [[2, 0], [1, 0]]]),
            "object 1, position 1 has 1",
        ),
        (lambda: Multinomial([0.5, 0.5]).log_prob(np.array([[1, 1], [1, np.nan]])), "object 1.*column 1 is nan.*leave"),
        (lambda: Multinomial([0.5, 0.5]).log_prob(np.array([[1, 1], [0.5, 1]])), "object 1.*column 0 is 0.5"),
        (lambda: MultinomialEstimator().fit(scipy.sparse.csr_array([[0, 1], [-1, 0]])), "object 1.*column 0 is -1"),
        (lambda: MultinomialEstimator(total=3).fit(scipy.sparse.csr_array([[0, 3], [2, 0]])), "object 1.*total=3"),
        (lambda: Multinomial([0.5, 0.5]).log_prob(np.ones((1, 3))), "3 features.*2 were expected"),
        (lambda: Multinomial([0.5, 0.5]).log_prob(scipy.sparse.csr_array(np.ones((1, 3)))), "2 were expected"),
        (lambda: MultinomialEstimator().fit(scipy.sparse.csr_array((0, 3))), "0 sample"),
        (lambda: Multinomial([0.5, 0.5]).sample(2), "Give the model a total"),
        (lambda: MultinomialEstimator(estimate="mean").fit(np.ones((1, 2))), "'ml', 'map', 'predictive'"),
        (lambda: MultinomialEstimator(pseudocount=-1).fit(np.ones((1, 2))), "pseudocount"),
    ],
)
def test_errors_say_what_and_what_to_do(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_sparse_sequences_are_refused():
    model = HMM([1.0], [[1.0]], Multinomial([[0.5, 0.5]]))
    with pytest.raises(TypeError, match="dense"):
        model.log_prob(scipy.sparse.csr_array(np.ones((2, 2))))


def test_a_total_may_be_nothing_but_not_less():
    for make in (Multinomial, DirichletMultinomial):
        empty = make([0.2, 0.3, 0.5], 0)
        assert empty.log_prob(np.zeros((1, 3)))[0] == 0.0
        with pytest.raises(ValueError, match="total"):
            make([0.2, 0.3, 0.5], -1)

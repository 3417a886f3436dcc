"""Factorial hidden Markov models against enumeration of joint paths, the product-space HMM and EM by hand."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from genkern import FactorialHMM, FactorialHMMEstimator, FisherScore, Gaussian, PlugInClassifier, check_score
from genkern.core.factorial import passes as core
from tests.cases import rows

KINDS = ("isotropic", "diagonal", "full")
E_STEPS = ("exact", "variational")


def random_model(rng, sizes=(2, 3), kind="diagonal", d=2, zeros=0.0, spread=1.5):
    half = rng.standard_normal((d, d))
    cov = {"isotropic": 0.7, "diagonal": rng.random(d) + 0.4, "full": half @ half.T + 0.3 * np.eye(d)}[kind]
    return FactorialHMM(
        [rows(rng, k, zeros=zeros) for k in sizes],
        [rows(rng, k, k, zeros=zeros) for k in sizes],
        [spread * rng.standard_normal((k, d)) for k in sizes],
        cov,
    )


def random_series(rng, lengths, d=2, missing=0.0):
    X = [2.0 * rng.standard_normal((int(n), d)) for n in lengths]
    for x in X:
        x[rng.random(x.shape) < missing] = np.nan
    return X


def full_cov(model):
    d = model.means[0].shape[1]
    return model.cov if model.cov.ndim == 2 else np.diag(np.broadcast_to(model.cov, d))


def log_density(model, states, x):
    """Log density of one point given the chains' states, missing entries left out."""
    seen = ~np.isnan(x)
    if not seen.any():
        return 0.0
    mean = sum(level[k] for level, k in zip(model.means, states))
    return stats.multivariate_normal(mean[seen], full_cov(model)[np.ix_(seen, seen)]).logpdf(x[seen])


def joint_paths(model, x):
    """All joint paths, (n_paths, T, C), and their log probabilities with x."""
    joint = list(itertools.product(*(range(k) for k in model.n_states)))
    density = {(t, q): log_density(model, q, point) for t, point in enumerate(x) for q in joint}
    paths, logs = [], []
    with np.errstate(divide="ignore"):
        starts, steps = [np.log(s) for s in model.starts], [np.log(a) for a in model.transitions]
    for path in itertools.product(joint, repeat=len(x)):
        total = sum(density[t, q] for t, q in enumerate(path))
        total += sum(s[k] for s, k in zip(starts, path[0]))
        for before, after in itertools.pairwise(path):
            total += sum(a[i, j] for a, i, j in zip(steps, before, after))
        paths.append(path)
        logs.append(total)
    return np.array(paths), np.array(logs)


def truth():
    stay = [[0.95, 0.05], [0.1, 0.9]]
    return FactorialHMM([[0.5, 0.5]] * 2, [stay] * 2, [[[0.0, 0.0], [3.0, 1.0]], [[0.0, 0.0], [-1.0, 2.0]]], [0.3, 0.2])


# --- the value


def test_a_model_is_a_frozen_value():
    rng = np.random.default_rng(0)
    model, other = random_model(rng), random_model(rng)
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert hash(again) == hash(model)
    assert model != other
    assert model.digest != FactorialHMM(model.starts, model.transitions, model.means[::1], 2 * model.cov).digest
    for value in (model, again):
        for array in (*value.starts, *value.transitions, *value.means, value.cov):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0.0
    assert repr(model).startswith("FactorialHMM(starts=((2,), (3,)), transitions=((2, 2), (3, 3)), means=((2, 2), ")
    stack = FactorialHMM.stack([model, other, model])
    assert stack.shape == (3,)
    assert stack[1] == other
    assert stack.unstack() == [model, other, model]
    assert stack[[0, 2]].shape == (2,)
    X = random_series(rng, (3, 1))
    np.testing.assert_array_equal(stack.log_prob(X)[:, 1], other.log_prob(X))
    with pytest.raises(ValueError, match="equally many 'starts'"):
        FactorialHMM.stack([model, random_model(rng, (2,))])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"starts": [[0.5, 0.5]]}, "one entry per chain"),
        ({"starts": [[0.5, 0.4], [1.0]]}, r"'starts\[0\]' must sum to 1"),
        ({"transitions": [np.eye(2), np.eye(2)]}, r"'transitions\[1\]' must have shape \(1, 1\)"),
        ({"means": [[[0.0], [1.0]], [[0.0, 1.0]]]}, "chain 1 must have .* means of shape"),
        ({"means": [[0.0, 1.0], [0.0]]}, r"chain 0 must have .* means of shape \(2, 1\)"),
        ({"cov": [[1.0]] * 3}, "'cov' must have shape"),
        ({"cov": -1.0}, "must not be negative"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    right = {"starts": [[0.5, 0.5], [1.0]], "transitions": [np.eye(2), [[1.0]]], "means": [[[0.0], [1.0]], [[0.0]]]}
    FactorialHMM(**right, cov=1.0)
    with pytest.raises(ValueError, match=message):
        FactorialHMM(**{**right, "cov": 1.0, **change})


# --- likelihood, posteriors, paths


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_everything_equals_the_enumeration_of_joint_paths(kind, missing):
    rng = np.random.default_rng(3)
    model = random_model(rng, (2, 3), kind, zeros=0.2)
    X = random_series(rng, (1, 3, 3), missing=missing)
    X[2][1] = np.nan
    log_prob, posterior, best = model.log_prob(X), model.posterior(X, pairs=True), model.viterbi(X)
    for i, x in enumerate(X):
        paths, logs = joint_paths(model, x)
        np.testing.assert_allclose(log_prob[i], logsumexp(logs), rtol=1e-12)
        weights = np.exp(logs - logsumexp(logs))
        np.testing.assert_array_equal(best[i], paths[np.argmax(logs)])
        gamma, xi = posterior[i]
        for c, k in enumerate(model.n_states):
            hot = np.eye(k)[paths[:, :, c]]
            np.testing.assert_allclose(gamma[c], np.einsum("p,ptk->tk", weights, hot), atol=1e-13)
            pairs = np.einsum("p,pti,ptj->tij", weights, hot[:, :-1], hot[:, 1:])
            np.testing.assert_allclose(xi[c], pairs, atol=1e-13)
    for plain, (gamma, _) in zip(model.posterior(X), posterior):
        for a, b in zip(plain, gamma):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("sizes", [(3,), (2, 2, 2), (3, 1, 4)])
def test_it_is_the_product_space_hmm(sizes):
    rng = np.random.default_rng(1)
    model = random_model(rng, sizes, "full", d=3, zeros=0.2)
    X = random_series(rng, (1, 7, 40), d=3, missing=0.2)
    hmm = model.to_hmm()
    np.testing.assert_allclose(model.log_prob(X), hmm.log_prob(X), rtol=1e-12)
    for ours, theirs in zip(model.viterbi(X), hmm.viterbi(X)):
        np.testing.assert_array_equal(np.ravel_multi_index(tuple(ours.T), sizes), theirs)


def test_what_leaves_the_range_of_scaled_arithmetic_is_redone_in_logarithms():
    # Chain 0 never changes; the first points say state 0 by more than float64 can hold, the others say state 1.
    steps = [np.eye(2), [[0.5, 0.5], [0.5, 0.5]]]
    model = FactorialHMM([[0.5, 0.5]] * 2, steps, [[[0.0], [60.0]], [[0.0], [1.0]]], 1.0)
    x = np.array([0.0, 60.0, 61.0, 60.0])[:, None]
    paths, logs = joint_paths(model, x)
    weights = np.exp(logs - logsumexp(logs))
    np.testing.assert_allclose(model.log_prob([x]), logsumexp(logs), rtol=1e-12)
    for c, gamma in enumerate(model.posterior([x])[0]):
        np.testing.assert_allclose(gamma[:, 1], weights @ paths[:, :, c], atol=1e-12)
    assert max(check_score(model, [x, x[:2]], "softmax").values()) < 1e-6
    assert np.isfinite(model.log_prob_grad([x], "raw")).all()
    bound = model.bound([x])
    assert np.isfinite(bound).all()
    assert bound <= model.log_prob([x])


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_both_arithmetics_agree(kind, monkeypatch):
    rng = np.random.default_rng(2)
    model = random_model(rng, (2, 3, 2), kind, zeros=0.3)
    X = random_series(rng, (1, 2, 30), missing=0.2)
    scaled = model.log_prob(X), model.log_prob_grad(X, "raw"), model.posterior(X)
    plain = core._as_problem
    monkeypatch.setattr(core, "_as_problem", lambda c, e, o, logs: plain(c, e, o, True))
    np.testing.assert_allclose(model.log_prob(X), scaled[0], rtol=1e-12)
    np.testing.assert_allclose(model.log_prob_grad(X, "raw"), scaled[1], rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(model.posterior(X), scaled[2]):
        for a, b in zip(ours, theirs):
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_densities_integrate_to_one():
    model = random_model(np.random.default_rng(4), (2, 2), d=1)
    grid = np.linspace(-15.0, 15.0, 241)
    X = [np.array(pair) for pair in itertools.product(grid, repeat=2)]
    np.testing.assert_allclose(np.exp(model.log_prob(X)).sum() * (grid[1] - grid[0]) ** 2, 1.0, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_the_density(kind):
    rng = np.random.default_rng(5)
    model = random_model(rng, (2, 3), kind)
    X = np.array(model.sample(4000, length=3, rng=0))
    occupancy = [s @ np.linalg.matrix_power(a, 2) for s, a in zip(model.starts, model.transitions)]
    weights = np.outer(*occupancy).ravel()
    means = (model.means[0][:, None, :] + model.means[1][None, :, :]).reshape(-1, 2)
    deviations = np.sqrt(np.diag(full_cov(model)))
    for j in range(2):

        def cdf(x, j=j):
            return stats.norm.cdf(x[:, None], means[:, j], deviations[j]) @ weights

        assert stats.kstest(X[:, 2, j], cdf).pvalue > 0.01
    # Under the right density the probability integral transform of log p has the law of other draws.
    again = model.log_prob(model.sample(4000, length=3, rng=1))
    assert stats.ks_2samp(model.log_prob(X), again).pvalue > 0.01
    centre = np.cov(X[:, 2].T) - (weights * (means - weights @ means).T) @ (means - weights @ means)
    np.testing.assert_allclose(centre, full_cov(model), atol=0.25)
    with pytest.raises(ValueError, match="give length="):
        model.sample(1)


# --- derivatives


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 2), (2, 1, 3, 2)])
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_agree_with_differences(kind, sizes):
    rng = np.random.default_rng(6)
    model = random_model(rng, sizes, kind, zeros=0.2)
    X = random_series(rng, (1, 6, 4), missing=0.3)
    X[2][0] = np.nan
    assert max(check_score(model, X).values()) < 1e-7


def test_statistics_are_sums_and_finite_at_zero_parameters():
    rng = np.random.default_rng(7)
    model = random_model(rng, (2, 3), "full", zeros=0.5)
    X = random_series(rng, (5, 1, 9), missing=0.2)
    each, total = model.statistics(X), model.statistics(X, totals=True)
    for name, block in each.blocks.items():
        assert np.isfinite(block).all()
        np.testing.assert_allclose(total[name], block.sum(axis=0, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose((model.starts[1] * each["starts[1]"]).sum(axis=1), 1.0, rtol=1e-12)
    counts = (model.transitions[0] * each["transitions[0]"]).sum(axis=(1, 2))
    np.testing.assert_allclose(counts, [4, 0, 8], rtol=1e-12)
    stack = FactorialHMM.stack([model, random_model(rng, (2, 3), "full"), model])
    own = stack.statistics(X)
    np.testing.assert_array_equal(own["means"][2], each["means"][2])
    with pytest.raises(ValueError, match="one per object"):
        stack.statistics(X[:2])


def test_the_vector_of_parameters_is_the_model():
    model = random_model(np.random.default_rng(8), (2, 3), "full", zeros=0.3)
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        vector = model.parameters(coordinates)
        again = model.with_parameters(vector, coordinates)
        assert len(vector) == len(model.parameter_names) == len(set(model.parameter_names))
        for field in ("starts", "transitions", "means"):
            for a, b in zip(getattr(again, field), getattr(model, field)):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(again.cov, model.cov, rtol=1e-12)
    assert model.parameter_names[5:8] == ["transitions[0,0,0]", "transitions[0,0,1]", "transitions[0,1,0]"]
    assert model.parameter_names[-1] == "cov[1,1]"


def test_the_means_information_is_that_of_complete_data():
    rng = np.random.default_rng(9)
    model = random_model(rng, (2, 3), "full")
    lengths = np.array([1, 3])
    blocks = model.information(lengths, "softmax")
    index, block = blocks[-2]
    expected = np.zeros((5, 5))
    for t, share in enumerate((1.0, 0.5, 0.5)):
        occupancy = [s @ np.linalg.matrix_power(a, t) for s, a in zip(model.starts, model.transitions)]
        for i, j in itertools.product(range(2), range(3)):
            u = np.concatenate([np.eye(2)[i], np.eye(3)[j]])
            expected += share * occupancy[0][i] * occupancy[1][j] * np.outer(u, u)
    np.testing.assert_allclose(block, np.kron(expected, np.linalg.inv(model.cov)), rtol=1e-10)
    assert [model.parameter_names[i] for i in index[[0, -1]]] == ["means[0,0,0]", "means[1,2,1]"]
    assert sum(len(i) for i, _ in blocks) == len(model.parameter_names)


def test_fisher_scores_and_class_models():
    rng = np.random.default_rng(10)
    model = random_model(rng, (2, 2))
    X = model.sample(12, length=6, rng=0)
    kernels = []
    for coordinates in ("softmax", "ratio", "sqrt"):
        features = FisherScore(model, coordinates=coordinates).fit_transform(X)
        kernels.append(features @ features.T)
    np.testing.assert_allclose(kernels[1], kernels[0], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(kernels[2], kernels[0], rtol=1e-7, atol=1e-7)
    for information in ("identity", "diagonal", "empirical"):
        assert np.isfinite(FisherScore(model, information=information).fit_transform(X)).all()
    labels = np.repeat([0, 1], 12)
    both = X + [x + 3.0 for x in X]
    classifier = PlugInClassifier(FactorialHMMEstimator(n_init=1, tol=1e-3)).fit(both, labels)
    assert (classifier.predict(both) == labels).mean() > 0.9


# --- algebra


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(KINDS))
def test_order_of_chains_and_moved_constants_do_not_matter(seed, kind):
    rng = np.random.default_rng(seed)
    model = random_model(rng, (2, 3, 2), kind)
    X = random_series(rng, rng.integers(1, 9, 3), missing=0.2)
    shift = 10.0 * rng.standard_normal(2)
    means = (model.means[0] + shift, model.means[1] - shift, model.means[2])
    moved = FactorialHMM(model.starts, model.transitions, means, model.cov)
    turned = FactorialHMM(model.starts[::-1], model.transitions[::-1], model.means[::-1], model.cov)
    for other in (moved, turned):
        np.testing.assert_allclose(other.log_prob(X), model.log_prob(X), rtol=1e-9, atol=1e-9)
    far = FactorialHMM(model.starts, model.transitions, (model.means[0] + 1e6, *model.means[1:]), model.cov)
    np.testing.assert_allclose(far.log_prob([x + 1e6 for x in X]), model.log_prob(X), rtol=1e-6, atol=1e-6)


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(KINDS))
def test_an_object_does_not_notice_its_neighbours(seed, kind):
    rng = np.random.default_rng(seed)
    model = random_model(rng, (2, 3), kind)
    X = random_series(rng, rng.integers(1, 12, 8), missing=0.2)
    order = rng.permutation(len(X))
    np.testing.assert_array_equal(model.log_prob([X[i] for i in order], n_jobs=2), model.log_prob(X)[order])
    np.testing.assert_array_equal(model.bound([X[i] for i in order]), model.bound(X)[order])
    for i in range(len(X)):
        np.testing.assert_array_equal(model.bound(X[i : i + 1], tol=0.05), model.bound(X, tol=0.05)[i : i + 1])
    np.testing.assert_allclose(model.log_prob_grad(X[3:4]), model.log_prob_grad(X)[3:4], rtol=1e-12, atol=1e-12)


def test_blocks_of_objects_and_threads_do_not_matter(monkeypatch):
    rng = np.random.default_rng(11)
    model = random_model(rng, (2, 2))
    X = random_series(rng, rng.integers(1, 30, 20), missing=0.1)
    whole, total = model.log_prob_grad(X), model.statistics(X, totals=True)
    monkeypatch.setattr("genkern.models.factorial.passes.BATCH_POSITIONS", 40)
    np.testing.assert_array_equal(model.log_prob(X, n_jobs=2), model.log_prob(X))
    np.testing.assert_allclose(model.log_prob_grad(X, n_jobs=2), whole, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.statistics(X, True, n_jobs=2)["pairs"], total["pairs"], rtol=1e-12)


# --- the bound


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_below_and_rises_with_every_sweep(kind):
    rng = np.random.default_rng(12)
    model = random_model(rng, (2, 3, 2), kind)
    X = random_series(rng, rng.integers(1, 15, 8), missing=0.2)
    bounds = np.array([model.bound(X, max_iter=n, tol=0) for n in range(1, 12)])
    assert np.diff(bounds, axis=0).min() >= -1e-10
    assert (bounds[-1] <= model.log_prob(X) + 1e-10).all()
    assert bounds[-1].sum() < model.log_prob(X).sum() - 1e-3
    for gamma in model.variational_posterior(X):
        for marginal in gamma:
            np.testing.assert_allclose(marginal.sum(axis=1), 1.0, rtol=1e-12)


def test_the_bound_is_tight_where_chains_do_not_meet():
    rng = np.random.default_rng(13)
    model = random_model(rng, (2, 3))
    apart = [level * axis for level, axis in zip(model.means, np.eye(2))]
    model = FactorialHMM(model.starts, model.transitions, apart, model.cov)
    X = random_series(rng, (1, 5, 20), missing=0.2)
    np.testing.assert_allclose(model.bound(X), model.log_prob(X), rtol=1e-12)
    for ours, exact in zip(model.variational_posterior(X), model.posterior(X)):
        for a, b in zip(ours, exact):
            np.testing.assert_allclose(a, b, atol=1e-12)
    single = random_model(rng, (3,), "full")
    np.testing.assert_allclose(single.bound(X), single.log_prob(X), rtol=1e-12)


def test_the_bound_is_the_expectation_under_its_posteriors():
    # With transitions that forget, Q is a product over time too: its expectation and entropy need no path.
    rng = np.random.default_rng(14)
    starts = [rows(rng, 2), rows(rng, 3)]
    steps = [np.tile(start, (len(start), 1)) for start in starts]
    model = FactorialHMM(starts, steps, [1.5 * rng.standard_normal((k, 2)) for k in (2, 3)], [0.5, 0.8])
    X = random_series(rng, (4,))
    first, second = model.variational_posterior(X, max_iter=3, tol=0)[0]
    total = 0.0
    for t, x in enumerate(X[0]):
        for i, j in itertools.product(range(2), range(3)):
            total += first[t, i] * second[t, j] * log_density(model, (i, j), x)
        for q, start in ((first[t], starts[0]), (second[t], starts[1])):
            total -= stats.entropy(q, start)
    np.testing.assert_allclose(model.bound(X, max_iter=3, tol=0)[0], total, rtol=1e-12)


def test_large_models_are_bounded_and_otherwise_refused():
    rng = np.random.default_rng(15)
    model = random_model(rng, (2,) * 13, spread=0.5)
    X = random_series(rng, (3, 5))
    for what in (model.log_prob, model.log_prob_grad, model.posterior, model.viterbi, model.statistics):
        with pytest.raises(ValueError, match=r"at most 4096 joint states.*8192 jointly. Use bound\(X\)"):
            what(X)
    with pytest.raises(ValueError, match="4096"):
        model.to_hmm()
    assert np.isfinite(model.bound(X)).all()
    assert len(model.sample(2, length=3, rng=0)) == 2
    with pytest.raises(ValueError, match="use e_step='variational'"):
        FactorialHMMEstimator(2, 13).fit(X)
    fitted = FactorialHMMEstimator(2, 13, "variational", n_init=1, max_iter=3, tol=0).fit(X)
    assert fitted.model_.n_chains == 13
    assert np.diff(fitted.history_).min() >= -1e-9 * abs(fitted.history_[-1])


# --- EM


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_em_is_the_one_done_by_hand_in_the_product_space(kind):
    rng = np.random.default_rng(16)
    model = random_model(rng, (2, 3), kind)
    X = random_series(rng, (9, 1, 14))
    estimator = FactorialHMMEstimator((2, 3), covariance=kind, pseudocount=0.3, min_covar=0.0)
    new = estimator.maximize(model.statistics(X))
    posterior = model.to_hmm().posterior(X, pairs=True)
    gamma = np.concatenate([g for g, _ in posterior]).reshape(-1, 2, 3)
    xi = np.concatenate([p for _, p in posterior]).sum(axis=0).reshape(2, 3, 2, 3)
    first = np.array([g[0] for g, _ in posterior]).sum(axis=0).reshape(2, 3)
    counts = [(first.sum(axis=1), xi.sum(axis=(1, 3))), (first.sum(axis=0), xi.sum(axis=(0, 2)))]
    for c, (start, steps) in enumerate(counts):
        np.testing.assert_allclose(new.starts[c], (start + 0.3) / (start + 0.3).sum(), rtol=1e-11)
        np.testing.assert_allclose(new.transitions[c], (steps + 0.3) / (steps + 0.3).sum(axis=1)[:, None], rtol=1e-11)
    # Weighted least squares over every point in every joint state.
    joint = list(itertools.product(range(2), range(3)))
    design = np.array([np.concatenate([np.eye(2)[i], np.eye(3)[j]]) for i, j in joint])
    points, weights = np.concatenate(X), gamma.reshape(-1, 6)
    roots = np.sqrt(weights).reshape(-1, 1)
    wide = roots * np.tile(design, (len(points), 1))
    solution = np.linalg.lstsq(wide, roots * np.repeat(points, 6, axis=0), rcond=None)[0]
    np.testing.assert_allclose(new.to_hmm().emissions.mean, design @ solution, rtol=1e-9, atol=1e-9)
    residual = np.repeat(points, 6, axis=0) - np.tile(design @ solution, (len(points), 1))
    cov = (roots * residual).T @ (roots * residual) / len(points)
    cov = {"isotropic": np.trace(cov) / 2, "diagonal": np.diag(cov), "full": cov}[kind]
    np.testing.assert_allclose(new.cov, cov, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("e_step", E_STEPS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_objective_never_falls(kind, e_step, missing):
    X = random_series(np.random.default_rng(17), (15, 9, 1, 20), missing=missing)
    estimator = FactorialHMMEstimator((3, 2), e_step=e_step, covariance=kind, n_init=2, max_iter=40, tol=0).fit(X)
    history = np.array(estimator.history_)
    assert len(history) == 41
    assert estimator.n_iter_ == 40
    assert np.diff(history).min() >= -1e-9 * np.abs(history).max()
    assert history[-1] > history[0] + 1.0
    model = estimator.model_
    prior = 0.01 * sum(np.log(a).sum() for a in (*model.starts, *model.transitions))
    if e_step == "exact":
        np.testing.assert_allclose(history[-1], model.log_prob(X).sum() + prior, rtol=1e-12)
    else:
        assert history[-1] <= model.log_prob(X).sum() + prior + 1e-9


def test_the_bound_does_not_fall_where_sweeps_stop_early(monkeypatch):
    monkeypatch.setattr("genkern.models.factorial.estimator.SWEEPS", 1)
    # Here one sweep from equal probabilities in every step, not from where the last stopped, loses 0.8 in a step.
    X = random_model(np.random.default_rng(5), (3, 3), "full", spread=3.0).sample(5, length=30, rng=0)
    estimator = FactorialHMMEstimator(3, 2, "variational", covariance="full", n_init=1, max_iter=40, tol=0).fit(X)
    assert np.diff(estimator.history_).min() >= -1e-9 * abs(estimator.history_[0])


@pytest.mark.parametrize("e_step", E_STEPS)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_known_means_are_recovered(e_step, missing):
    rng = np.random.default_rng(18)
    X = truth().sample(20, length=100, rng=1)
    for x in X:
        x[rng.random(x.shape) < missing] = np.nan
    estimator = FactorialHMMEstimator((2, 2), e_step=e_step).fit(X)
    assert estimator.converged_
    model = estimator.model_
    steps = [mean[1] - mean[0] for mean in model.means]
    steps = sorted((step * np.sign(step[1]) for step in steps), key=lambda step: step[1])
    np.testing.assert_allclose(steps, [[3.0, 1.0], [-1.0, 2.0]], atol=0.15)
    np.testing.assert_allclose(model.cov, [0.3, 0.2], atol=0.05)
    staying = np.sort(np.concatenate([np.diag(a) for a in model.transitions]))
    np.testing.assert_allclose(staying, [0.9, 0.9, 0.95, 0.95], atol=0.04)
    if e_step == "exact":
        assert model.log_prob(X).sum() > truth().log_prob(X).sum()


@pytest.mark.parametrize("e_step", E_STEPS)
@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_models_of_single_series_depend_on_their_series_alone(e_step, kind):
    X = random_series(np.random.default_rng(19), (12, 30, 5, 20, 12, 1), missing=0.1)
    estimator = FactorialHMMEstimator(e_step=e_step, covariance=kind, n_init=2, tol=1e-2, random_state=3)
    models = estimator.fit_each(X)
    turned = estimator.set_params(n_jobs=2).fit_each(X[::-1])
    alone = [estimator.fit_each([x])[0] for x in X]
    assert models == turned[::-1] == alone
    assert len({model.digest for model in models}) == len(X)
    with pytest.warns(ConvergenceWarning, match="of 6 models did not converge in 1 steps"):
        estimator.set_params(max_iter=1, tol=1e-6).fit_each(X)


def test_restarts_keep_the_best():
    sizes, rng = (3, 2), np.random.default_rng(1)
    steps = [0.9 * np.eye(k) + 0.1 / k for k in sizes]
    means = [2.0 * rng.standard_normal((k, 3)) for k in sizes]
    model = FactorialHMM([np.full(k, 1.0 / k) for k in sizes], steps, means, [0.3] * 3)
    X = model.sample(5, length=40, rng=1)
    finals = [FactorialHMMEstimator(sizes, n_init=n, max_iter=20, tol=0).fit(X).history_[-1] for n in (1, 2, 4)]
    assert finals[0] < finals[1] < finals[2]
    assert finals[2] > model.log_prob(X).sum() > finals[1]
    first, again = (FactorialHMMEstimator(sizes, n_init=2, max_iter=5, tol=0).fit(X).model_ for _ in range(2))
    assert first == again
    other = FactorialHMMEstimator(sizes, n_init=2, max_iter=5, tol=0, random_state=1).fit(X).model_
    assert first != other


# --- degenerate data and parameters


@pytest.mark.parametrize("e_step", E_STEPS)
@pytest.mark.parametrize(
    "X", [[np.ones((5, 2))], [np.ones((1, 2))], [np.full((4, 2), np.nan), np.ones((3, 2))]], ids=["equal", "one", "nan"]
)
def test_degenerate_series_are_fitted_down_to_the_floor(e_step, X):
    model = FactorialHMMEstimator(e_step=e_step, n_init=1).fit(X).model_
    np.testing.assert_allclose(model.cov, 1e-3, rtol=1e-6)
    assert np.isfinite(model.log_prob(X)).all()


def test_without_a_floor_equal_points_are_refused():
    with pytest.raises(ValueError, match=r"'cov' is singular.*min_covar"):
        FactorialHMMEstimator(relative_floor=0.0, n_init=1, tol=0).fit([np.ones((5, 2))])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_states": 2}, "n_states=2 needs n_chains"),
        ({"n_states": (2, 2), "n_chains": 3}, "must have one number for each of n_chains=3"),
        ({"n_states": (2, 0)}, "must be an int >= 1"),
        ({"n_states": ()}, "must have one number"),
        ({"e_step": "gibbs"}, "'e_step' parameter .* one of 'exact', 'variational'"),
        ({"covariance": "tied"}, "'covariance' parameter"),
        ({"min_covar": -1.0}, "'min_covar' parameter"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        FactorialHMMEstimator(**params).fit([np.ones((3, 1))])


def test_wrong_series_are_refused():
    model = random_model(np.random.default_rng(21))
    with pytest.raises(ValueError, match="2 were expected"):
        model.log_prob([np.ones((3, 1))])
    for what in (model.bound, model.variational_posterior):
        with pytest.raises(ValueError, match="'max_iter' parameter"):
            what([np.ones((3, 2))], max_iter=0)
    with pytest.raises(ValueError, match="not inf"):
        model.log_prob([np.full((3, 2), np.inf)])
    with pytest.raises(ValueError, match="singular"):
        FactorialHMM(model.starts, model.transitions, model.means, np.ones((2, 2))).log_prob([np.ones((3, 2))])
    stack = FactorialHMM.stack([model, model])
    for what in (stack.bound, stack.posterior, stack.viterbi, stack.log_prob_grad):
        with pytest.raises(ValueError, match="needs one model"):
            what([np.ones((3, 2))])


def test_noise_is_a_gaussian():
    model = random_model(np.random.default_rng(22), kind="full")
    assert model.noise == Gaussian(np.zeros(2), model.cov)
    assert (model.covariance_type, model.n_chains, model.n_states) == ("full", 2, (2, 3))

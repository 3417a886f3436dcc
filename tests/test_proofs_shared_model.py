"""The papers' identities about kernels from one model, by sums over all paths in eighty digits and by complex steps."""

import itertools
from decimal import Decimal, localcontext

import cases
import numpy as np
import pytest
from oracles_embed import tables
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from genkern import (
    HMM,
    Categorical,
    ClassMixture,
    FisherScore,
    Gaussian,
    KernelLogisticRegression,
    MarkovChain,
    Mixture,
    PlugInClassifier,
    Poisson,
    Polynomial,
    SiteModel,
    TopScore,
)

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")
STEP = Decimal(10) ** -25


def words(m, length):
    return [list(word) for word in itertools.product(range(m), repeat=length)]


def slopes(function, theta):
    """Return the value and the gradient of a function of Decimals, by central differences in eighty digits."""
    with localcontext() as context:
        context.prec = 80
        values = [Decimal(float(v)) for v in theta]
        gradient = []
        for j, value in enumerate(values):
            up, down = (function([*values[:j], value + h, *values[j + 1 :]]) for h in (STEP, -STEP))
            gradient.append(float((up - down) / (2 * STEP)))
        return float(function(values)), np.array(gradient)


def log_odds(plus, minus, cut, alpha):
    """Return the function v of both classes' parameters, from two log-likelihoods (eq. 4.2, 4.10)."""
    constant = Decimal(alpha).ln() - (1 - Decimal(alpha)).ln()
    return lambda theta: constant + plus(theta[:cut]) - minus(theta[cut:])


# --- TOP, two classes: Tsuda et al.


def hmm_log_prob(theta, n, m, x):
    """Return log Pr[o | lambda] of eq. A.1, from unconstrained parameters in the order p, a, b, q."""
    theta = iter(theta)

    def simplex(size):
        weights = [next(theta) for _ in range(size)]
        return [w / sum(weights) for w in weights]

    p, a, b = simplex(n), [simplex(n) for _ in range(n)], [simplex(m) for _ in range(n)]
    q = simplex(n)
    total = Decimal(0)
    for s in itertools.product(range(n), repeat=len(x)):
        weight = p[s[0]] * b[s[0]][x[0]] * q[s[-1]]
        for t in range(len(x) - 1):
            weight *= a[s[t]][s[t + 1]] * b[s[t + 1]][x[t + 1]]
        total += weight
    return total.ln()


def test_top_of_hidden_markov_models_is_that_of_the_paper():
    rng, alpha = np.random.default_rng(0), 0.25
    models = {"minus": cases.random_hmm(rng, n=2, ending="end"), "plus": cases.random_hmm(rng, n=2, ending="end")}
    X = [[2], [0, 1], [1, 2, 0], [2, 2, 1, 0]]
    features = TopScore(models, priors=[1 - alpha, alpha], coordinates="ratio").fit(X).transform(X)
    theta = np.concatenate([models[label].parameters("ratio") for label in ("plus", "minus")])
    for row, x in zip(features, X):
        model = lambda theta, x=x: hmm_log_prob(theta, 2, 3, x)  # noqa: E731
        v, gradient = slopes(log_odds(model, model, len(theta) // 2, alpha), theta)
        np.testing.assert_allclose(row, [v, *gradient], rtol=1e-12, atol=1e-13)


def mixture_log_prob(xi, d, x):
    """Return log q(x, xi) of a bag of points by eq. 5.1 and 5.2, parameters in the order beta, eta_1, eta_2."""
    total = Decimal(0)
    for point in x:
        point = [Decimal(float(v)) for v in point]
        density = Decimal(0)
        for weight, eta in ((xi[0], xi[1 : 2 + d]), (1 - xi[0], xi[2 + d :])):
            exponent = eta[0] * sum(v * v for v in point) + sum(v * e for v, e in zip(point, eta[1:]))
            exponent += sum(e * e for e in eta[1:]) / (4 * eta[0]) - Decimal(d) / 2 * (-PI / eta[0]).ln()
            density += weight * exponent.exp()
        total += density.ln()
    return total


def paper_mixtures(d):
    """Return the two classes of section 5."""
    return {
        "minus": Mixture([0.5, 0.5], Gaussian(np.zeros((2, d)), [1.0, 0.25])),
        "plus": Mixture([0.5, 0.5], Gaussian(np.full((2, d), 0.1), [0.64, 0.16])),
    }


def test_top_of_mixtures_is_that_of_the_paper():
    rng, d = np.random.default_rng(1), 3
    models = paper_mixtures(d)
    X = [rng.standard_normal((size, d)) for size in (1, 1, 2)]
    X.append(np.full((1, d), 60.0))  # densities of 1e-2346
    top = TopScore(models, priors="uniform", coordinates="natural").fit(X)
    theta = np.concatenate([models[label].parameters("natural") for label in ("plus", "minus")])
    for row, x in zip(top.transform(X), X):
        model = lambda xi, x=x: mixture_log_prob(xi, d, x)  # noqa: E731
        v, gradient = slopes(log_odds(model, model, len(theta) // 2, 0.5), theta)
        np.testing.assert_allclose(row, [v, *gradient], rtol=1e-11, atol=1e-12)
    names = top.get_feature_names_out().tolist()
    assert names[:3] == ["v", "plus.weights[0]", "plus.components.natural[0,0]"]
    assert len(names) == 1 + 2 * (1 + 2 * (1 + d))


def test_optimal_weights_correct_the_log_odds_to_first_order():
    # Eq. 4.3, 4.5 and 4.7-4.9: halving the error of the parameters quarters what the tangent misses, and halves v's.
    rng = np.random.default_rng(2)
    true = {label: cases.random_hmm(rng, n=2) for label in ("a", "b")}
    X = words(3, 4)
    moves = {label: rng.standard_normal(len(model.parameters())) for label, model in true.items()}
    target = TopScore(true, priors="uniform").fit(X).transform(X)[:, 0]
    errors = []
    for size in (2e-2, 1e-2):
        guess = {label: m.with_parameters(m.parameters() + size * moves[label]) for label, m in true.items()}
        features = TopScore(guess, priors="uniform").fit(X).transform(X)
        weights = np.concatenate([[1.0], -size * moves["b"], -size * moves["a"]])
        errors.append([np.abs(features @ weights - target).mean(), np.abs(features[:, 0] - target).mean()])
    ratios = np.divide(*errors)
    np.testing.assert_allclose(ratios, [4.0, 2.0], rtol=0.1)


def test_true_log_odds_are_linear_in_top_features_of_exponential_families():
    # Section 4.3: w = (1, eta* - eta^) and a suitable bias give the Bayes rule, however wrong the estimate.
    rng = np.random.default_rng(3)

    def draw():
        return {c: Mixture([1.0], Gaussian(rng.standard_normal((1, 2)), rng.random(1) + 0.5)) for c in "ab"}

    true, guess, X = draw(), draw(), list(rng.standard_normal((40, 1, 2)))
    features = TopScore(guess, priors=[0.3, 0.7], coordinates="natural").fit(X).transform(X)
    target = TopScore(true, priors=[0.6, 0.4]).fit(X).transform(X)[:, 0]
    moves = [true[c].parameters("natural") - guess[c].parameters("natural") for c in "ba"]
    left = features @ np.concatenate([[1.0], *moves]) - target
    np.testing.assert_allclose(left, left[0], rtol=0, atol=1e-11)
    assert np.ptp(features[:, 0] - target) > 1.0  # while the plug-in log-odds are far from them


def transitions(x):
    """Return the first symbol and all pairs of neighbours, as counts."""
    table = np.zeros((3, 3))
    np.add.at(table, (x[:-1], x[1:]), 1)
    return [*np.eye(3)[x[0]], *table.ravel()]


def chains(rng):
    return [MarkovChain(cases.rows(rng, 3), cases.rows(rng, 3, 3)) for _ in range(2)]


FAMILIES = {
    "Categorical": (lambda rng: [Categorical(cases.rows(rng, 3)) for _ in range(2)], lambda x: np.bincount(x, None, 3)),
    "MarkovChain": (chains, transitions),
    "SiteModel": (lambda rng: [SiteModel(cases.rows(rng, 4, 3)) for _ in range(2)], lambda x: np.eye(3)[x].ravel()),
    "Poisson": (lambda rng: [Poisson([v]) for v in rng.random(2) + 0.5], lambda x: [len(x), np.sum(x)]),
    "Gaussian": (
        lambda rng: [Gaussian(rng.standard_normal(1), v) for v in rng.random(2) + 0.5],
        lambda x: [len(x), np.sum(x), np.square(x).sum()],
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_top_is_linear_in_sufficient_statistics_without_hidden_states(family):
    make, sufficient = FAMILIES[family]
    rng = np.random.default_rng(4)
    numbers = family in ("Poisson", "Gaussian")
    X = [rng.integers(0, 3, 4 if family == "SiteModel" else size) for size in rng.integers(1, 9, 60)]
    objects = [x[:, None].astype(float) for x in X] if numbers else X
    assert misfit(make(rng), objects, [sufficient(x) for x in X]) < 1e-9


def test_top_is_not_linear_in_counts_with_hidden_states():
    rng = np.random.default_rng(5)
    X = [rng.integers(0, 3, size) for size in rng.integers(1, 9, 60)]
    assert misfit([cases.random_hmm(rng) for _ in range(2)], X, [transitions(x) for x in X]) > 1e-2


def misfit(models, X, statistics):
    """Return what an affine function of the statistics leaves of the TOP features, at worst."""
    features = TopScore(dict(enumerate(models)), priors="uniform").fit(X).transform(X)
    design = np.column_stack([np.ones(len(X)), np.array(statistics, float)])
    return np.abs(design @ np.linalg.lstsq(design, features, rcond=None)[0] - features).max()


# --- the Fisher kernel: Jaakkola & Haussler


def complex_slopes(function, theta):
    """Return the gradient of an analytic function, by complex steps."""
    return np.array([function(theta + 1e-30j * e).imag / 1e-30 for e in np.eye(len(theta))])


def test_kernel_of_minimal_coordinates_is_that_of_all_others():
    # Free parameters only, scores by complex steps, information over all words: its inverse exists, no pseudo-inverse.
    model = cases.random_hmm(np.random.default_rng(6), size=2)
    eta, X = model.parameters("softmax"), words(2, 4)
    free = np.array([0, 2, 4, 6, 8])  # the first of each pair of logits, the second one fixed

    def log_prob(values, x):
        full = eta.astype(complex)
        full[free] = values
        start, steps, probs = tables_of_pairs(full)
        alpha = start * probs[:, x[0]]
        for symbol in x[1:]:
            alpha = (alpha @ steps) * probs[:, symbol]
        return np.log(alpha.sum())

    scores = np.array([complex_slopes(lambda v, x=x: log_prob(v, x), eta[free]) for x in X])
    weights = np.exp([log_prob(eta[free], x).real for x in X])
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-12)
    expected = scores @ np.linalg.solve((scores.T * weights) @ scores, scores.T)
    for coordinates in ("softmax", "ratio", "sqrt"):
        features = FisherScore(model, "exact", coordinates).fit_transform(X)
        np.testing.assert_allclose(features @ features.T, expected, rtol=1e-8, atol=1e-8)


def tables_of_pairs(eta):
    """Return start (2,), transitions and emissions (2, 2) at complex logits."""
    pairs = np.exp(eta.reshape(-1, 2))
    pairs /= pairs.sum(axis=1, keepdims=True)
    return pairs[0], pairs[1:3], pairs[3:5]


def test_quadratic_kernel_of_uniform_splice_sites():
    rng = np.random.default_rng(7)
    windows = ["".join(rng.choice(list("ACGT"), 25)) for _ in range(10)]
    windows += ["A" * 25, "C" * 25, "A" * 12 + "G" * 13]
    matches = np.array([[sum(a == b for a, b in zip(x, z)) for z in windows] for x in windows])
    features = FisherScore(SiteModel.uniform(25, "dna")).fit_transform(windows)
    np.testing.assert_allclose(features @ features.T, 4 * matches - 25, rtol=0, atol=1e-9)
    quadratic = Polynomial(degree=2, offset=1.0)(features)
    np.testing.assert_allclose(quadratic, (4 * matches - 24.0) ** 2, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(quadratic[10, [11, 12]], 576.0, rtol=1e-12)  # no match, and twelve: not monotone


def class_mixture(rng, count):
    sizes = (2, 1, 2)
    return ClassMixture({c: cases.random_hmm(rng, n=sizes[c]) for c in range(count)}, rng.dirichlet(np.full(count, 5)))


@pytest.mark.parametrize("count", [2, 3])
def test_a_linear_rule_on_scores_of_the_marginal_is_the_map_decision(count):
    # Theorem 1 and eq. 3.1: with the label as latent variable, known weights give the plug-in rule on every object.
    mixture, X = class_mixture(np.random.default_rng(8), count), words(3, 5)
    scores = FisherScore(mixture, information="identity").fit(X).transform(X)
    posterior = PlugInClassifier(mixture).fit(X, np.arange(len(X)) % count).predict_proba(X)
    free = slice(0, 1) if count == 2 else slice(0, count)  # two classes have one free prior, of the second
    kept = [1] if count == 2 else [0, 1, 2]
    np.testing.assert_allclose(scores[:, free] + mixture.priors[kept], posterior[:, kept], rtol=0, atol=1e-12)
    assert len(np.unique(posterior.argmax(axis=1))) == count  # every class is decided for somewhere
    whitened = FisherScore(mixture).fit(X).transform(X)
    some = np.linspace(0, len(X) - 1, 3 * count).astype(int)  # weights from a few objects hold for all
    design = np.column_stack([np.ones(len(X)), whitened[:, free]])
    weights = np.linalg.lstsq(design[some], posterior[some], rcond=1e-10)[0]
    np.testing.assert_array_equal((design @ weights).argmax(axis=1), posterior.argmax(axis=1))


@pytest.mark.parametrize("seed", range(3))
def test_a_learner_on_these_scores_is_not_inferior_to_the_map_decision(seed):
    # All objects with their true probabilities stand for infinitely many training objects; the model is wrong.
    rng = np.random.default_rng(seed)
    truth, guess, X = class_mixture(rng, 2), class_mixture(rng, 2), words(3, 5)
    law = np.exp(truth.joint_log_prob(X))  # p*(x, y)
    features = FisherScore(guess).fit(X).transform(X)
    table, labels = np.vstack([features, features]), np.repeat([0, 1], len(X))
    learner = KernelLogisticRegression(1e6, "linear").fit(table, labels, law.T.ravel() * 2 * len(X))

    def error(decision):
        return law[np.arange(len(X)), 1 - decision].sum()

    best = error(law.argmax(axis=1))
    learnt, plug_in = error(learner.predict(features)), error(guess.joint_log_prob(X).argmax(axis=1))
    assert best <= learnt < plug_in


@pytest.mark.parametrize("count", [2, 3])
def test_kernel_logistic_regression_is_logistic_regression_on_eigen_features(count):
    rng = np.random.default_rng(9)
    model = cases.random_hmm(rng)
    X = [rng.integers(0, 3, size) for size in rng.integers(2, 9, 50)]
    y = np.arange(40) % count
    kernel = Polynomial(degree=2, offset=1.0)
    features = FisherScore(model, length_norm="length").fit(X).transform(X)
    K, cross = kernel(features[:40]), kernel(features[40:], features[:40])
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    to_features = vectors[:, kept] / np.sqrt(values[kept])
    single = LogisticRegression(C=0.5, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    theirs = (OneVsRestClassifier(single) if count > 2 else single).fit(K @ to_features, y)
    ours = KernelLogisticRegression(0.5, tol=1e-13).fit(K, y)
    for table in (K, cross):  # training objects, and new ones
        np.testing.assert_allclose(
            ours.predict_proba(table), theirs.predict_proba(table @ to_features), rtol=0, atol=1e-6
        )


def test_oracles_of_this_file_agree_with_each_other():
    eta = np.random.default_rng(10).standard_normal(2 + 4 + 4)
    for mine, other in zip(tables_of_pairs(eta), tables(eta, 2, 2)):
        np.testing.assert_allclose(mine, other, rtol=1e-12)
    model = HMM(*tables(eta, 2, 2)[:2], Categorical(tables(eta, 2, 2)[2]), end=[0.5, 0.5])
    value, gradient = slopes(lambda theta: hmm_log_prob(theta, 2, 2, [0, 1, 1]), model.parameters("ratio"))
    np.testing.assert_allclose(value, model.log_prob([[0, 1, 1]])[0], rtol=1e-12)
    np.testing.assert_allclose(gradient[:2] @ model.start, 0.0, rtol=0, atol=1e-13)  # A.6 stays on the simplex

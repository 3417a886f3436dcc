"""State-space and marginalized features against sums over all state paths; maps by their algebra."""

import itertools

import cases
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from genkern import (
    HMM,
    LDS,
    Categorical,
    ClassMixture,
    FactorialHMM,
    Gaussian,
    HMMEstimator,
    LogisticMap,
    LogMap,
    Marginalized,
    Mixture,
    Multinomial,
    PeriodicChain,
    Poisson,
    PowerMap,
    SiteModel,
    StateSpace,
)
from genkern.features import streaming as blocks
from genkern.features.random_features import draw_waves

MAPS = [PowerMap(0.3), LogMap(), LogisticMap(2.0)]


def posterior_paths(model, x):
    """Return all state paths and their posterior probabilities."""
    paths, weights = cases.path_weights(model, x)
    return np.array(paths), weights / weights.sum()


def path_posteriors(model, x):
    """Return gamma (T, n) and xi (T - 1, n, n), by enumeration."""
    n, length = model.n_states, len(x)
    gamma, xi = np.zeros((length, n)), np.zeros((length - 1, n, n))
    for path, weight in zip(*posterior_paths(model, x)):
        for t in range(length):
            gamma[t, path[t]] += weight
        for t in range(length - 1):
            xi[t, path[t], path[t + 1]] += weight
    return gamma, xi


def random_objects(rng, family="categorical", lengths=(1, 2, 4, 5)):
    return [cases.random_sequence(rng, family, length) for length in lengths]


# --- state space


@pytest.mark.parametrize("ending", [None, "stop", "end"])
@pytest.mark.parametrize("family", ["categorical", "diagonal"])
def test_visits_and_transitions_are_those_of_all_paths(family, ending):
    rng = np.random.default_rng(0)
    model, X = cases.random_hmm(rng, family, n=3, ending=ending), random_objects(rng, family)
    expected = []
    for x in X:
        visits, steps = np.zeros(3), np.zeros((3, 3))
        for path, weight in zip(*posterior_paths(model, x)):
            visits += weight * np.bincount(path, minlength=3)
            np.add.at(steps, (path[:-1], path[1:]), weight)
        expected.append([*visits, *steps.ravel()])
    expected = np.array(expected)
    for apply in ("sum", "time"):
        found = StateSpace(model, transitions=True, apply=apply).fit_transform(X)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
        alone = StateSpace(model, apply=apply).fit_transform(X)
        np.testing.assert_allclose(alone, expected[:, :3], rtol=0, atol=1e-11)
    counts = np.array([[len(x)] * 3 + [max(len(x) - 1, 1)] * 9 for x in X])
    shares = StateSpace(model, transitions=True, normalize=True).fit_transform(X)
    np.testing.assert_allclose(shares, expected / counts, rtol=0, atol=1e-11)
    assert not shares[0, 3:].any()  # one observation has no transitions
    names = StateSpace(model, transitions=True).fit(X).get_feature_names_out()
    assert (names[1], names[4], len(names)) == ("state[1]", "transitions[0,1]", 12)


@pytest.mark.parametrize("map_", MAPS, ids=lambda map_: type(map_).__name__)
def test_maps_act_before_or_after_the_sum_over_time(map_):
    rng = np.random.default_rng(1)
    model, X = cases.random_hmm(rng, n=2), random_objects(rng)
    for normalize, apply in itertools.product((False, True), ("sum", "time")):
        found = StateSpace(model, True, normalize, apply, map_).fit_transform(X)
        for row, x in zip(found, X):
            gamma, xi = path_posteriors(model, x)
            parts = []
            for terms in (gamma, xi.reshape(len(xi), 4)):
                count = max(len(terms), 1) if normalize else 1
                total = terms.sum(axis=0) / count if apply == "sum" else map_.apply(terms).sum(axis=0) / count
                parts.append(map_.apply(total) if apply == "sum" else total)
            np.testing.assert_allclose(row, np.concatenate(parts), rtol=0, atol=1e-6 if map_.get_params() else 1e-10)


def test_map_after_the_sum_is_a_step_of_a_pipeline():
    rng = np.random.default_rng(2)
    model, X = cases.random_hmm(rng), random_objects(rng)
    inside = StateSpace(model, map=PowerMap(0.4)).fit_transform(X)
    np.testing.assert_array_equal(make_pipeline(StateSpace(model), PowerMap(0.4)).fit_transform(X), inside)


def test_components_of_mixtures():
    rng = np.random.default_rng(3)
    mixture = Mixture([0.3, 0.7], Gaussian([[0.0, 1.0], [2.0, 0.0]], [1.0, 0.5]))
    X = [rng.standard_normal((length, 2)) for length in (1, 4)]
    weights = np.array([0.3, 0.7])
    for apply in ("sum", "time"):
        found = StateSpace(mixture, apply=apply).fit_transform(X)
        for row, x in zip(found, X):
            shares = np.array(
                [[weights[k] * cases.point_density(mixture.components, k, p) for k in range(2)] for p in x]
            )
            np.testing.assert_allclose(row, (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0), rtol=1e-10)
    with pytest.raises(TypeError, match="need a hidden Markov model"):
        StateSpace(mixture, transitions=True).fit(X)


def test_chains_of_factorial_models_and_phases():
    rng = np.random.default_rng(4)
    means = (rng.standard_normal((2, 1)), rng.standard_normal((3, 1)))
    factorial = FactorialHMM(
        [cases.rows(rng, 2), cases.rows(rng, 3)], [cases.rows(rng, 2, 2), cases.rows(rng, 3, 3)], means, [[0.7]]
    )
    X = [rng.standard_normal((length, 1)) for length in (1, 3)]
    # the same model with one state for each pair of states
    pairs = list(itertools.product(range(2), range(3)))
    start = np.array([factorial.starts[0][a] * factorial.starts[1][b] for a, b in pairs])
    steps = np.array(
        [[factorial.transitions[0][a, c] * factorial.transitions[1][b, d] for c, d in pairs] for a, b in pairs]
    )
    joint = HMM(start, steps, Gaussian([means[0][a] + means[1][b] for a, b in pairs], np.full(6, 0.7)))
    embedding = StateSpace(factorial, transitions=True).fit(X)
    assert embedding.get_feature_names_out()[[0, 4, 5]].tolist() == ["state[0,0]", "state[1,2]", "transitions[0,0,0]"]
    for row, x in zip(embedding.transform(X), X):
        gamma, xi = path_posteriors(joint, x)
        visits, moves = gamma.sum(axis=0).reshape(2, 3), xi.sum(axis=0).reshape(2, 3, 2, 3)
        expected = [visits.sum(1), visits.sum(0), moves.sum((1, 3)).ravel(), moves.sum((0, 2)).ravel()]
        np.testing.assert_allclose(row, np.concatenate(expected), rtol=0, atol=1e-10)
    chain = PeriodicChain(cases.rows(rng, 2), cases.rows(rng, 2, 3), np.stack([cases.rows(rng, 3, 3)] * 2))
    symbols = [[0, 1, 2], [2]]
    expected = [sum(gamma) for gamma in chain.posterior(symbols)]
    np.testing.assert_allclose(StateSpace(chain).fit_transform(symbols), expected, rtol=1e-12)


def test_models_without_discrete_states_are_refused():
    lds = LDS([[0.5]], [[1.0]], [[1.0]], [[1.0]], [0.0], [[1.0]])
    with pytest.raises(TypeError, match=r"discrete hidden states.*Got LDS"):
        StateSpace(lds).fit([[0.0, 1.0]])
    with pytest.raises(TypeError, match="needs an HMM or a Mixture at order 1"):
        Marginalized(lds).fit([[0.0, 1.0]])


# --- marginalized kernels of symbols


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("ending", [None, "stop"])
def test_marginalized_kernel_is_the_expected_count_kernel_of_all_pairs_of_paths(order, ending):
    rng = np.random.default_rng(5)
    model = cases.random_hmm(rng, n=2, ending=ending, zeros=0.3)
    X = [x for x in random_objects(rng, lengths=(1, 2, 3, 4)) if np.isfinite(model.log_prob([x])[0])]

    def counts(x, path):
        table = np.zeros((2, 3) * order)
        terms = max(len(x) - order + 1, 1)
        for t in range(len(x) - order + 1):
            table[tuple(v for s in range(order) for v in (path[t + s], x[t + s]))] += 1.0 / terms
        return table

    kernel = np.zeros((len(X), len(X)))
    for (i, x), (j, z) in itertools.product(enumerate(X), repeat=2):
        for path, weight in zip(*posterior_paths(model, x)):
            for other, factor in zip(*posterior_paths(model, z)):
                kernel[i, j] += weight * factor * (counts(x, path) * counts(z, other)).sum()
    for apply in ("sum", "time"):
        features = Marginalized(model, order, apply=apply).fit_transform(X)
        np.testing.assert_allclose(features @ features.T, kernel, rtol=0, atol=1e-11)


@pytest.mark.parametrize("order", [1, 2])
def test_names_say_which_count_is_where(order):
    model = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], Categorical([[0.9, 0.1], [0.2, 0.8]], alphabet="ab"))
    embedding = Marginalized(model, order, normalize=False).fit(["ab"])
    names = embedding.get_feature_names_out().tolist()
    row = dict(zip(names, embedding.transform(["abb"])[0]))
    gamma, xi = path_posteriors(model, [0, 1, 1])
    if order == 1:
        expected = {f"count[{i},{a}]": gamma[[[0], [1, 2]]["ab".index(a)], i].sum() for i in range(2) for a in "ab"}
    else:
        where = {"a,b": [0], "b,b": [1], "a,a": [], "b,a": []}
        expected = {
            f"count[{i},{j},{word}]": xi[steps, i, j].sum()
            for i in range(2)
            for j in range(2)
            for word, steps in where.items()
        }
    assert row.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(row[name], value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_ambiguous_symbols_count_by_their_posterior(order):
    rng = np.random.default_rng(6)
    model = HMM(cases.rows(rng, 2), cases.rows(rng, 2, 2), Categorical(cases.rows(rng, 2, 4), alphabet="dna"))
    completions = {"A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "N": "ACGT"}
    X = ["ARN", "NNC", "GAT"]
    expected = []
    for x in X:
        words = ["".join(word) for word in itertools.product(*(completions[letter] for letter in x))]
        weights = np.exp(model.log_prob(words))
        rows = Marginalized(model, order).fit(words).transform(words)
        expected.append(weights @ rows / weights.sum())
    for apply in ("sum", "time"):
        found = Marginalized(model, order, apply=apply).fit(X).transform(X)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_map_of_every_term_of_symbols():
    rng = np.random.default_rng(7)
    model, X = cases.random_hmm(rng, n=2), random_objects(rng)
    map_ = PowerMap(0.5)
    for order in (1, 2):
        found = Marginalized(model, order, apply="time", map=map_).fit_transform(X)
        for row, x in zip(found, X):
            gamma, xi = path_posteriors(model, x)
            terms = gamma if order == 1 else xi.reshape(len(xi), 4)
            expected = np.zeros((2**order, 3**order))
            for t, term in enumerate(terms):
                word = x[t] if order == 1 else 3 * x[t] + x[t + 1]
                expected[:, word] += map_.apply(term) / len(terms)
            np.testing.assert_allclose(row, expected.ravel(), rtol=0, atol=1e-6)


def test_symbols_of_mixtures_in_bags_and_in_states():
    rng = np.random.default_rng(8)
    probs = cases.rows(rng, 2, 3)
    mixture = Mixture([0.4, 0.6], Categorical(probs, "abc"))
    joint = np.array([0.4, 0.6])[:, None] * probs
    share = joint / joint.sum(axis=0)
    for apply in ("sum", "time"):
        found = Marginalized(mixture, apply=apply).fit_transform(["aac", "b"])
        expected = share * np.array([[2, 0, 1]]) / 3
        np.testing.assert_allclose(found[0], expected.ravel(), rtol=0, atol=1e-12)
    with pytest.raises(TypeError, match="order 2"):
        Marginalized(mixture, 2).fit(["ab"])
    nested = cases.rows(rng, 2, 2, 3)
    weights = cases.rows(rng, 2, 2)
    start, steps = cases.rows(rng, 2), cases.rows(rng, 2, 2)
    inner = HMM(start, steps, Mixture(weights, Categorical(nested, "abc")))
    flat = HMM(start, steps, Categorical((weights[..., None] * nested).sum(axis=1), "abc"))
    for order in (1, 2):
        found, expected = (Marginalized(model, order).fit_transform(["abca", "b"]) for model in (inner, flat))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


# --- marginalized kernels of vectors


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("features", ["mean", "raw"])
@pytest.mark.parametrize("family", ["isotropic", "diagonal", "full"])
def test_vectors_are_direct_sums_over_posteriors(family, features, order):
    rng = np.random.default_rng(9)
    model, X = cases.random_hmm(rng, family, n=2), random_objects(rng, family)
    leaf, map_ = model.emissions, PowerMap(0.7)
    spread = {"isotropic": lambda v: np.full(3, v), "diagonal": lambda v: v, "full": np.diag}[family]
    states = list(itertools.product(range(2), repeat=order))

    def terms(x):
        """Return for each term a list of the posterior of every state, and one of it times the vectors."""
        gamma, xi = path_posteriors(model, x)
        for t in range(len(x) - order + 1):
            shares = [gamma[t, s[0]] if order == 1 else xi[t, s[0], s[1]] for s in states]
            vectors = []
            for state, share in zip(states, shares):
                for k, point in zip(state, x[t:]):
                    z = (point - leaf.mean[k]) / np.sqrt(spread(leaf.cov[k]))
                    vectors.append(share * (point if features == "raw" else z))
            yield np.concatenate([shares, *vectors])

    for apply, normalize in itertools.product(("sum", "time"), (True, False)):
        embedding = Marginalized(model, order, features, normalize, apply, map_).fit(X)
        width = 2**order * (1 + 3 * order)
        assert len(embedding.get_feature_names_out()) == width
        for row, x in zip(embedding.transform(X), X):
            each = np.array(list(terms(x))).reshape(-1, width)
            count = max(len(each), 1) if normalize else 1
            after, before = map_.apply(each.sum(axis=0) / count), map_.apply(each).sum(axis=0) / count
            expected = after if apply == "sum" else before
            np.testing.assert_allclose(row, expected, rtol=0, atol=1e-8)


def test_names_of_vector_features():
    rng = np.random.default_rng(10)
    model, X = cases.random_hmm(rng, "diagonal", n=2), random_objects(rng, "diagonal")
    assert Marginalized(model).fit(X).get_feature_names_out()[[1, 2, 7]].tolist() == [
        "state[1]",
        "mean[0,0]",
        "mean[1,2]",
    ]
    names = Marginalized(model, 2, "rbf", n_components=4).fit(X).get_feature_names_out()
    assert (names[0], names[-1], len(names)) == ("rbf[0,0,0]", "rbf[1,1,3]", 16)


@pytest.mark.parametrize("family", ["diagonal", "full"])
def test_missing_entries_are_expected_given_the_state(family):
    rng = np.random.default_rng(11)
    model, x = cases.random_hmm(rng, family, n=2), rng.standard_normal((4, 3))
    x[1, 0] = x[2, 1] = x[2, 2] = x[3] = np.nan
    gamma, _ = path_posteriors(model, x)
    leaf, expected = model.emissions, np.zeros((2, 3))
    for t, k in itertools.product(range(4), range(2)):
        point, seen = x[t].copy(), ~np.isnan(x[t])
        cov = leaf.cov[k] if family == "full" else np.diag(leaf.cov[k])
        lost = ~seen
        gain = cov[np.ix_(lost, seen)] @ np.linalg.inv(cov[np.ix_(seen, seen)]) if seen.any() else np.zeros((3, 0))
        point[lost] = leaf.mean[k][lost] + gain @ (point[seen] - leaf.mean[k][seen])
        expected[k] += gamma[t, k] * point / 4
    for apply in ("sum", "time"):
        found = Marginalized(model, features="raw", apply=apply).fit([x]).transform([x, x[:1]])
        np.testing.assert_allclose(found[0, :2], gamma.mean(axis=0), rtol=0, atol=1e-11)
        np.testing.assert_allclose(found[0, 2:].reshape(2, 3), expected, rtol=0, atol=1e-11)
    with pytest.raises(ValueError, match="object 1, position 1, column 0 is NaN"):
        Marginalized(model, features="rbf").fit([x[:1]]).transform([x[:1], x])


def test_emissions_that_are_mixtures():
    rng = np.random.default_rng(12)
    weights, parts = cases.rows(rng, 2, 2), cases.random_leaf(rng, "diagonal", (2, 2), 2)
    model = HMM([0.5, 0.5], cases.rows(rng, 2, 2), Mixture(weights, parts))
    X = [rng.standard_normal((length, 2)) for length in (1, 4)]
    mean = (weights[..., None] * parts.mean).sum(axis=1)
    second = (weights[..., None] * (parts.cov + parts.mean**2)).sum(axis=1)
    scale = np.sqrt(second - mean**2)
    found = Marginalized(model).fit_transform(X)
    for row, x, gamma in zip(found, X, model.posterior(X)):
        z = (x[:, None] - mean) / scale
        expected = np.concatenate([gamma.mean(axis=0), (gamma[..., None] * z).mean(axis=0).ravel()])
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-10)
    gap = X[1].copy()
    gap[2, 0] = np.nan
    row = Marginalized(model, features="raw").fit([gap]).transform([gap])[0]
    gamma, point = model.posterior([gap])[0], np.repeat(gap[:, None], 2, axis=1)
    for i in range(2):
        density = weights[i] * np.exp(-((gap[2, 1] - parts.mean[i, :, 1]) ** 2) / (2 * parts.cov[i, :, 1]))
        density /= np.sqrt(parts.cov[i, :, 1])
        point[2, i, 0] = (density * parts.mean[i, :, 0]).sum() / density.sum()
    np.testing.assert_allclose(row[2:], (gamma[..., None] * point).mean(axis=0).ravel(), rtol=0, atol=1e-10)


def test_random_fourier_features_give_the_latent_mean_map():
    rng = np.random.default_rng(13)
    model, X, lam = cases.random_hmm(rng, "diagonal", n=2), random_objects(rng, "diagonal"), 0.3
    for order in (1, 2):
        few = Marginalized(model, order, "rbf", lam=lam, n_components=7, random_state=3).fit(X)
        frequencies, phases = draw_waves(3 * order, lam, 7, 3)
        many = Marginalized(model, order, "rbf", lam=lam, n_components=20000).fit_transform(X)
        exact, direct = np.zeros((4, 4)), []
        posteriors = [path_posteriors(model, x)[order - 1].reshape(-1, 2**order) for x in X]
        points = [x if order == 1 else np.column_stack([x[:-1], x[1:]]) for x in X]
        for gamma, x in zip(posteriors, points):
            count = max(len(x), 1)
            waves = np.sqrt(2 / 7) * np.cos(x @ frequencies + phases)
            direct.append((gamma.T @ waves / count).ravel())
        for (i, (g, x)), (j, (h, z)) in itertools.product(enumerate(zip(posteriors, points)), repeat=2):
            distance = ((x[:, None] - z[None]) ** 2).sum(axis=-1)
            exact[i, j] = (np.exp(-lam / 2 * distance) * (g @ h.T)).sum() / max(len(x), 1) / max(len(z), 1)
        np.testing.assert_allclose(few.transform(X), direct, rtol=0, atol=1e-11)
        np.testing.assert_allclose(few.set_params(apply="time").transform(X), direct, rtol=0, atol=1e-11)
        np.testing.assert_allclose(many @ many.T, exact, rtol=0, atol=0.02)


def test_other_emissions_take_points_as_they_are():
    model = HMM([0.5, 0.5], [[0.7, 0.3], [0.2, 0.8]], Poisson([[1.0], [5.0]]))
    X = [np.array([[0.0], [4.0]]), np.array([[7.0]])]
    found = Marginalized(model, features="raw").fit_transform(X)
    for row, x, gamma in zip(found, X, model.posterior(X)):
        np.testing.assert_allclose(row, [*gamma.mean(axis=0), *(gamma * x).mean(axis=0)], rtol=1e-10)
    with pytest.raises(TypeError, match="Got Poisson; use features='raw'"):
        Marginalized(model).fit(X)
    with pytest.raises(ValueError, match="object 1, position 0, column 0 is NaN"):
        Marginalized(model, features="raw").fit(X).transform([X[0], [[np.nan], [1.0]]])


def test_counts_and_windows():
    counts = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]])
    mixture = Mixture([0.4, 0.6], Multinomial([[0.7, 0.1, 0.2], [0.2, 0.5, 0.3]], None))
    shares = np.concatenate(mixture.posterior(counts))
    expected = np.column_stack([shares, (shares[:, :, None] * counts[:, None]).reshape(2, 6)])
    for X in (counts, sparse.csr_matrix(counts)):
        np.testing.assert_allclose(Marginalized(mixture, features="raw").fit_transform(X), expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(StateSpace(mixture).fit_transform(X), shares, rtol=0, atol=1e-12)
    windows = Mixture([0.4, 0.6], SiteModel(np.full((2, 3, 4), 0.25), "dna"))
    with pytest.raises(TypeError, match="SiteModel emits windows"):
        Marginalized(windows).fit(["ACG"])
    np.testing.assert_allclose(StateSpace(windows).fit_transform(["ACG"]), [[0.4, 0.6]], rtol=1e-12)


# --- classes, blocks, settings


def test_class_models_stand_side_by_side():
    rng = np.random.default_rng(14)
    X, y = random_objects(rng, lengths=(5,) * 12), np.array(["p", "q"])[np.arange(12) % 2]
    for make in (StateSpace, Marginalized):
        estimator = HMMEstimator(2, max_iter=2, tol=0)
        embedding = make(estimator, per_class=True).fit(X, y)
        models = {c: HMMEstimator(2, max_iter=2, tol=0).fit([x for x, k in zip(X, y) if k == c]).model_ for c in "pq"}
        expected = np.column_stack([make(model).fit(X).transform(X) for model in models.values()])
        np.testing.assert_array_equal(embedding.transform(X), expected)
        for given_ in (models, ClassMixture(models, [0.1, 0.9])):
            np.testing.assert_array_equal(make(given_).fit(X).transform(X), expected)
        names = embedding.get_feature_names_out()
        assert [name[:2] for name in names] == ["p."] * (len(names) // 2) + ["q."] * (len(names) // 2)
        with pytest.raises(ValueError, match="requires y"):
            make(estimator, per_class=True).fit(X)
        assert make(estimator).fit(X).model_ == HMMEstimator(2, max_iter=2, tol=0).fit(X).model_


@pytest.mark.parametrize(
    "make",
    [
        lambda model: StateSpace(model, transitions=True),
        lambda model: StateSpace(model, transitions=True, apply="time", map=LogMap()),
        lambda model: Marginalized(model),
        lambda model: Marginalized(model, 2, apply="time", map=PowerMap(0.5)),
        lambda model: Marginalized(model, 2, "rbf", n_components=5, apply="time"),
    ],
)
@pytest.mark.parametrize("family", ["categorical", "full"])
def test_rows_depend_on_their_object_alone(make, family, monkeypatch):
    rng = np.random.default_rng(15)
    X = random_objects(rng, family, rng.integers(1, 20, 30))
    embedding = make(cases.random_hmm(rng, family, n=3)).fit(X)
    reference = embedding.transform(X)
    for i in (0, 11):
        np.testing.assert_array_equal(embedding.transform([X[i]])[0], reference[i])
    monkeypatch.setattr(blocks, "BATCH_POSITIONS", 23)
    np.testing.assert_array_equal(embedding.set_params(n_jobs=2).transform(X), reference)


def test_objects_of_one_observation_have_no_pairs():
    rng = np.random.default_rng(17)
    factorial = FactorialHMM([[0.5, 0.5]] * 2, [cases.rows(rng, 2, 2)] * 2, [[[0.0], [1.0]]] * 2, [[0.7]])
    assert not StateSpace(factorial, transitions=True).fit_transform([[0.0], [1.0]])[:, 4:].any()
    for family in ("categorical", "diagonal"):
        model, X = cases.random_hmm(rng, family), random_objects(rng, family, (1, 1))
        for apply in ("sum", "time"):
            assert not StateSpace(model, True, apply=apply).fit_transform(X)[:, 2:].any()
            for features in ("mean", "raw", "rbf"):
                assert not Marginalized(model, 2, features, apply=apply).fit_transform(X).any()


def test_impossible_object_is_named_by_its_index(monkeypatch):
    monkeypatch.setattr(blocks, "BATCH_POSITIONS", 4)
    model = HMM([1.0], [[1.0]], Categorical([[0.5, 0.5, 0.0]], alphabet="abc"))
    X = ["aab", "ab", "ba", "ab", "a", "bac", "a"]
    for embedding in (StateSpace(model), StateSpace(model, apply="time"), Marginalized(model), Marginalized(model, 2)):
        with pytest.raises(ValueError, match="object 5 "):
            embedding.fit(["ab"]).transform(X)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda model: StateSpace(model, apply="both"), "apply"),
        (lambda model: StateSpace(model, map=PowerMap(0.0)), "rho"),
        (lambda model: Marginalized(model, 3), "order"),
        (lambda model: Marginalized(model, features="median"), "features"),
        (lambda model: Marginalized(model, lam=0.0), "lam"),
        (lambda model: Marginalized(model, n_components=0), "n_components"),
        (lambda model: Marginalized(model, random_state=-1), "random_state"),
    ],
)
def test_wrong_settings_are_refused(make, error):
    with pytest.raises(ValueError, match=error):
        make(cases.random_hmm(np.random.default_rng(0))).fit_transform([[0, 1]])


def test_a_map_is_one_of_the_three():
    with pytest.raises(TypeError, match="'map' must be PowerMap"):
        StateSpace(cases.random_hmm(np.random.default_rng(0)), map=np.sqrt).fit([[0, 1]])


def test_rho_is_searched_for_in_a_grid():
    rng = np.random.default_rng(16)
    X = ["".join(rng.choice(list("ab"), 8, p=[0.3 + 0.4 * c, 0.7 - 0.4 * c])) for c in np.arange(24) % 2]
    learner = make_pipeline(StateSpace(HMMEstimator(2, max_iter=3, tol=0)), PowerMap(), LinearSVC())
    grid = {"powermap__rho": [0.1, 0.5, 1.0], "statespace__map": [None, LogMap()]}
    search = GridSearchCV(learner, grid, cv=3, error_score="raise").fit(X, np.arange(24) % 2)
    assert set(search.best_params_) == set(grid)


# --- maps

entries = st.floats(-1e6, 1e6, allow_nan=False).map(lambda g: g if abs(g) > 1e-9 else 0.0)  # powers do not underflow
powers = st.floats(0.05, 2.0)


@settings(max_examples=50, deadline=None)
@given(g=st.lists(entries, min_size=1, max_size=8), rho=powers)
def test_maps_are_odd_increasing_and_fix_zero(g, rho):
    values = np.sort(np.array(g))
    for map_ in (PowerMap(rho), LogMap(), LogisticMap(rho)):
        mapped = map_.apply(values)
        np.testing.assert_array_equal(map_.apply(-values), -mapped)
        assert (np.diff(mapped) >= 0).all()
        assert map_.apply(np.zeros(1))[0] == 0.0
        np.testing.assert_array_equal(np.sign(mapped), np.sign(values))
        np.testing.assert_array_equal(map_.fit_transform(values[None]), mapped[None])
        np.testing.assert_array_equal(map_.fit_transform(sparse.csr_matrix(values[None])).toarray(), mapped[None])


@settings(max_examples=50, deadline=None)
@given(g=entries, h=entries, a=powers, b=powers)
def test_maps_satisfy_their_equations(g, h, a, b):
    power = PowerMap(a).apply
    g_, h_ = np.array([g]), np.array([h])
    np.testing.assert_allclose(power(g_ * h_), power(g_) * power(h_), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(PowerMap(b).apply(power(g_)), PowerMap(a * b).apply(g_), rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(PowerMap(1.0).apply(g_), g_)
    np.testing.assert_allclose(np.expm1(np.abs(LogMap().apply(g_))), np.abs(g_), rtol=1e-9)
    small = np.array([g / 1e5])
    ratio = (1 - np.exp(-a * small)) / (1 + np.exp(-a * small))
    np.testing.assert_allclose(LogisticMap(a).apply(small), ratio, rtol=1e-7, atol=1e-12)
    # the sum of two angles
    s, t = LogisticMap(a).apply(small), LogisticMap(a).apply(h_ / 1e5)
    np.testing.assert_allclose(LogisticMap(a).apply(small + h_ / 1e5) * (1 + s * t), s + t, rtol=1e-9, atol=1e-12)


def test_logarithm_does_not_lose_small_entries():
    np.testing.assert_allclose(LogMap().apply(np.array([1e-20, -1e-20])), [1e-20, -1e-20], rtol=1e-12)


@pytest.mark.parametrize("rho", [0.0, -1.0, np.inf, "half"])
@pytest.mark.parametrize("make", [PowerMap, LogisticMap])
def test_rho_must_be_positive(make, rho):
    with pytest.raises(ValueError, match="rho"):
        make(rho).fit([[1.0]])

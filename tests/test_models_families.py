"""The exponential families as values: densities, derivatives, information, sampling, errors."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from genkern import (
    HMM,
    Bernoulli,
    Dirichlet,
    Exponential,
    ExponentialEstimator,
    FisherScore,
    Gamma,
    Gaussian,
    Geometric,
    NegativeBinomial,
    Poisson,
    VonMises,
    check_score,
)
from tests.cases_families import (
    DISCRETE,
    MAKERS,
    PRODUCTS,
    TWINS,
    random_family,
    random_family_hmm,
    random_points,
    twin_log_density,
)

FAMILIES = tuple(MAKERS)
FLAT = Dirichlet([1.0, 1.0])


def expectation(name, model, function):
    """Return the sum or integral of a function of one point (1, d) over the support, weighted by the density."""

    def weighted(*x):
        point = np.array([[*x, 1.0 - sum(x)] if name == "dirichlet" else x])
        return float(np.exp(model.log_prob(point)[0])) * function(point)

    if name in DISCRETE:
        top = 2 if name == "bernoulli" else 400
        return sum(weighted(float(x)) for x in range(top))
    ends = {"vonmises": (-np.pi, np.pi), "dirichlet": (0.0, 1.0)}.get(name, (0.0, np.inf))
    return integrate.quad_vec(weighted, *ends, epsabs=1e-12, epsrel=1e-10, limit=2000)[0]


def single(name, seed=0):
    """Return a model of one free coordinate."""
    model = random_family(np.random.default_rng(seed), name, (), 2 if name == "dirichlet" else 1)
    return Dirichlet(model.alpha + 1.0) if name == "dirichlet" else model


@pytest.mark.parametrize("name", FAMILIES)
def test_log_density_is_that_of_scipy(name):
    rng = np.random.default_rng(1)
    leaf = random_family(rng, name, (3,))
    points = random_points(rng, name, 30, missing=0.3)
    expected = [[twin_log_density(name, leaf[k], x) for k in range(3)] for x in points]
    np.testing.assert_allclose(leaf.log_density(points), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", FAMILIES)
def test_extreme_members_have_the_density_of_scipy(name):
    rng = np.random.default_rng(2)
    big = {"gamma": Gamma([3e3], [0.2]), "vonmises": VonMises([1.0], [800.0]), "poisson": Poisson([3e4])}
    model = big.get(name, single(name))
    for x in model.sample(5, rng=rng):
        np.testing.assert_allclose(model.log_density(x)[0], twin_log_density(name, model, x[0]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_own_log_density_takes_each_objects_members(name):
    rng = np.random.default_rng(3)
    stack = random_family(rng, name, (2, 3))
    packed = stack.pack_sequences([random_points(rng, name, 4), random_points(rng, name, 5)])
    own = stack.own_log_density(packed)
    np.testing.assert_array_equal(own[:4], stack[0].log_density(packed.values[:4]))
    np.testing.assert_array_equal(own[4:], stack[1].log_density(packed.values[4:]))


@pytest.mark.parametrize("name", FAMILIES)
def test_probability_sums_to_one(name):
    model = single(name) if name != "gamma" else Gamma(1.7, 0.6)
    assert expectation(name, model, lambda _: 1.0) == pytest.approx(1.0, abs=1e-8)


def test_density_over_the_triangle_integrates_to_one():
    model = Dirichlet([1.5, 2.0, 3.0])

    def density(y, x):
        return np.exp(model.log_density(np.array([[x, y, 1.0 - x - y]]))[0])

    total, _ = integrate.dblquad(density, 0.0, 1.0, 0.0, lambda x: 1.0 - x, epsabs=1e-6)
    assert total == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt"])
def test_information_is_the_variance_of_the_score(name, coordinates):
    model = single(name) if name != "gamma" else Gamma(2.7, 0.6)

    def outer(point):
        score = model.log_prob_grad(point, coordinates)[0]
        return np.concatenate([score, np.outer(score, score).ravel()])

    moments = expectation(name, model, outer)
    p = len(model.parameter_names)
    np.testing.assert_allclose(moments[:p], 0.0, atol=1e-7)
    (block,) = type(model).stack([model]).member_information(np.array([2.5]), coordinates)
    np.testing.assert_allclose(np.asarray(block).ravel(), 2.5 * moments[p:], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", FAMILIES)
def test_information_of_a_product_is_by_coordinates(name):
    if name == "dirichlet":
        return
    leaf = random_family(np.random.default_rng(4), name, (2,), 3)
    block = np.asarray(leaf.member_information(np.ones(2), "softmax")[1])
    fields = len(block) // 3
    for j in range(3):
        alone = type(leaf)(*(getattr(leaf, field)[1:, [j]] for field in leaf._fields))
        places = np.arange(fields) * 3 + j
        np.testing.assert_allclose(
            block[np.ix_(places, places)], alone.member_information(np.ones(1), "softmax")[0], rtol=1e-12
        )
    same = np.arange(len(block))[:, None] % 3 == np.arange(len(block)) % 3
    assert not block[~same].any()


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_of_bags_match_differences(name):
    rng = np.random.default_rng(5)
    model = random_family(rng, name, ())
    X = [random_points(rng, name, 4, missing=0.3), random_points(rng, name, 1)]
    assert max(check_score(model, X).values()) < 1e-7


@pytest.mark.parametrize("name", FAMILIES)
def test_scores_of_hmms_match_differences(name):
    rng = np.random.default_rng(6)
    model = random_family_hmm(rng, name)
    X = [random_points(rng, name, 6, missing=0.2), random_points(rng, name, 1)]
    assert max(check_score(model, X).values()) < 1e-7


@pytest.mark.parametrize("name", FAMILIES)
def test_hmm_sums_over_all_paths(name):
    rng = np.random.default_rng(7)
    model = random_family_hmm(rng, name, n=3)
    x = random_points(rng, name, 4, missing=0.3)
    density = np.exp([[twin_log_density(name, model.emissions[k], point) for k in range(3)] for point in x])
    total = 0.0
    for path in itertools.product(range(3), repeat=4):
        weight = model.start[path[0]]
        for t, state in enumerate(path):
            weight *= density[t, state]
            weight *= model.transitions[path[t - 1], state] if t else 1.0
        total += weight
    assert model.log_prob([x])[0] == pytest.approx(np.log(total), rel=1e-10)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(FAMILIES), n=st.integers(1, 4))
def test_an_object_does_not_notice_its_neighbours(seed, name, n):
    rng = np.random.default_rng(seed)
    model = random_family_hmm(rng, name, n)
    X = [random_points(rng, name, int(length), missing=0.1) for length in rng.integers(1, 20, 7)]
    order = rng.permutation(len(X))
    whole = model.log_prob_grad(X)
    np.testing.assert_array_equal(model.log_prob_grad([X[i] for i in order], n_jobs=2), whole[order])
    np.testing.assert_array_equal(model.log_prob_grad(X[3:4]), whole[3:4])
    np.testing.assert_array_equal(model.emissions[0].log_prob(X[3:4]), model.emissions[0].log_prob(X)[3:4])


@pytest.mark.parametrize("name", FAMILIES)
def test_sample_and_density_agree(name):
    model = random_family(np.random.default_rng(8), name, (), 3)
    draws = np.concatenate(model.sample(2000, length=2, rng=9))
    assert draws.shape == (4000, 3)
    for j in range(3):
        twin = TWINS[name](model, j)
        if name in DISCRETE:
            top = int(draws[:, j].max())
            counts = np.bincount(draws[:, j].astype(int), minlength=top + 1)
            expected = 4000 * twin.pmf(np.arange(top + 1))
            few = expected < 5  # put into the rest
            counts = np.append(counts[~few], counts[few].sum())
            expected = np.append(expected[~few], 4000 - expected[~few].sum())
            keep = expected > 1e-9
            assert stats.chisquare(counts[keep], expected[keep]).pvalue > 1e-3
        else:
            values = draws[:, j]
            if name == "vonmises":
                values = np.mod(values - model.mean[j] + np.pi, 2 * np.pi) - np.pi + model.mean[j]
            assert stats.kstest(values, twin.cdf).pvalue > 1e-3


def test_tiny_shapes_are_drawn_inside_the_support():
    for model in (Gamma(1e-3, 1.0), Dirichlet([1e-3, 1e-3, 1e-2])):
        bags = model.sample(500, rng=0)
        assert np.isfinite(model.log_prob(bags)).all()


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_missing_coordinate_does_not_count(name):
    rng = np.random.default_rng(10)
    model = random_family(rng, name, (), 3)
    x = random_points(rng, name, 5, d=3)
    x[:, 1] = np.nan
    rest = type(model)(*(getattr(model, field)[[0, 2]] for field in model._fields))
    np.testing.assert_allclose(model.log_prob([x]), rest.log_prob([x[:, [0, 2]]]), rtol=1e-12)
    np.testing.assert_array_equal(model.log_prob([np.full((2, 3), np.nan)]), 0.0)


# --- the ends of ranges


def test_certain_members_are_legal():
    model = Bernoulli([0.0, 1.0])
    np.testing.assert_array_equal(model.log_prob(np.array([[0, 1], [1, 1], [0, 0]])), [0.0, -np.inf, -np.inf])
    np.testing.assert_array_equal(Poisson(0.0).log_prob([[0], [2]]), [0.0, -np.inf])
    np.testing.assert_array_equal(Geometric(1.0).log_prob([[0], [2]]), [0.0, -np.inf])
    np.testing.assert_array_equal(NegativeBinomial(2.0, 1.0).log_prob([[0], [2]]), [0.0, -np.inf])
    np.testing.assert_allclose(VonMises(0.3, 0.0).log_prob([[5.0]]), -np.log(2 * np.pi), rtol=1e-12)
    np.testing.assert_array_equal(model.log_prob_grad(np.array([[0, 1]])), 0.0)
    with pytest.raises(ValueError, match="object 1 has probability zero"):
        model.log_prob_grad(np.array([[0, 1], [1, 1]]))
    for coordinates in ("ratio", "sqrt", "raw"):
        with pytest.raises(ValueError, match=r"'probs' is 0 at index \(0, 0\).*softmax"):
            model.log_prob_grad(np.array([[0, 1]]), coordinates)
    with pytest.warns(UserWarning, match="no information"):
        features = FisherScore(model).fit(np.array([[0, 1]])).transform(np.array([[0, 1]]))
    np.testing.assert_array_equal(features, 0.0)


def test_a_certain_state_of_an_hmm_is_legal():
    model = HMM([0.5, 0.5], [[0.6, 0.4], [0.3, 0.7]], Poisson([[0.0], [3.0]]))
    gradient = model.log_prob_grad([[0, 0, 2, 0, 1]])
    assert np.isfinite(gradient).all()
    errors = check_score(model, [[0, 0, 2, 0, 1]], "softmax")
    assert errors["softmax"] < 1e-7


# --- values


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt", "raw"])
def test_parameters_round_trip(name, coordinates):
    leaf = random_family(np.random.default_rng(11), name, (3,))
    vector = leaf.parameters(coordinates)
    assert len(vector) == len(leaf.parameter_names) == len(set(leaf.parameter_names))
    back = leaf.with_parameters(vector, coordinates)
    for field in leaf._fields:
        np.testing.assert_allclose(getattr(back, field), getattr(leaf, field), rtol=1e-12)


def test_coordinates_and_names_are_those_documented():
    leaf = Gamma([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]])
    np.testing.assert_array_equal(leaf.parameters("raw"), [1, 2, 5, 6, 3, 4, 7, 8])
    np.testing.assert_allclose(leaf.parameters("softmax"), np.log(leaf.parameters("raw")), rtol=1e-15)
    np.testing.assert_allclose(leaf.parameters("sqrt"), np.sqrt(leaf.parameters("ratio")), rtol=1e-15)
    assert leaf.parameter_names[:5] == ["shapes[0,0]", "shapes[0,1]", "scale[0,0]", "scale[0,1]", "shapes[1,0]"]
    np.testing.assert_allclose(Bernoulli(0.2).parameters("softmax"), np.log(0.25), rtol=1e-12)
    np.testing.assert_allclose(Geometric(0.2).parameters("sqrt"), np.sqrt(0.2), rtol=1e-12)
    np.testing.assert_array_equal(VonMises(-0.4, 1.0).parameters("softmax"), [-0.4, 0.0])


@pytest.mark.parametrize("name", FAMILIES)
def test_values_are_frozen_stacked_and_pickled(name):
    leaf = random_family(np.random.default_rng(12), name, (2, 3))
    twin = random_family(np.random.default_rng(12), name, (2, 3))
    assert leaf == twin
    assert leaf.shape == (2, 3)
    assert leaf != leaf[0]
    assert pickle.loads(pickle.dumps(leaf)) == leaf
    assert type(leaf).stack(leaf.unstack()) == leaf
    assert type(leaf)(*(getattr(leaf, field) for field in leaf._fields)) == leaf
    with pytest.raises(ValueError, match="read-only"):
        getattr(leaf, leaf._fields[0])[0] = 0.5
    with pytest.raises(ValueError, match="needs one model"):
        leaf.sample(1)


def test_a_number_is_one_coordinate_and_nothing_else_broadcasts():
    assert Poisson(2.0).rate.shape == (1,)
    assert Gamma(2.0, 1.0).shape == ()
    assert Gamma([[2.0, 1.0], [1.0, 2.0]], 0.5).scale.shape == (2, 2)
    with pytest.raises(ValueError, match=r"one shape.*'shapes' of shape"):
        Gamma([2.0, 1.0], [1.0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Bernoulli([0.2, 1.2]), r"'probs' must be between zero and one. Got 1.2 at index \(1,\)"),
        (lambda: Poisson(-1.0), "'rate' must be at least zero"),
        (lambda: Poisson([1.0, np.nan]), "finite"),
        (lambda: Geometric(0.0), "'prob' must be above zero"),
        (lambda: Exponential([1.0, 0.0]), "'scale' must be positive"),
        (lambda: Gamma([0.0], [1.0]), "'shapes' must be positive"),
        (lambda: VonMises(0.0, -1.0), "'concentration' must be at least zero"),
        (lambda: Dirichlet(2.0), "at least two"),
        (lambda: Dirichlet([1.0, -1.0]), "positive"),
        (lambda: Poisson(np.zeros((2, 0))), "empty"),
        (lambda: Bernoulli(0.5).log_prob([[1, 0], [1, 0, 2]]), "object 1, position 2, column 0 is 2; expected 0 or 1"),
        (lambda: Poisson(1.0).log_prob([[1], [0, -1]]), "object 1, position 1, column 0 is -1"),
        (lambda: Geometric(0.5).log_prob([[0.0, 0.5]]), "object 0, position 1, column 0 is 0.5.*whole number"),
        (lambda: NegativeBinomial(1.0, 0.5).log_prob([[0.5]]), "whole number"),
        (lambda: Exponential(1.0).log_prob([[1.0, 0.0]]), "object 0, position 1, column 0 is 0; expected a positive"),
        (lambda: Gamma(1.0, 1.0).log_prob([[1.0, -2.0]]), "positive number"),
        (lambda: Gamma([1.0, 1.0], 1.0).log_prob([np.ones((2, 3))]), "3 features.*2 were expected"),
        (
            lambda: Dirichlet([1.0, 1.0]).log_prob([[[0.5, 0.5], [0.5, np.nan]]]),
            "object 0, position 1, column 1 is nan",
        ),
        (
            lambda: Dirichlet([1.0, 1.0]).log_prob(np.array([[0.5, 0.5], [0.5, 0.6]])),
            "object 1, position 0 sums to 1.1",
        ),
        (lambda: Dirichlet([1.0, 1.0]).log_prob(np.array([[0.0, 1.0]])), "positive share"),
        (lambda: VonMises(0.0, 1.0).log_prob([[np.inf]]), "finite"),
    ],
)
def test_errors_say_what_and_what_to_do(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_shares_are_mended_within_rounding():
    model = Dirichlet([2.0, 3.0])
    np.testing.assert_allclose(
        model.log_prob(np.array([[0.3, 0.7 + 5e-7]])), model.log_prob(np.array([[0.3, 0.7]])), atol=1e-6
    )


# --- parameters and points of any size


@pytest.mark.parametrize(("size", "prob"), [(0.5, 0.3), (2.0, 1e-5), (3e5, 0.5), (2e6, 0.9)])
def test_information_about_large_counts_is_that_of_all_terms(size, prob):
    mean = size * (1.0 - prob) / prob
    k = np.arange(mean + 40.0 * (np.sqrt(mean / prob) + 1.0 / prob) + 1.0)
    terms = size**2 * special.betainc(k + 1.0, size, 1.0 - prob) / (size + k) ** 2
    block = NegativeBinomial([size], [prob]).information([1])[0][1]
    np.testing.assert_allclose(block[0, 0], terms.sum(), rtol=1e-10)


@pytest.mark.parametrize("size", [1e-300, 1e-8, 1e8, 1e16, 1e30, 1e300])
def test_information_is_finite_for_all_parameters(size):
    for model in (
        NegativeBinomial([size], [1e-300]),
        NegativeBinomial([size], [0.5]),
        Dirichlet([size, 1.0]),
        Dirichlet([size, size]),
        Gamma([size], [1.0]),
        Gamma([1.0], [size]),
        Exponential([size]),
    ):
        assert all(np.isfinite(np.asarray(block)).all() for _, block in model.information([3]))


def test_parameters_without_an_inverse_are_refused():
    for make in (lambda: Gamma([1.0], [1e-310]), lambda: Exponential([5e-324]), lambda: Geometric([1e-310])):
        with pytest.raises(ValueError, match=r"must be .*from (1e-300|6e-309) to .* at index \(0,\)"):
            make()
    with pytest.raises(ValueError, match=r"ExponentialEstimator: 'scale' would be .*Divide the column by its scale"):
        ExponentialEstimator("ml").fit([[1e-310], [2e-310]])


@pytest.mark.parametrize("model", [Poisson([1e19]), NegativeBinomial([1.0], [1e-18]), Geometric([1e-18])])
def test_counts_that_no_integer_holds_are_not_drawn(model):
    with pytest.raises(ValueError, match=r"sample: counts are drawn as 64-bit integers; expected means up to 1e\+16"):
        model.sample(1, rng=0)


def test_rare_counts_that_may_be_too_large_are_not_drawn():
    with pytest.raises(
        ValueError, match=r"expected \(1 - p\) / p \(r \+ 10 sqrt\(r\)\) up to 1e\+16.* at index \(0, 0\)"
    ):
        NegativeBinomial([1e-300], [6e-301]).sample(1, rng=0)


def test_information_about_large_sizes_is_that_of_a_step():
    for size in (1e14, 1e16):
        block = NegativeBinomial([size], [0.3]).information([1])[0][1]
        np.testing.assert_allclose(block[0, 0], 0.7 * size, rtol=1e-13)


@pytest.mark.parametrize("cov", [[[2e-155, 1e-155], [1e-155, 5e-155]], [2e-155, 1e-155]])
def test_derivatives_that_overflow_are_refused(cov):
    model, X = Gaussian([0.0, 0.0], cov), [np.array([[100.0, 200.0], [300.0, 100.0]])]
    for act in (lambda: model.gradient(model.statistics(X), "raw"), lambda: model.information([3], "raw")):
        with pytest.raises(ValueError, match=r"Gaussian: derivatives and information need variances .* from [12]e-155"):
            act()

"""Models of users: Fisher scores by all ways of deriving, kernels by draws, formulas of their own, clear errors."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from genkern import (
    HMM,
    Categorical,
    ClassMixture,
    Expected,
    FisherScore,
    Gaussian,
    Gram,
    Jeffreys,
    MeanMap,
    Model,
    PlugInClassifier,
    Power,
    ProbabilityProduct,
    ProposalFeatures,
    Sampled,
    TopScore,
    adapt,
    affinity,
    check_score,
    load,
    save,
    saving,
)


class Normal:
    """One number; log_prob of one object, or of many in an array."""

    def __init__(self, mean: float, scale: float):
        self.mean, self.scale = mean, scale

    def log_prob(self, x: Any) -> Any:
        return -0.5 * ((x - self.mean) / self.scale) ** 2 - np.log(self.scale) - 0.5 * np.log(2 * np.pi)

    def sample(self, n: int, rng: Any) -> list[Any]:
        return list(rng.normal(self.mean, self.scale, n))


class Registered(Normal):
    """The same, for which a formula is known."""


class Telling(Normal):
    """The same, with derivatives of its own, many at once."""

    def log_prob_grad(self, X: Any) -> Any:
        z = (X - self.mean) / self.scale
        return np.column_stack([z / self.scale, (z**2 - 1) / self.scale])


class Words:
    """Words of any length, one at a time, with a dict of parameters and one draw at a time."""

    def __init__(self, parameters: dict[str, Any]):
        self.parameters = parameters

    def log_prob(self, word: str) -> float:
        logits, stop = self.parameters["logits"], self.parameters["stop"]
        probs = np.exp(logits) / np.exp(logits).sum()
        ends = 1.0 / (1.0 + np.exp(-stop))
        return float(sum(np.log(probs["ab".index(c)] * (1.0 - ends)) for c in word) + np.log(ends))

    def sample(self, rng: Any) -> str:
        ends = 1.0 / (1.0 + np.exp(-self.parameters["stop"]))
        probs = np.exp(self.parameters["logits"])
        return "".join(rng.choice(list("ab"), p=probs / probs.sum(), size=rng.geometric(ends) - 1))


def words(stop: float = 0.3) -> Words:
    return Words({"logits": np.array([0.2, -0.5]), "stop": stop})


@affinity.register(Registered, Registered, Power, reference="tests, rho = 1/2 of normal laws")
def registered_product(P: Any, Q: Any, how: Power) -> Any:
    m, s = P.values("mean")[..., :, None], P.values("scale")[..., :, None]
    n, t = Q.values("mean")[..., None, :], Q.values("scale")[..., None, :]
    assert how.rho == 0.5
    return 0.5 * np.log(2 * s * t / (s**2 + t**2)) - (m - n) ** 2 / (4 * (s**2 + t**2))


X = [0.3, -1.2, 2.5, 0.0]
NAMES = ["mean", "scale"]


def exact_scores(mean: float, scale: float) -> Any:
    z = (np.array(X) - mean) / scale
    return np.column_stack([z / scale, (z**2 - 1) / scale])


# --- likelihood and draws


def test_objects_pass_as_they_are_one_by_one_or_together() -> None:
    seen: list[Any] = []

    class Tally:
        def log_prob(self, thing: Any) -> float:
            seen.append(thing)
            return -1.0 * len(thing["a"])

    things = [{"a": [1]}, {"a": [1, 2]}]
    assert_array_equal(adapt(Tally()).log_prob(things), [-1.0, -2.0])
    assert all(any(thing is other for other in things) for thing in seen if isinstance(thing, dict))
    model = Normal(0.5, 2.0)
    assert_allclose(adapt(model).log_prob(X), Gaussian(0.5, 4.0).log_prob([[[x]] for x in X]), rtol=1e-14)
    for vectorized in (True, False):
        assert_allclose(adapt(model, vectorized=vectorized).log_prob(X), adapt(model).log_prob(X), rtol=1e-15)
    assert_array_equal(adapt(model).log_prob(np.array(X)), adapt(model).log_prob(X))
    assert isinstance(adapt(model), Model)
    assert adapt(adapt(model)) == adapt(model)


def test_draws_depend_on_the_generator_alone() -> None:
    model = adapt(words())
    assert model.sample(5, rng=3) == model.sample(5, rng=3)
    assert model.sample(5, rng=3) != model.sample(5, rng=4)
    assert all(isinstance(word, str) for word in model.sample(5, rng=0))
    assert adapt(Normal(0.0, 1.0)).sample(2, rng=0) == list(np.random.default_rng(0).normal(0.0, 1.0, 2))


# --- derivatives


def test_each_way_of_deriving_says_which_it_is() -> None:
    for model, way, tol in (
        (adapt(Normal(0.4, 1.5), NAMES), "differences", 1e-9),
        (adapt(Telling(0.4, 1.5), NAMES), "own", 1e-14),
        (adapt(Telling(0.4, 1.5)), "own", 1e-14),
    ):
        assert model.gradient_by == way
        assert f"gradient_by={way!r}" in repr(model)
        assert {"own": "log_prob_grad", "jax": "JAX", "differences": "differences"}.get(way, way) in str(model)
        assert_allclose(model.log_prob_grad(X), exact_scores(0.4, 1.5), rtol=0, atol=tol)
    assert adapt(Normal(0.0, 1.0)).gradient_by is None
    with pytest.raises(TypeError, match=r"declared none. Name its attributes by adapt\(model, parameters="):
        FisherScore(adapt(Normal(0.0, 1.0))).fit(X)
    assert adapt(Telling(0.4, 1.5)).parameter_names == ["theta[0]", "theta[1]"]


def test_parameters_may_be_a_dict_and_have_names() -> None:
    model = adapt(words())
    assert model.parameter_names == ["logits[0]", "logits[1]", "stop"]
    assert model.blocks == ["logits", "logits", "stop"]
    check_score(model, ["ab", "", "bba"], "raw")
    p, ends = np.exp([0.2, -0.5]) / np.exp([0.2, -0.5]).sum(), 1.0 / (1.0 + np.exp(-0.3))
    expected = [[k - n * p[0], n - k - n * p[1], 1 - ends - n * ends] for k, n in ((1, 2), (0, 0), (1, 3))]
    assert_allclose(model.log_prob_grad(["ab", "", "bba"]), expected, rtol=0, atol=1e-9)


def test_with_parameters_is_used_where_log_prob_needs_more() -> None:
    class Cached(Normal):
        def __init__(self, mean: float, scale: float):
            super().__init__(mean, scale)
            self.precision = scale**-2

        def log_prob(self, x: Any) -> Any:
            return -0.5 * self.precision * (x - self.mean) ** 2 + 0.5 * np.log(self.precision / (2 * np.pi))

        def with_parameters(self, values: Any) -> Cached:
            return Cached(**values)

    assert_allclose(adapt(Cached(0.4, 1.5), NAMES).log_prob_grad(X), exact_scores(0.4, 1.5), rtol=0, atol=1e-9)


@pytest.mark.peers
def test_torch_derives_modules_and_attributes() -> None:
    torch = pytest.importorskip("torch")

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean = torch.nn.Parameter(torch.tensor(0.4, dtype=torch.float64))
            self.scale = torch.nn.Parameter(torch.tensor(1.5, dtype=torch.float64))
            self.fixed = torch.nn.Parameter(torch.tensor(1.0), requires_grad=False)

        def log_prob(self, x: Any) -> Any:
            return torch.distributions.Normal(self.mean, self.scale).log_prob(torch.as_tensor(x, dtype=torch.float64))

        def sample(self, n: int, rng: Any) -> list[Any]:
            return list(rng.normal(self.mean.item(), self.scale.item(), n))

    model = adapt(Module())
    assert model.gradient_by == "torch"
    assert model.parameter_names == NAMES
    for vectorized in (True, False):
        found = adapt(Module(), vectorized=vectorized)
        assert_allclose(found.log_prob_grad(X), exact_scores(0.4, 1.5), rtol=1e-12)
    assert model == adapt(Module())
    moved = model.with_parameters([1.0, 2.0])
    assert_allclose(moved.log_prob(X), adapt(Normal(1.0, 2.0)).log_prob(X), rtol=1e-12)
    assert model != moved
    assert_allclose(
        ProbabilityProduct(0.5)([model, moved])[0, 1], np.sqrt(2 * 1.5 * 2 / 6.25) * np.exp(-0.36 / 25), atol=0.02
    )

    class Plain(Normal):
        def log_prob(self, x: Any) -> Any:
            return torch.distributions.Normal(self.mean, self.scale).log_prob(torch.as_tensor(x, dtype=torch.float64))

    free = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.4, 1.5)]
    for given in (adapt(Plain(*free)), adapt(Plain(free[0].detach(), free[1].detach()), NAMES)):
        assert given.gradient_by == "torch"
        assert_allclose(given.log_prob_grad(X), exact_scores(0.4, 1.5), rtol=1e-12)
        assert given == adapt(Plain(*free))


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of JAX itself
def test_jax_derives_arrays_and_trees() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    class Tree:
        def __init__(self, parameters: Any):
            self.parameters = parameters

        def log_prob(self, x: Any) -> Any:
            place, spread = self.parameters["place"], self.parameters["more"][0]
            return jax.scipy.stats.norm.logpdf(x, place, spread)

        def sample(self, n: int, rng: Any) -> list[Any]:
            return list(rng.normal(float(self.parameters["place"]), float(self.parameters["more"][0]), n))

    for vectorized in (None, False, True):
        model = adapt(Tree({"place": jnp.asarray(0.4), "more": [jnp.asarray(1.5)]}), vectorized=vectorized)
        assert model.gradient_by == "jax"
        assert model.parameter_names == ["place", "more.0"]
        assert_allclose(model.log_prob_grad(X), exact_scores(0.4, 1.5), rtol=1e-5, atol=1e-6)  # float32
    assert model.digest != adapt(Tree({"place": jnp.asarray(0.5), "more": [jnp.asarray(1.5)]})).digest

    class Attributes(Normal):
        def log_prob(self, x: Any) -> Any:
            return jax.scipy.stats.norm.logpdf(x, self.mean, self.scale)

    found = adapt(Attributes(jnp.asarray(0.4), jnp.asarray(1.5)), NAMES)
    assert found.gradient_by == "jax"
    assert_allclose(found.log_prob_grad(X), exact_scores(0.4, 1.5), rtol=1e-5, atol=1e-6)


# --- Fisher kernels


def test_fisher_scores_have_the_empirical_information() -> None:
    model = adapt(Normal(0.4, 1.5), NAMES)
    fisher = FisherScore(model, ridge=0.0).fit(X)
    assert fisher.information_ == "empirical"
    scores = exact_scores(0.4, 1.5)
    kernel = scores @ np.linalg.inv(scores.T @ scores / len(X)) @ scores.T
    found = fisher.transform(X)
    assert_allclose(found @ found.T, kernel, rtol=0, atol=1e-7)
    assert list(fisher.get_feature_names_out()) == NAMES
    assert_array_equal(fisher.transform(X[::-1]), found[::-1])
    assert_array_equal(clone(fisher).fit(X).transform(X), found)
    assert_allclose(FisherScore(model, "identity").fit_transform(X), scores, rtol=0, atol=1e-9)
    assert list(FisherScore(model, blocks=["scale"]).fit(X).blocks_) == ["scale"]
    for refused in ({"information": "diagonal"}, {"information": "exact"}, {"length_norm": "length"}):
        with pytest.raises(ValueError, match="known by calls alone"):
            FisherScore(model, **refused).fit(X)


def test_classes_of_own_models_are_learned() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["slow", "fast"], 40)
    data = [words(-1.5 if label == "slow" else 1.5).sample(rng) for label in y]
    models = {"slow": adapt(words(-1.5)), "fast": adapt(words(1.5))}
    plug = PlugInClassifier(models, priors="uniform").fit(data, y)
    expected = np.where(models["slow"].log_prob(data) > models["fast"].log_prob(data), "slow", "fast")
    assert_array_equal(plug.predict(data), expected)
    for embedding in (FisherScore(adapt(words())), TopScore(models), FisherScore(models)):
        assert make_pipeline(embedding, LinearSVC()).fit(data, y).score(data, y) > 0.75
    mixture = ClassMixture(models)
    assert mixture.opaque
    check_score(mixture, data[:5], "softmax")


# --- kernels between models


def test_kernels_by_draws_are_near_the_exact_ones() -> None:
    ours = [Gaussian(m, s**2) for m, s in ((0.0, 1.0), (1.0, 0.5), (-1.0, 2.0))]
    models = [adapt(Normal(m, s), n_draws=4000) for m, s in ((0.0, 1.0), (1.0, 0.5), (-1.0, 2.0))]
    for kernel in (ProbabilityProduct(0.5), MeanMap(0.7)):
        assert_allclose(kernel(models), kernel(ours), rtol=0.06)
        assert_array_equal(kernel(models), kernel(models))
    for how in (Power(0.5), Expected(0.7), Jeffreys(0.5)):
        told = affinity.explain(models[0], models[1], how)
        assert told.kind == "sampled"
        off = float(affinity(models[0], models[1], how)) - float(affinity(ours[0], ours[1], how))
        assert abs(off) < 4.5 * told.standard_error
    y = [0, 1, 0]
    matrix = Gram(MeanMap(0.7)).fit_transform(models)
    assert list(SVC(C=100.0, kernel="precomputed").fit(matrix, y).predict(matrix)) == y
    assert ProposalFeatures(n=200).fit_transform(models).shape == (3, 200)


def test_own_models_are_compared_with_those_of_the_package_by_draws() -> None:
    class Points(Normal):
        def log_prob(self, x: Any) -> Any:
            return super().log_prob(x).sum()

        def sample(self, n: int, rng: Any) -> list[Any]:
            return list(rng.normal(self.mean, self.scale, (n, 1, 1)))

    own, ours, other = adapt(Points(0.0, 1.0), n_draws=4000), Gaussian(0.0, 1.0), Gaussian(1.0, 2.0)
    for how in (Power(0.5), Expected(0.7), Jeffreys(0.5)):
        exact = float(affinity(ours, other, how))
        for found in (affinity(own, other, how), affinity(other, own, how), affinity(own, Sampled(other, 4000), how)):
            assert_allclose(found, exact, atol=0.05)


def test_sequences_are_drawn_of_a_length() -> None:
    law = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], Categorical([[0.9, 0.1], [0.2, 0.8]], "ab"))

    class Own:
        def log_prob(self, word: str) -> float:
            return float(law.log_prob([word])[0])

        def sample(self, n: int, rng: Any, length: int = 1) -> list[str]:
            return law.sample(n, length=length, rng=rng)

        digest = "own"

    exact = float(affinity(law, law, Power(1.0), 4))
    assert_allclose(affinity(adapt(Own(), vectorized=False), adapt(Own()), Power(1.0), 4), exact, atol=0.15)
    with pytest.raises(TypeError, match="its sample takes no length"):
        affinity(adapt(words()), adapt(words()), Power(1.0), 4)


def test_a_registered_formula_is_used_and_exact() -> None:
    models = [adapt(Registered(m, s)) for m, s in ((0.0, 1.0), (1.0, 0.5), (-1.0, 2.0))]
    ours = [Gaussian(m, s**2) for m, s in ((0.0, 1.0), (1.0, 0.5), (-1.0, 2.0))]
    assert affinity.explain(models[0], models[1], Power(0.5)).name == "registered_product"
    assert affinity.explain(models[0], models[1], Power(0.5)).kind == "exact"
    assert_allclose(ProbabilityProduct(0.5)(models), ProbabilityProduct(0.5)(ours), rtol=1e-12)
    assert_allclose(affinity(models[0], models[1], Power(0.5), length=3), affinity(ours[0], ours[1], Power(0.5), 3))
    # Other comparisons, and other classes, are by draws.
    assert affinity.explain(models[0], models[1], Expected(1.0)).kind == "sampled"
    assert affinity.explain(models[0], adapt(Normal(0.0, 1.0)), Power(0.5)).kind == "sampled"


# --- identity and files


class Kept(Normal, BaseEstimator):
    """A model that files can name: a class of estimators, whose parameters are those of its constructor."""


def test_values_are_equal_by_content_and_go_to_files(tmp_path: Any) -> None:
    model = adapt(Normal(0.0, 1.0), NAMES)
    assert model == adapt(Normal(0.0, 1.0), NAMES)
    assert model != adapt(Normal(0.0, 1.5), NAMES)
    assert copy.deepcopy(model) == model == pickle.loads(pickle.dumps(model))
    strange = Normal(lambda: 0.0, 1.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"cannot be told from its attributes.*Give it an attribute 'digest'"):
        hash(adapt(strange))
    with pytest.raises(TypeError, match=r"estimator.model cannot be saved: .*Normal is not known"):
        save(FisherScore(model).fit(X), tmp_path / "model.gk")
    saving.register(Kept)
    fisher = FisherScore(adapt(Kept(0.4, 1.5), NAMES)).fit(X)
    save(fisher, tmp_path / "model.gk")
    assert_array_equal(load(tmp_path / "model.gk").transform(X), fisher.transform(X))


# --- errors


def failing(value: Any) -> Any:
    class Failing:
        def log_prob(self, x: Any) -> Any:
            if x == "bad":
                if isinstance(value, Exception):
                    raise value
                return value
            return -1.0

    return adapt(Failing(), vectorized=False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), r"Failing: log_prob must return numbers below infinity. Got nan for object 2"),
        (float("inf"), r"Got inf for object 2"),
        ("much", r"log_prob must return a number. Got 'much' for object 2"),
        (np.zeros(3), r"Got an array of shape \(3,\) for object 2"),
        (KeyError("q"), r"log_prob of object 2 failed with KeyError: 'q'"),
    ],
)
def test_errors_of_log_prob_name_the_object(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        failing(value).log_prob(["good", "fine", "bad"])


def of_law(log_prob: Any, **methods: Any) -> Any:
    """Return a model of one parameter with this log_prob."""
    return type("Law", (Normal,), {"log_prob": lambda self, x: log_prob(x), **methods})(0.0, 1.0)


ROWS = [np.array([0.5, 1.0, -1.0]), np.array([0.2, 0.3])]


@pytest.mark.parametrize("objects", [ROWS, np.arange(6.0).reshape(2, 3), [np.ones((3, 2)), np.ones((3, 2))]])
@pytest.mark.parametrize("shape", [lambda x: x, lambda x: [float(np.sum(v)) for v in x][:-1], lambda x: x[:, None]])
def test_an_array_for_one_object_is_refused_with_a_remedy(objects: Any, shape: Any) -> None:
    model = of_law(lambda x: -(np.asarray(shape(np.asarray(x))) ** 2))
    with pytest.raises(ValueError, match=r"Given object 0, .*given two objects, (?!.*\.\.)"):
        adapt(model).log_prob(objects)
    with pytest.raises(ValueError, match=r"it gave an array .*add up what it returns .* one number for each"):
        adapt(of_law(lambda x: -(np.asarray(x) ** 2))).log_prob(objects)


@pytest.mark.parametrize(("total", "name"), [(np.sum, "sum"), (np.mean, "mean")])
def test_a_total_over_a_list_of_objects_is_refused(total: Any, name: str) -> None:
    chain = of_law(lambda X: float(total([-1.0 - np.sum(np.diff(np.atleast_1d(x)) ** 2) for x in X])))
    with pytest.raises(ValueError, match=f"one number for each object.*the {name} of both.*vectorized=False"):
        adapt(chain).log_prob(ROWS)
    whole = of_law(lambda x: -float(sum(np.sum(v**2) for v in x)))  # of one object, or of a list: the same numbers
    np.testing.assert_allclose(adapt(whole).log_prob(ROWS), [-np.sum(x**2) for x in ROWS])
    counted = of_law(lambda x: -0.7 * len(x))  # of one object, though it adds up over lists as well
    np.testing.assert_allclose(adapt(counted, vectorized=False).log_prob(ROWS), [-2.1, -1.4])


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (lambda x: x, r"Got an array of shape \(2,\) for object 1, and an array of shape \(3,\) for object 0"),
        (np.sum, r"must return p numbers, one for each parameter\. Got an array of shape \(\) for object 0\.$"),
    ],
)
def test_derivatives_of_another_shape_name_the_object(rows: Any, told: str) -> None:
    model = of_law(lambda x: -float(np.sum(np.asarray(x) ** 2)), log_prob_grad=lambda self, x: rows(x))
    with pytest.raises(ValueError, match=told):
        adapt(model, NAMES, vectorized=False).log_prob_grad(ROWS)


@pytest.mark.parametrize(
    ("drawn", "told"),
    [
        (3.0, r"must return 2 objects\. Got float"),
        ([0.1, np.nan], r"without NaN\. Got NaN in object 1"),
        ([np.full(3, np.nan)] * 2, r"without NaN\. Got NaN in object 0"),
    ],
)
def test_draws_that_are_no_objects_are_refused(drawn: Any, told: str) -> None:
    model = type("Drawing", (Normal,), {"sample": lambda self, n, rng: drawn})(0.0, 1.0)
    with pytest.raises(ValueError, match=told):
        adapt(model).sample(2)
    with pytest.raises(ValueError, match=told):
        MeanMap()([adapt(model, n_draws=2), adapt(Normal(0.0, 1.0))])


def test_errors_of_derivatives_name_object_and_parameter() -> None:
    with pytest.raises(ValueError, match=r"object 1 has probability zero"):
        adapt(Edge(1.0), ["end"]).log_prob_grad([0.5, 2.0])
    with pytest.raises(ValueError, match=r"object 1 by the parameter end is .* \(taken by differences\)"):
        adapt(Edge(1.0), ["end"]).log_prob_grad([0.5, 0.9999])
    with pytest.raises(ValueError, match="log_prob_grad must return 2 derivatives"):
        adapt(
            type("Short", (Telling,), {"log_prob_grad": lambda self, x: np.zeros((len(x), 1))})(0.0, 1.0), NAMES
        ).log_prob_grad(X)
    with pytest.raises(ValueError, match="has no attribute 'spread'"):
        adapt(Normal(0.0, 1.0), ["spread"])
    with pytest.raises(TypeError, match="the parameter 'mean' of Normal must be numbers"):
        adapt(Normal("wide", 1.0), ["mean"])  # type: ignore[arg-type]


class Edge:
    """Uniform from zero to an end: no derivative near it."""

    def __init__(self, end: float):
        self.end = end

    def log_prob(self, x: float) -> float:
        return -float(np.log(self.end)) if 0.0 <= x <= self.end else -np.inf


def test_wrong_models_and_signatures_are_told() -> None:
    for wrong in (3, Normal, object(), "normal"):
        with pytest.raises(TypeError, match="adapt: expected an object with the methods log_prob and sample"):
            adapt(wrong)
    with pytest.raises(TypeError, match="'parameters' must be a list of names"):
        adapt(Normal(0.0, 1.0), "mean")
    seedless = type("Seedless", (Normal,), {"sample": lambda self, n: [0.0] * n})
    with pytest.raises(TypeError, match=r"expected the method sample\(n, rng\).* or sample\(rng\).*Got sample\(n\)"):
        adapt(seedless(0.0, 1.0)).sample(3)
    with pytest.raises(TypeError, match=r"kernels by draws need the method sample\(n, rng\)"):
        MeanMap()([failing(0.0), failing(0.0)])
    short = type("Short", (Normal,), {"sample": lambda self, n, rng: [0.0]})
    with pytest.raises(ValueError, match=r"sample\(3, rng\) must return 3 objects. Got 1"):
        adapt(short(0.0, 1.0)).sample(3)
    both = type("Both", (), {"log_prob": lambda self, x: -np.asarray(x, float) if np.ndim(x) else -2.0})
    with pytest.raises(ValueError, match="log_prob of object 0 is -2 alone, and -1 among others"):
        adapt(both()).log_prob([1.0, 1.0])
    neither = type("Neither", (), {"log_prob": lambda self, x: np.zeros((2, 2))})
    with pytest.raises(ValueError, match="must return a number for one object, or an array of n numbers"):
        adapt(neither()).log_prob([1.0])
    for X_, message in (("abc", "put one object into a list"), ({"a": 1}, "Got dict"), ([], "at least one object")):
        with pytest.raises((TypeError, ValueError), match=message):
            adapt(words()).log_prob(X_)


@pytest.mark.parametrize(
    "use",
    [
        lambda model: MeanMap()([model, model]),
        lambda model: affinity(model, model, Power(1.0)),
        lambda model: FisherScore(model).fit(X),
        lambda model: PlugInClassifier({0: model, 1: model}).fit(X, [0, 0, 1, 1]),
        lambda model: ClassMixture({0: model}),
    ],
)
def test_plain_objects_are_told_of_adapt(use: Any) -> None:
    with pytest.raises(TypeError, match=r"genkern\.adapt\(model\)"):
        use(Normal(0.0, 1.0))


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of JAX itself
def test_examples_with_torch_and_jax_run() -> None:
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    page = (Path(__file__).parents[1] / "docs" / "own_models.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```", page, flags=re.S | re.M)
    assert len(blocks) == 2
    names = {"torch": torch, "jax": jax, "jnp": jax.numpy, "FisherScore": FisherScore, "adapt": adapt}
    names |= {"X": np.random.default_rng(0).normal(size=(6, 2))}
    names["parameters"] = {"mean": jax.numpy.zeros(2), "log_scale": jax.numpy.zeros(2)}
    for block in blocks:
        exec(block, names)
    exact = FisherScore(adapt(names["Flow"]()), "identity").fit_transform(names["X"])
    assert_allclose(exact, np.column_stack([names["X"], names["X"] ** 2 - 1.0]), atol=1e-5)
    other = FisherScore(adapt(names["Tree"](names["parameters"])), "identity").fit_transform(names["X"])
    assert_allclose(other, exact, atol=1e-5)
    assert MeanMap()([adapt(names["Flow"]()), adapt(names["Tree"](names["parameters"]))]).shape == (2, 2)

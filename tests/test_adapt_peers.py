"""Fitted models of other packages become the same distributions here: their own log-likelihoods are the oracle."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from genkern import HMM, LDS, BayesNet, ClassMixture, FisherScore, LinearGaussianNet, MarkovChain, Mixture, adapt
from tests.cases import hmmlearn_as_it_is

RNG = np.random.default_rng(3)
START, STEPS = RNG.dirichlet(np.ones(3)), RNG.dirichlet(np.ones(3), 3)
SERIES = [RNG.normal(size=(n, 2)) for n in (1, 7, 12)]
COUNTS = [RNG.poisson(2.0, size=(n, 2)) for n in (1, 7, 12)]
CODES = [RNG.integers(0, 4, n) for n in (1, 7, 12)]
MEANS = RNG.normal(size=(3, 2))
ROOTS = RNG.normal(size=(3, 2, 2))
COVS = ROOTS @ np.swapaxes(ROOTS, -1, -2) + np.eye(2)
HALF = np.full((2, 2), 0.5)
KINDS = {"full": COVS, "tied": COVS[0], "diag": COVS[:, [0, 1], [0, 1]], "spherical": COVS[:, 0, 0]}


def same(ours: Any, theirs: Any) -> None:
    """Compare log-likelihoods: to 1e-8, relative to their size or to one."""
    wanted = np.asarray(theirs, dtype=np.float64)
    assert np.isfinite(wanted).all()
    np.testing.assert_array_less(np.abs(np.asarray(ours) - wanted), 1e-8 * np.maximum(1.0, np.abs(wanted)))


# --- hmmlearn


def hmmlearn(name: str, **attributes: Any) -> Any:
    peer = pytest.importorskip("hmmlearn.hmm")
    options = {key: attributes.pop(key) for key in ("covariance_type", "n_mix", "n_trials") if key in attributes}
    model = getattr(peer, name)(n_components=3, **options)
    for key, value in {"startprob_": START, "transmat_": STEPS, **attributes}.items():
        setattr(model, key, value)
    return model


def scores(model: Any, X: list[Any]) -> list[float]:
    with hmmlearn_as_it_is():
        return [model.score(np.reshape(x, (len(x), -1))) for x in X]


@pytest.mark.parametrize("kind", KINDS)
def test_gaussian_hmms_of_hmmlearn(kind: str) -> None:
    model = hmmlearn("GaussianHMM", covariance_type=kind, n_features=2, means_=MEANS, covars_=KINDS[kind])
    found = adapt(model)
    assert isinstance(found, HMM)
    form = {"diag": "diagonal", "spherical": "isotropic"}.get(kind, "full")
    assert found.emissions.covariance_type == form
    same(found.log_prob(SERIES), scores(model, SERIES))


@pytest.mark.parametrize("kind", KINDS)
def test_gaussian_mixture_hmms_of_hmmlearn(kind: str) -> None:
    wide = np.stack([COVS, 2.0 * COVS], axis=1)
    covs = {"full": wide, "tied": COVS, "diag": wide[..., [0, 1], [0, 1]], "spherical": wide[..., 0, 0]}[kind]
    means, weights = RNG.normal(size=(3, 2, 2)), RNG.dirichlet(np.ones(2), 3)
    given = {"means_": means, "covars_": covs, "weights_": weights, "n_features": 2}
    model = hmmlearn("GMMHMM", covariance_type=kind, n_mix=2, **given)
    same(adapt(model).log_prob(SERIES), scores(model, SERIES))


def test_discrete_hmms_of_hmmlearn() -> None:
    probs = RNG.dirichlet(np.ones(4), 3)
    model = hmmlearn("CategoricalHMM", n_features=4, emissionprob_=probs)
    same(adapt(model).log_prob(CODES), scores(model, CODES))
    rates = RNG.gamma(2.0, size=(3, 2))
    model = hmmlearn("PoissonHMM", n_features=2, lambdas_=rates)
    same(adapt(model).log_prob(COUNTS), scores(model, COUNTS))
    model = hmmlearn("MultinomialHMM", n_trials=5, n_features=2, emissionprob_=RNG.dirichlet(np.ones(2), 3))
    rows = [RNG.multinomial(5, [0.3, 0.7], size=n) for n in (1, 6)]
    same(adapt(model).log_prob(rows), scores(model, rows))


def test_a_fitted_model_goes_into_the_fisher_kernel() -> None:
    peer = pytest.importorskip("hmmlearn.hmm")
    with hmmlearn_as_it_is():
        model = peer.GaussianHMM(2, random_state=0, n_iter=5).fit(np.concatenate(SERIES), [len(x) for x in SERIES])
    same(adapt(model).log_prob(SERIES), scores(model, SERIES))
    assert np.isfinite(FisherScore(adapt(model)).fit_transform(SERIES)).all()


def test_models_that_are_not_fitted_or_not_known_are_named() -> None:
    peer = pytest.importorskip("hmmlearn.hmm")
    with pytest.raises(ValueError, match=r"GaussianHMM has no means_: it is not fitted"):
        adapt(peer.GaussianHMM(2))
    vhmm = pytest.importorskip("hmmlearn.vhmm")
    with pytest.raises(TypeError, match=r"of hmmlearn it knows CategoricalHMM, .*Got VariationalGaussianHMM"):
        adapt(vhmm.VariationalGaussianHMM(2))


# --- scikit-learn


@pytest.mark.parametrize("kind", KINDS)
def test_mixtures_of_scikit_learn(kind: str) -> None:
    from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

    X = np.concatenate([RNG.normal(size=(30, 2)), RNG.normal(3.0, 2.0, size=(30, 2))])
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    found = adapt(model)
    assert isinstance(found, Mixture)
    same(found.log_prob(X), model.score_samples(X))
    # Of the Bayesian one the distribution at the point estimate; its score_samples is an expectation over others.
    bayes = BayesianGaussianMixture(n_components=2, covariance_type=kind, random_state=0, max_iter=500).fit(X)
    covs = {
        "full": lambda: bayes.covariances_,
        "tied": lambda: [bayes.covariances_] * 2,
        "diag": lambda: [np.diag(v) for v in bayes.covariances_],
        "spherical": lambda: [v * np.eye(2) for v in bayes.covariances_],
    }[kind]()
    parts = [w * multivariate_normal(m, c).pdf(X) for w, m, c in zip(bayes.weights_, bayes.means_, covs)]
    same(adapt(bayes).log_prob(X), np.log(sum(parts)))


def test_densities_and_classes_of_scikit_learn() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KernelDensity

    X, y = RNG.normal(size=(20, 2)), np.repeat(["a", "b"], 10)
    for weights in (None, RNG.uniform(1.0, 2.0, 20)):
        density = KernelDensity(bandwidth=0.7).fit(X, sample_weight=weights)
        same(adapt(density).log_prob(X + 0.1), density.score_samples(X + 0.1))
    naive = GaussianNB().fit(X, y)
    found = adapt(naive)
    assert isinstance(found, ClassMixture)
    assert found.labels == ("a", "b")
    same(found.joint_log_prob(X), naive.predict_joint_log_proba(X))
    with pytest.raises(ValueError, match="kernel='tophat'"):
        adapt(KernelDensity(kernel="tophat").fit(X))
    with pytest.raises(ValueError, match="metric='manhattan'"):
        adapt(KernelDensity(metric="manhattan").fit(X))
    with pytest.raises(TypeError, match=r"of sklearn it knows GaussianMixture.*Got RandomForestClassifier"):
        adapt(RandomForestClassifier())


# --- pgmpy


def test_networks_of_pgmpy() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its imports
        models = pytest.importorskip("pgmpy.models")
        cpds = pytest.importorskip("pgmpy.factors.discrete")
        linear = pytest.importorskip("pgmpy.factors.continuous")
    net = models.DiscreteBayesianNetwork([("a", "c"), ("b", "c")])
    tables = RNG.dirichlet(np.ones(2), 6).T
    net.add_cpds(
        cpds.TabularCPD("a", 2, [[0.3], [0.7]]),
        cpds.TabularCPD("b", 3, [[0.2], [0.5], [0.3]]),
        cpds.TabularCPD("c", 2, tables, ["a", "b"], [2, 3]),
    )
    found = adapt(net)
    assert isinstance(found, BayesNet)
    rows = np.array([[a, b, c] for a in range(2) for b in range(3) for c in range(2)])
    theirs = [np.log(net.get_state_probability(dict(zip("abc", row.tolist())))) for row in rows]
    columns = [["a", "b", "c"].index(name) for name in found.observed]
    same(found.log_prob(rows[:, columns]), theirs)
    joint = models.LinearGaussianBayesianNetwork([("u", "v"), ("u", "w"), ("v", "w")])
    joint.add_cpds(
        linear.LinearGaussianCPD("u", [1.0], 2.0),
        linear.LinearGaussianCPD("v", [0.5, -1.0], 0.7, ["u"]),
        linear.LinearGaussianCPD("w", [0.0, 2.0, 0.3], 1.5, ["v", "u"]),
    )
    ours = adapt(joint)
    assert isinstance(ours, LinearGaussianNet)
    import pandas as pd

    X = RNG.normal(size=(5, 3))
    table = pd.DataFrame(X, columns=ours.observed)
    same(ours.log_prob(X), [joint.log_likelihood(table.iloc[[i]]) for i in range(5)])
    with pytest.raises(ValueError, match="no CPD of node 'a'"):
        adapt(models.DiscreteBayesianNetwork([("a", "b")]))


# --- pomegranate


@pytest.fixture
def doubles() -> Any:
    """Return torch, computing in float64."""
    torch = pytest.importorskip("torch")
    torch.set_default_dtype(torch.float64)
    yield torch
    torch.set_default_dtype(torch.float32)


def laws(name: str) -> list[Any]:
    made = pytest.importorskip("pomegranate.distributions")
    return {
        "normal": lambda: [made.Normal(m, c) for m, c in zip(MEANS, COVS)],
        "diagonal": lambda: [made.Normal(m, np.diag(c), covariance_type="diag") for m, c in zip(MEANS, COVS)],
        "poisson": lambda: [made.Poisson(r) for r in 1.0 + np.arange(6.0).reshape(3, 2)],
        "exponential": lambda: [made.Exponential(r) for r in 1.0 + np.arange(6.0).reshape(3, 2)],
        "gamma": lambda: [made.Gamma(r, r / 2) for r in 1.5 + np.arange(6.0).reshape(3, 2)],
        "bernoulli": lambda: [made.Bernoulli(r) for r in (1.0 + np.arange(6.0).reshape(3, 2)) / 8],
        "categorical": lambda: [made.Categorical(r[None]) for r in np.random.default_rng(1).dirichlet(np.ones(4), 3)],
    }[name]()


OBJECTS = {
    "normal": SERIES,
    "diagonal": SERIES,
    "poisson": COUNTS,
    "exponential": [np.abs(x) for x in SERIES],
    "gamma": [np.abs(x) for x in SERIES],
    "bernoulli": [x % 2 for x in COUNTS],
    "categorical": CODES,
}


@pytest.mark.peers
@pytest.mark.parametrize("name", OBJECTS)
def test_distributions_mixtures_and_hmms_of_pomegranate(doubles: Any, name: str) -> None:
    hmm, gmm = pytest.importorskip("pomegranate.hmm"), pytest.importorskip("pomegranate.gmm")
    X = OBJECTS[name]
    whole = name == "categorical"
    tensors = [doubles.tensor(x.reshape(len(x), -1) if whole else x.astype(float)) for x in X]
    points = X[-1][:, None] if whole else X[-1]
    bags = list(points) if whole else points
    law = laws(name)[0]
    same(adapt(law).log_prob(bags), law.log_probability(tensors[-1]))
    mixture = gmm.GeneralMixtureModel(laws(name), priors=START)
    same(adapt(mixture).log_prob(bags), mixture.log_probability(tensors[-1]))
    for edges, ends in ((0.8 * STEPS, np.full(3, 0.2)), (STEPS, np.array([0.5, 0.2, 0.3]))):
        made = laws(name)
        dense = hmm.DenseHMM(made, edges=edges, starts=START, ends=ends)
        theirs = [dense.log_probability(x[None]).item() for x in tensors]
        found = adapt(dense)
        assert (found.stop is None) == (edges is STEPS)
        same(found.log_prob(X), theirs)
        listed = [(made[i], made[j], float(edges[i, j])) for i in range(3) for j in range(3)]
        sparse = hmm.SparseHMM(made, edges=listed, starts=START, ends=ends)
        same(adapt(sparse).log_prob(X), theirs)
        # Its own pass is in float32, whatever the parameters.
        assert_allclose([sparse.log_probability(x[None]).item() for x in tensors], theirs, rtol=1e-4)


@pytest.mark.peers
def test_what_pomegranate_leaves_open_is_refused(doubles: Any) -> None:
    hmm, made = pytest.importorskip("pomegranate.hmm"), pytest.importorskip("pomegranate.distributions")
    with pytest.raises(ValueError, match="transitions, with or without those to the end, that do not sum to one"):
        adapt(hmm.DenseHMM(laws("poisson"), edges=0.5 * STEPS, starts=START, ends=np.full(3, 0.2)))
    with pytest.raises(ValueError, match="Categorical with 2 dimensions"):
        adapt(made.Categorical(np.full((2, 3), 1 / 3)))
    with pytest.raises(TypeError, match=r"distribution 1 of the DenseHMM must be one of .*Got Uniform"):
        adapt(hmm.DenseHMM([made.Normal([0.0], [[1.0]]), made.Uniform([0.0], [1.0])], edges=HALF, starts=HALF[0]))
    with pytest.raises(ValueError, match="distributions of different families"):
        adapt(hmm.DenseHMM([made.Poisson([1.0]), made.Exponential([1.0])], edges=HALF, starts=HALF[0]))
    with pytest.raises(TypeError, match=r"of pomegranate it knows Bernoulli, .*Got Uniform"):
        adapt(made.Uniform([0.0], [1.0]))
    with pytest.raises(ValueError, match="Normal has no means: it is not fitted"):
        adapt(made.Normal())


@pytest.mark.peers
def test_chains_and_networks_of_pomegranate(doubles: Any) -> None:
    made = pytest.importorskip("pomegranate.distributions")
    chain = pytest.importorskip("pomegranate.markov_chain")
    network = pytest.importorskip("pomegranate.bayesian_network")
    first, second = RNG.dirichlet(np.ones(4)), RNG.dirichlet(np.ones(4), 4)
    third = RNG.dirichlet(np.ones(4), (4, 4))
    parts = [made.Categorical(first[None]), made.ConditionalCategorical([second]), made.ConditionalCategorical([third])]
    model = chain.MarkovChain(parts)
    found = adapt(model)
    assert isinstance(found, MarkovChain)
    X = CODES[1:]
    same(found.log_prob(X), [model.log_probability(doubles.tensor(x[None, :, None])).item() for x in X])
    net = network.BayesianNetwork(parts, edges=[(parts[0], parts[1]), (parts[0], parts[2]), (parts[1], parts[2])])
    rows = RNG.integers(0, 4, (6, 3))
    theirs = np.log(first[rows[:, 0]] * second[rows[:, 0], rows[:, 1]] * third[tuple(rows.T)])
    same(adapt(net).log_prob(rows), theirs)
    # Its own sum is in float32, whatever the tables.
    assert_allclose(net.log_probability(doubles.tensor(rows)), theirs, rtol=1e-5)


# --- dynamax


@pytest.fixture
def jax() -> Any:
    """Return JAX, computing in float64."""
    found = pytest.importorskip("jax")
    before = found.config.jax_enable_x64
    found.config.update("jax_enable_x64", True)
    yield found
    found.config.update("jax_enable_x64", before)


HMMS = {
    "BernoulliHMM": [x % 2 for x in COUNTS],
    "CategoricalHMM": CODES,
    "GammaHMM": [np.abs(x[:, :1]) for x in SERIES],
    "GaussianHMM": SERIES,
    "DiagonalGaussianHMM": SERIES,
    "SphericalGaussianHMM": SERIES,
    "SharedCovarianceGaussianHMM": SERIES,
    "LowRankGaussianHMM": SERIES,
    "GaussianMixtureHMM": SERIES,
    "DiagonalGaussianMixtureHMM": SERIES,
    "MultinomialHMM": [RNG.multinomial(5, [0.3, 0.7], size=n) for n in (1, 6)],
    "PoissonHMM": COUNTS,
}


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of JAX, about dynamax
@pytest.mark.parametrize("name", HMMS)
def test_hmms_of_dynamax(jax: Any, name: str) -> None:
    peer = pytest.importorskip("dynamax.hidden_markov_model")
    options: dict[str, Any] = {"emission_dim": 2}
    options |= {
        "CategoricalHMM": {"emission_dim": 1, "num_classes": 4},
        "MultinomialHMM": {"emission_dim": 1, "num_classes": 2, "num_trials": 5},
        "GaussianMixtureHMM": {"num_components": 2},
        "DiagonalGaussianMixtureHMM": {"num_components": 2},
        "LowRankGaussianHMM": {"emission_rank": 1},
    }.get(name, {})
    if name == "GammaHMM":
        options = {}
    model = getattr(peer, name)(3, **options)
    params, _ = model.initialize(jax.random.PRNGKey(1))
    found = adapt((model, params))
    X = HMMS[name]
    shape = {"CategoricalHMM": (-1, 1), "MultinomialHMM": (-1, 1, 2), "GammaHMM": (-1,)}.get(name, (-1, 2))
    theirs = [float(model.marginal_log_prob(params, jax.numpy.asarray(np.reshape(x, shape)))) for x in X]
    same(found.log_prob(X), theirs)
    same(adapt(model, params).log_prob(X), theirs)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of JAX, about dynamax
@pytest.mark.parametrize("bias", [0.0, 0.3])
def test_linear_systems_of_dynamax(jax: Any, bias: float) -> None:
    peer = pytest.importorskip("dynamax.linear_gaussian_ssm")
    model = peer.LinearGaussianSSM(3, 2)
    params, _ = model.initialize(jax.random.PRNGKey(0), dynamics_bias=np.full(3, bias), emission_bias=np.ones(2))
    found = adapt((model, params))
    assert isinstance(found, LDS)
    assert found.n_states == (4 if bias else 3)
    theirs = [float(model.marginal_log_prob(params, jax.numpy.asarray(x))) for x in SERIES]
    same(found.log_prob(SERIES), theirs)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of JAX, about dynamax
def test_what_dynamax_leaves_open_is_refused(jax: Any) -> None:
    peer = pytest.importorskip("dynamax.hidden_markov_model")
    linear = pytest.importorskip("dynamax.linear_gaussian_ssm")
    model = linear.LinearGaussianSSM(3, 2, input_dim=1)
    params, _ = model.initialize(jax.random.PRNGKey(0))
    with pytest.raises(ValueError, match="inputs to the dynamics"):
        adapt((model, params))
    with pytest.raises(TypeError, match=r"needs its params: adapt\(\(model, params\)\)"):
        adapt(model)
    with pytest.raises(TypeError, match=r"of dynamax it knows BernoulliHMM.*Got LinearRegressionHMM"):
        adapt(peer.LinearRegressionHMM(2, 1, 1))

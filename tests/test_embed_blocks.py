"""Blocks of scores, visits of hidden states, features by blocks and standardised features, against plain sums."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from genkern import (
    HMM,
    BlockNormalizer,
    Categorical,
    FisherScore,
    Gaussian,
    MarkovChainEstimator,
    Mixture,
    PowerMap,
    Spectrum,
    Standardize,
    TopScore,
)
from genkern.features import streaming
from genkern.preprocess.standardize import learn_scale
from tests.cases import path_weights, random_hmm, random_sequence, rows
from tests.cases_zoo import ZOO, draw

VISITED = ("HMM of", "HMM that", "FactorialHMM", "SwitchingLDS", "Mixture of", "ClassMixture")


def gram(features):
    return features @ features.T


# --- selection


@pytest.mark.parametrize("name", ZOO)
def test_blocks_are_columns_of_all_features(name):
    model = ZOO[name]
    X = draw(model, 8)
    whole = FisherScore(model, "diagonal").fit(X)
    features, names = whole.transform(X), whole.get_feature_names_out()
    order = list(whole.blocks_)[::-1]
    some = FisherScore(model, "diagonal", blocks=order).fit(X)
    assert list(some.blocks_) == order
    assert [part.stop for part in some.blocks_.values()][-1] == features.shape[1]
    found = some.transform(X)
    for block, columns in some.blocks_.items():
        np.testing.assert_allclose(found[:, columns], features[:, whole.blocks_[block]], rtol=1e-12, atol=1e-12)
        assert list(some.get_feature_names_out()[columns]) == list(names[whole.blocks_[block]])


@pytest.mark.parametrize("information", ["complete", "exact", "empirical"])
def test_information_is_that_of_the_kept_parameters(information):
    model = random_hmm(np.random.default_rng(0), size=2) if information == "exact" else ZOO["HMM that stops"]
    X = draw(model)
    kept = [j for j, name in enumerate(model.parameter_names) if name.startswith(("transitions", "emissions.probs"))]
    scores = model.log_prob_grad(X)[:, kept]
    matrix = np.zeros((len(model.parameter_names),) * 2)
    if information == "complete":
        for index, block in model.information([len(x) for x in X], "softmax"):
            matrix[np.ix_(index, index)] = block
    elif information == "exact":
        for length in map(len, X):
            words = [np.array(word) for word in itertools.product(range(2), repeat=length)]
            slopes = model.log_prob_grad(words)
            matrix += slopes.T * np.exp(model.log_prob(words)) @ slopes / len(X)
    else:
        matrix[np.ix_(kept, kept)] = scores.T @ scores / len(X)
    part = matrix[np.ix_(kept, kept)]
    expected = scores @ np.linalg.pinv(part, rcond=1e-9, hermitian=True) @ scores.T
    blocks = ["probs", "occupancy", "transitions"]  # visits in between must not enter
    fisher = FisherScore(model, information, ridge=0.0, blocks=blocks).fit(X)
    features = np.delete(fisher.transform(X), fisher.blocks_["occupancy"], axis=1)
    np.testing.assert_allclose(gram(features), expected, rtol=1e-7, atol=1e-7)


def test_names_of_symbols_and_nodes_do_not_matter():
    model = HMM([0.5, 0.5], [[0.5, 0.5]] * 2, Categorical(rows(np.random.default_rng(0), 2, 3), alphabet=".[]"))
    fisher = FisherScore(model, blocks=["probs", "start"]).fit([".[", "]"])
    assert fisher.get_feature_names_out()[1] == "emissions.probs[0,[]"
    assert fisher.blocks_ == {"probs": slice(0, 6), "start": slice(6, 8)}
    expected = {"BayesNet": ["h", "a.b", "c[0]"], "LinearGaussianNet": ["bias", "variances", "weights"]}
    for name, blocks in expected.items():
        assert list(FisherScore(ZOO[name]).fit(draw(ZOO[name])).blocks_) == blocks


@pytest.mark.parametrize("blocks", ["means", ["means"], [], ["start", "start"], 3])
def test_unknown_blocks_are_refused_with_those_there_are(blocks):
    model = random_hmm(np.random.default_rng(0))
    with pytest.raises(ValueError, match="'start', 'transitions', 'probs', 'occupancy'"):
        FisherScore(model, blocks=blocks).fit([[0, 1]])


def test_models_without_hidden_states_have_no_occupancy():
    with pytest.raises(ValueError, match=r"blocks of Categorical, each once. It has 'probs'. Got \['occupancy'\]"):
        FisherScore(ZOO["Categorical"], blocks=["occupancy"]).fit([[0, 1]])


# --- visits


def paths_of(model, x):
    """Return all paths of states, or of pairs of states and components, with their probabilities given x."""
    if not isinstance(model.emissions, Mixture):
        paths, weights = path_weights(model, x)
        return paths, weights / weights.sum()
    n, k = model.emissions.weights.shape
    steps = np.kron(model.transitions, np.ones((k, k))) * model.emissions.weights.ravel()
    parts = model.emissions.components
    flat = Gaussian(parts.mean.reshape(n * k, -1), parts.cov.reshape(n * k, -1))
    start = (model.start[:, None] * model.emissions.weights).ravel()
    paths, weights = path_weights(HMM(start, steps, flat), x)
    return paths, weights / weights.sum()


@pytest.mark.parametrize("name", ["HMM of symbols", "HMM that stops", "HMM of vectors", "HMM of mixtures"])
def test_occupancy_counts_visits_over_all_paths(name):
    model = ZOO[name]
    X = draw(model, 8)
    fisher = FisherScore(model, blocks=["occupancy"]).fit(X)
    expected = np.zeros((len(X), fisher.n_features_out_))
    for i, x in enumerate(X):
        for path, weight in zip(*paths_of(model, np.asarray(x))):
            np.add.at(expected[i], list(path), weight)
    np.testing.assert_allclose(fisher.transform(X), expected, rtol=1e-9, atol=1e-12)
    last = "1,1" if "mixtures" in name else "1"
    assert fisher.get_feature_names_out()[-1] == f"occupancy[{last}]"


def test_occupancy_of_chains_regimes_components_and_classes():
    model = ZOO["FactorialHMM"]
    X = draw(model, 8)
    visits = np.zeros((len(X), 4))
    for i, x in enumerate(X):
        paths, weights = path_weights(model.to_hmm(), x)
        for path, weight in zip(paths, weights / weights.sum()):
            for state in path:
                visits[i, [state // 2, 2 + state % 2]] += weight
    fisher = FisherScore(model, blocks=["occupancy"]).fit(X)
    np.testing.assert_allclose(fisher.transform(X), visits, rtol=1e-9, atol=1e-12)
    assert list(fisher.get_feature_names_out()) == [f"occupancy[{c},{k}]" for c in range(2) for k in range(2)]

    model = ZOO["SwitchingLDS"]
    X = draw(model, 8)
    visits = [regimes.sum(axis=0) for regimes, *_ in model.posterior(X)]
    np.testing.assert_allclose(FisherScore(model, blocks=["occupancy"]).fit_transform(X), visits, rtol=1e-9, atol=1e-12)

    model = ZOO["Mixture of vectors"]
    X, parts = draw(model, 8), model.components
    laws = [stats.multivariate_normal(mean, np.diag(cov)) for mean, cov in zip(parts.mean, parts.cov)]
    joint = [np.stack([w * np.atleast_1d(law.pdf(x)) for w, law in zip(model.weights, laws)]) for x in X]
    visits = [(table / table.sum(axis=0)).sum(axis=1) for table in joint]
    np.testing.assert_allclose(FisherScore(model, blocks=["occupancy"]).fit_transform(X), visits, rtol=1e-9, atol=1e-12)

    model = ZOO["ClassMixture of sequences"]
    X = draw(model, 8)
    joint = np.exp([part.log_prob(X) for part in model.models]).T * model.priors
    fisher = FisherScore(model, blocks=["occupancy", "priors"]).fit(X)
    found = fisher.transform(X)[:, fisher.blocks_["occupancy"]]
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)
    assert list(fisher.get_feature_names_out()[:2]) == ["occupancy[a.b[0]]", "occupancy[c]"]


@pytest.mark.parametrize("name", [name for name in ZOO if name.startswith(VISITED)])
def test_occupancy_leaves_the_scores_as_they_are(name):
    model = ZOO[name]
    X = draw(model, 8)
    whole = FisherScore(model, length_norm="length").fit(X)
    both = FisherScore(model, length_norm="length", blocks=[*whole.blocks_, "occupancy"]).fit(X)
    order = np.concatenate([np.arange(whole.n_features_out_)[columns] for columns in whole.blocks_.values()])
    features = both.transform(X)
    np.testing.assert_allclose(features[:, : len(order)], whole.transform(X)[:, order], rtol=1e-10, atol=1e-12)
    chains = 2 if name == "FactorialHMM" else 1
    sizes = 1.0 if not name.startswith("ClassMixture") else 1.0 / np.array([len(x) for x in X])
    np.testing.assert_allclose(features[:, both.blocks_["occupancy"]].sum(axis=1), chains * sizes, rtol=1e-12)


def test_one_pass_gives_scores_and_visits(monkeypatch):
    model = ZOO["HMM of mixtures"]
    fisher = FisherScore(model, blocks=["occupancy", "means", "transitions"]).fit(draw(model))
    calls = []
    original = HMM.statistics
    monkeypatch.setattr(HMM, "statistics", lambda self, X: calls.append(1) or original(self, X))
    fisher.transform(draw(model))
    assert len(calls) == 1


def test_visits_do_not_depend_on_blocks_or_threads(monkeypatch):
    rng = np.random.default_rng(1)
    model = random_hmm(rng, "diagonal")
    X = [random_sequence(rng, "diagonal", length) for length in rng.integers(1, 30, 20)]
    fisher = FisherScore(model, blocks=["occupancy", "means"]).fit(X)
    reference = fisher.transform(X)
    monkeypatch.setattr(streaming, "BATCH_POSITIONS", 40)
    np.testing.assert_allclose(fisher.transform(X), reference, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fisher.set_params(n_jobs=2).transform(X), reference, rtol=0, atol=1e-12)


# --- unit length by blocks


class Table(TransformerMixin, BaseEstimator):
    """Rows as they are, in given blocks."""

    def __init__(self, blocks=None):
        self.blocks = blocks

    def fit(self, X, y=None):
        self.fitted_ = True
        if self.blocks is not None:
            self.blocks_ = self.blocks
        return self

    def transform(self, X):
        return X

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(-X)


def unit(values, power):
    """Return signed powers of unit length, by plain loops."""
    powers = [np.sign(v) * abs(v) ** power for v in values]
    size = sum(p * p for p in powers) ** 0.5
    return [p / size if size > 0 else 0.0 for p in powers]


BLOCKS = {"a": slice(0, 2), "b": np.array([2, 5]), "c": slice(3, 5)}


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), power=st.sampled_from([0.3, 0.5, 2.0]), blocks=st.sampled_from([None, BLOCKS]))
def test_blocks_have_unit_length(seed, power, blocks):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((5, 6)) * (rng.random((5, 6)) < 0.6)
    X[0] = 0.0
    expected = np.zeros(X.shape)
    for i, row in enumerate(X):
        for columns in (blocks or {"all": slice(None)}).values():
            expected[i, columns] = unit(row[columns], power)
        expected[i] = unit(expected[i], 1.0)
    normalizer = BlockNormalizer(Table(blocks), power).fit(X)
    features = normalizer.transform(X)
    np.testing.assert_allclose(features, expected, rtol=1e-12, atol=1e-15)
    assert not features[0].any()
    found = normalizer.transform(sparse.csr_matrix(X))
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scales_of_blocks_do_not_matter(scale):
    X = np.random.default_rng(0).standard_normal((4, 6))
    scaled = X * np.array([scale, scale, 1.0, 3.0, 3.0, 1.0])
    for table in (scaled, sparse.csr_matrix(scaled)):
        found = BlockNormalizer(Table(BLOCKS), 2.0).fit(X).transform(table)
        found = found if table is scaled else found.toarray()
        np.testing.assert_allclose(found, BlockNormalizer(Table(BLOCKS), 2.0).fit(X).transform(X), rtol=1e-12)


def test_normaliser_takes_what_the_embedding_gives_training_objects():
    X = np.random.default_rng(0).standard_normal((4, 6))
    normalizer = BlockNormalizer(Table(BLOCKS))
    np.testing.assert_array_equal(normalizer.fit_transform(X), -normalizer.transform(X))
    assert list(normalizer.blocks_) == list(BLOCKS)


def test_normalised_features_keep_their_names():
    X = ["abba", "ab", "b"]
    normalizer = BlockNormalizer(Spectrum(2)).fit(X)
    assert list(normalizer.get_feature_names_out()) == list(Spectrum(2).fit(X).get_feature_names_out())
    with pytest.raises(ValueError, match="'power' parameter of BlockNormalizer"):
        BlockNormalizer(Spectrum(2), power=0.0).fit(X)


def test_power_is_the_signed_power_of_the_scores():
    model = ZOO["HMM of vectors"]
    X = draw(model)
    fisher = FisherScore(model, blocks=["means"])
    rooted = make_pipeline(fisher, PowerMap(0.5)).fit_transform(X)
    expected = rooted / np.linalg.norm(rooted, axis=1, keepdims=True)
    np.testing.assert_allclose(BlockNormalizer(fisher).fit_transform(X), expected, rtol=1e-12)


# --- mean zero and variance one


def test_features_are_standardised_and_those_that_hardly_vary_left_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 5)) * [1.0, 2e3, 1e-4, 0.0, 1e-2] + [0.0, 5.0, 1.0, 3.0, -1.0]
    scaler = Standardize().fit(X)
    assert scaler.dropped_.tolist() == [2, 3]
    kept = X[:, [0, 1, 4]]
    new = rng.standard_normal((3, 5))
    expected = (new[:, [0, 1, 4]] - kept.mean(axis=0)) / kept.std(axis=0)
    np.testing.assert_allclose(scaler.transform(new), expected, rtol=1e-10)
    assert list(scaler.get_feature_names_out()) == ["x0", "x1", "x4"]
    assert list(scaler.get_feature_names_out(list("abcde"))) == ["a", "b", "e"]
    assert Standardize(min_scale=0.0).fit(X).dropped_.tolist() == [3]
    assert Standardize(min_scale=0.1).fit(X).dropped_.tolist() == [2, 3, 4]
    np.testing.assert_allclose(Standardize(clip=1.5).fit(X).transform(new), np.clip(expected, -1.5, 1.5), rtol=1e-10)


def test_constants_are_constants_at_every_size():
    X = np.array([[0.1, 0.1 * 3, 1e6], [0.1, 0.3, 1e6 + 1e-9], [0.1, 0.3, 1e6]])  # 0.1 * 3 is not 0.3
    X = np.column_stack([X, [1.0, 2.0, 4.0]])
    assert Standardize(min_scale=0.0).fit(X).kept_.tolist() == [3]
    with pytest.raises(ValueError, match="no feature varies over the objects given to fit"):
        Standardize().fit(X[:, :3])


def test_moments_of_pieces_are_those_of_the_whole():
    X = 1e3 + np.random.default_rng(0).standard_normal((30, 4))
    whole, pieces = learn_scale([X], 1e-3, ""), learn_scale(np.split(X, [1, 4, 20]), 1e-3, "")
    np.testing.assert_allclose(pieces.mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(pieces.spread, X.std(axis=0), rtol=1e-10)
    np.testing.assert_allclose(whole.spread, X.std(axis=0), rtol=1e-12)


def test_log_odds_are_standardised_in_the_same_way():
    rng = np.random.default_rng(2)
    X, y = ["".join(rng.choice(list("ab"), 12, p=[p, 1 - p])) for p in [0.3] * 10 + [0.7] * 10], [0] * 10 + [1] * 10
    top = TopScore(MarkovChainEstimator(1), standardize=True).fit(X, y)
    steps = make_pipeline(TopScore(MarkovChainEstimator(1)), Standardize()).fit(X, y)
    np.testing.assert_allclose(top.transform(X), steps.transform(X), rtol=1e-9, atol=1e-9)
    assert list(top.get_feature_names_out()) == list(steps.get_feature_names_out())
    assert not set(top.dropped_) & set(top.get_feature_names_out())
    assert len(top.dropped_) == len(steps[-1].dropped_)


@pytest.mark.parametrize(("options", "error"), [({"min_scale": 1.0}, "below 1"), ({"clip": 0.0}, "'clip' parameter")])
def test_wrong_scales_are_refused(options, error):
    with pytest.raises(ValueError, match=error):
        Standardize(**options).fit([[0.0], [1.0]])

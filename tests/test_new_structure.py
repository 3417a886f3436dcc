"""How a structure is added: a model of sequences that change once, and everything that works with it unasked.

The model is all that is written here; nothing in the package knows it. It gives what ``Model`` asks of every model,
says what is hidden in it, and has one rule for kernels. Oracles enumerate all sequences and all places of the change.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Self

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

from genkern import (
    HMM,
    Categorical,
    ClassMixture,
    FisherScore,
    Gram,
    LatentMeanMap,
    Marginalized,
    PlugInClassifier,
    Power,
    ProbabilityProduct,
    StateSpace,
    TopScore,
    affinity,
    check_score,
    explain,
)
from genkern.core.arrays.rows import expected_rows
from genkern.data.objects import pack_symbols
from genkern.models import simplex
from genkern.models.base import Model, Statistics
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.streams import uniforms
from genkern.validation import check_probabilities

# --- the structure


class ChangePoint(Model):
    """Sequences of symbols of one law up to a hidden change, which comes after any symbol with the same probability.

    ``change`` batch + (2,) are the probabilities to stay and to change; ``laws`` a ``Categorical`` of batch + (2,).
    """

    _fields = ("change", "laws")
    change: Any
    laws: Any

    def __init__(self, change: Any, laws: Categorical):
        self._freeze(change=check_probabilities(change, "change", "ChangePoint"), laws=laws)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.change.shape[:-1]

    def pack(self, X: Any) -> Any:
        return self.laws.pack_sequences(X)

    # what it makes of objects

    def _shares(self, packed: Any) -> tuple[Any, list[Any]]:
        """Return log-likelihoods and, for each object, the posterior (T,) of the number of symbols before a change."""
        logs, totals, shares = self.laws.log_density(packed.values), [], []
        for a, b in (part.T for part in np.split(logs, packed.offsets[1:-1])):
            stays = np.arange(len(a))
            joint = np.cumsum(a) + b.sum() - np.cumsum(b) + stays * np.log(self.change[0])
            joint[:-1] += np.log(self.change[1])
            totals.append(np.logaddexp.reduce(joint))
            shares.append(np.exp(joint - totals[-1]))
        return np.array(totals), shares

    def log_prob(self, X: Any) -> Any:
        return self._shares(self.pack(X))[0]

    def posterior(self, X: Any) -> list[Any]:
        _, shares = self._shares(self.pack(X))
        before = [1.0 - np.cumsum(share) + share for share in shares]
        return [np.column_stack([each, 1.0 - each]) for each in before]

    def statistics(self, X: Any) -> Statistics:
        packed = self.pack(X)
        log_prob, shares = self._shares(packed)
        stays = np.array([share @ np.arange(len(share)) for share in shares])
        changes = np.array([share[:-1].sum() for share in shares])
        blocks = {"change": np.column_stack([stays, changes]) / self.change}
        for name, block in self.laws.weigh(packed, self.state_posteriors(packed), totals=False).items():
            blocks[f"laws.{name}"] = block
        return Statistics(self, log_prob, packed.lengths, blocks)

    def gradient(self, statistics: Statistics, coordinates: str = "softmax") -> Any:
        laws = {name[5:]: block for name, block in statistics.blocks.items() if name.startswith("laws.")}
        change = simplex.gradient(statistics["change"], self.change, coordinates)
        return np.concatenate([change, self.laws.member_gradient(laws, coordinates)], axis=1)

    def information(self, lengths: Any, coordinates: str = "softmax") -> Any:
        sizes, stay = np.asarray(lengths), self.change[0]
        before = ((1 - stay**sizes) / (1 - stay)).mean()
        draws = ((1 - stay ** (sizes - 1)) / (1 - stay)).mean()
        visits = np.array([before, sizes.mean() - before])
        blocks = [simplex.row_information(self.change, draws, coordinates)]
        blocks += self.laws.member_information(visits, coordinates)
        ends = np.cumsum([len(block) for block in blocks])
        return [(np.arange(end - len(block), end), block) for end, block in zip(ends, blocks)]

    def sample(self, n: int, *, length: Any = None, rng: Any = None) -> list[Any]:
        return self.to_hmm().sample(n, length=length, rng=rng)

    # its parameters

    def parameters(self, coordinates: str = "softmax") -> Any:
        return np.concatenate([simplex.coordinates_of(self.change, coordinates), self.laws.parameters(coordinates)])

    def with_parameters(self, vector: Any, coordinates: str = "softmax") -> Self:
        change, laws = np.split(np.asarray(vector, np.float64), [2])
        changed = simplex.from_coordinates(change, coordinates)
        return self._restore(changed, self.laws.with_parameters(laws, coordinates))

    @property
    def parameter_names(self) -> list[str]:
        return ["change[stay]", "change[change]", *(f"laws.{name}" for name in self.laws.parameter_names)]

    # what is hidden in it

    @property
    def hidden_states(self) -> list[str]:
        return ["before", "after"]

    def visits(self, statistics: Statistics) -> Any:
        return (self.laws.probs * statistics["laws.probs"]).sum(axis=-1)

    @property
    def state_sizes(self) -> tuple[int, ...]:
        return (2,)

    @property
    def state_emissions(self) -> Any:
        return self.laws

    def to_hmm(self) -> HMM:
        """Return the same law, or stack of laws, as a hidden Markov model of two states."""
        start = np.broadcast_to([1.0, 0.0], self.change.shape)
        after = np.broadcast_to([0.0, 1.0], self.change.shape)
        return HMM(start, np.stack([self.change, after], axis=-2), self.laws)


# --- how it is fitted: its start and its M-step; the E-step is that of the model


class ChangePointEstimator(EMEstimator):
    kind = ChangePoint
    batched = False  # statistics are those of one model

    def __init__(self, *, pseudocount=0.1, init=None, n_init=1, max_iter=200, tol=1e-8, fixed=(), random_state=None):
        self.pseudocount, self.init, self.n_init, self.max_iter, self.tol = pseudocount, init, n_init, max_iter, tol
        self.fixed, self.random_state = fixed, random_state

    def pack(self, X: Any) -> Any:
        return pack_symbols(X, "ab", "ChangePointEstimator")

    def _start(self, packed: Any, keys: Any, own: bool) -> ChangePoint:
        if self._given is not None:
            return self._given_to(packed, own)
        first = 0.2 + 0.6 * uniforms(keys[:, None], np.arange(2))[0]
        return ChangePoint([0.5, 0.5], Categorical(np.column_stack([first, 1.0 - first]), "ab"))

    def maximize(self, statistics: Statistics) -> ChangePoint:
        model, total = statistics.model, statistics.total()
        added = np.full(2, self.pseudocount)
        change = expected_rows(model.change, total["change"], added)
        return ChangePoint(change, Categorical(expected_rows(model.laws.probs, total["laws.probs"], added), "ab"))

    def _log_prior(self, model: ChangePoint) -> Any:
        return self.pseudocount * (np.log(model.change).sum() + np.log(model.laws.probs).sum())


# --- its rule for kernels: a formula in terms of a structure that is there


@affinity.register(ChangePoint, ChangePoint, Power, length="given", reference="tests", parts=("laws",))
def change_point_product(P: ChangePoint, Q: ChangePoint, how: Power, length: int) -> Any:
    """Return the log product of models of sequences that change, G + (a, b); there is no other G here than ()."""
    return affinity(P.to_hmm(), Q.to_hmm(), how, length)


# --- oracles


def joint(model: ChangePoint, x: str) -> Any:
    """Return p(x, c) for every number c of symbols before the change, by the definition."""
    stay, change = model.change
    codes = ["ab".index(symbol) for symbol in x]
    values = []
    for c in range(1, len(x) + 1):
        law = stay ** (c - 1) * (change if c < len(x) else 1.0)
        for t, code in enumerate(codes):
            law *= model.laws.probs[0 if t < c else 1, code]
        values.append(law)
    return np.array(values)


def make(seed: int) -> ChangePoint:
    rng = np.random.default_rng(seed)
    return ChangePoint(rng.dirichlet([2.0, 2.0]), Categorical(rng.dirichlet([1.0, 1.0], 2), "ab"))


MODEL, OTHER = make(0), make(1)
WORDS = ["".join(word) for n in (1, 2, 3, 4) for word in product("ab", repeat=n)]
X = ["abbab", "aab", "b", "babbaab", "aaaabbb", "bba"]


# --- what works with it


def test_the_model_is_what_it_says():
    np.testing.assert_allclose(MODEL.log_prob(WORDS), [np.log(joint(MODEL, word).sum()) for word in WORDS], rtol=1e-12)
    np.testing.assert_allclose(np.exp(MODEL.log_prob(WORDS[-16:])).sum(), 1.0, rtol=1e-12)
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        check_score(MODEL, X, coordinates)


def test_a_part_of_the_contract_that_is_missing_is_named():
    with pytest.raises(TypeError, match="log_prob"):
        type("Half", (ChangePoint,), {"log_prob": Model.log_prob})(MODEL.change, MODEL.laws)


def test_fisher_scores_have_the_information_of_all_sequences():
    longest = WORDS[-16:]
    for information in ("complete", "exact", "empirical", "diagonal"):
        assert np.isfinite(FisherScore(MODEL, information).fit_transform(longest)).all()
    shares = np.exp(MODEL.log_prob(longest))
    scores = MODEL.log_prob_grad(longest)
    exact = FisherScore(MODEL, "exact").fit_transform(longest)
    kernel = scores @ np.linalg.pinv((scores * shares[:, None]).T @ scores, rcond=1e-10) @ scores.T
    np.testing.assert_allclose(exact @ exact.T, kernel, rtol=0, atol=1e-8)


def test_blocks_and_occupancy_of_scores():
    fisher = FisherScore(MODEL, "identity", blocks=["change", "occupancy"]).fit(X)
    assert list(fisher.get_feature_names_out()[-2:]) == ["occupancy[before]", "occupancy[after]"]
    features = fisher.transform(X)
    for row, x in zip(features, X):
        share = joint(MODEL, x) / joint(MODEL, x).sum()
        before = share @ np.arange(1, len(x) + 1)
        np.testing.assert_allclose(row[-2:], [before, len(x) - before], rtol=1e-12)


def test_state_features_are_sums_of_posteriors():
    gamma = []
    for x in X:
        share = joint(MODEL, x) / joint(MODEL, x).sum()
        before = np.array([share[t:].sum() for t in range(len(x))])
        gamma.append(np.column_stack([before, 1.0 - before]))
    np.testing.assert_allclose(StateSpace(MODEL).fit_transform(X), [g.sum(axis=0) for g in gamma], rtol=1e-12)
    counts = [[g[np.array(list(x)) == a].sum(axis=0) for a in "ab"] for g, x in zip(gamma, X)]
    found = Marginalized(MODEL, normalize=False).fit_transform(X)
    np.testing.assert_allclose(found, np.swapaxes(counts, 1, 2).reshape(len(X), -1), rtol=1e-12, atol=1e-15)
    assert LatentMeanMap(MODEL).fit_transform(X).shape == (len(X), 4)
    with pytest.raises(TypeError, match="need a hidden Markov model"):
        StateSpace(MODEL, transitions=True).fit(X)


@pytest.mark.parametrize(
    "embedding",
    [
        FisherScore(MODEL),
        FisherScore(MODEL, "diagonal", blocks=["change", "occupancy"]),
        StateSpace(MODEL),
        Marginalized(MODEL),
        TopScore({0: MODEL, 1: OTHER}),
        FisherScore(ClassMixture({0: MODEL, 1: OTHER})),
    ],
    ids=["fisher", "diagonal", "states", "marginalized", "top", "classes"],
)
def test_explanations_split_decisions_by_position(embedding):
    y = [0, 0, 1, 1, 0, 1]
    pipeline = make_pipeline(embedding, RidgeClassifier()).fit(X, y)
    explanation = explain(pipeline, X[0], label=1)
    assert len(explanation.positions) == len(X[0])
    total = explanation.positions.sum() + explanation.rest + explanation.intercept
    np.testing.assert_allclose(total, pipeline.decision_function(X[:1])[0], rtol=1e-9)


def test_scores_of_positions_are_what_each_symbol_adds():
    x = X[0]
    parts = list(MODEL.position_statistics(MODEL.pack([x])))
    found = np.concatenate([MODEL.gradient(part) for part in parts])
    begun = MODEL.log_prob_grad([x[: t + 1] for t in range(len(x))])
    np.testing.assert_allclose(found, np.diff(begun, axis=0, prepend=0.0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("rho", [0.5, 1.0])
def test_the_product_kernel_sums_over_all_sequences_and_changes(rho):
    models, length = [MODEL, OTHER, make(2)], 4
    words = WORDS[-16:]
    tables = [np.array([joint(model, word) for word in words]) for model in models]
    expected = [[((a[:, :, None] * b[:, None, :]) ** rho).sum() for b in tables] for a in tables]
    np.testing.assert_allclose(ProbabilityProduct(rho, length)(models), expected, rtol=1e-12)
    assert Gram(ProbabilityProduct(rho, length).normalized()).fit_transform(models).diagonal() == pytest.approx(1.0)


def test_learners_take_it():
    classifier = PlugInClassifier({0: MODEL, 1: OTHER}, priors="uniform").fit(X, [0, 0, 1, 1, 0, 1])
    expected = (OTHER.log_prob(X) > MODEL.log_prob(X)).astype(int)
    np.testing.assert_array_equal(classifier.predict(X), expected)


def objective(model: ChangePoint, words: list[str], weights: Any) -> float:
    """Return log-likelihood plus log prior by enumeration of the changes."""
    logs = [np.log(joint(model, word).sum()) for word in words]
    return float(np.dot(weights, logs) + 0.1 * (np.log(model.change).sum() + np.log(model.laws.probs).sum()))


def test_em_climbs_to_where_no_step_is_better():
    fitted = ChangePointEstimator(n_init=3, max_iter=5000, tol=1e-14).fit(X)
    history = np.array(fitted.history_)
    assert fitted.converged_
    assert (np.diff(history) > -1e-10).all()
    top = objective(fitted.model_, X, np.ones(len(X)))
    np.testing.assert_allclose(history[-1], top, rtol=1e-12)
    for nudge in 1e-2 * np.random.default_rng(0).normal(size=(30, 6)):
        near = fitted.model_.with_parameters(fitted.model_.parameters() + nudge)
        assert objective(near, X, np.ones(len(X))) < top


def test_weights_fixed_parameters_and_starts_follow():
    weights = [2.0, 1.0, 0.0, 3.0, 1.0, 1.0]
    repeated = [word for word, w in zip(X, weights) for _ in range(int(w))]
    found = ChangePointEstimator(init=MODEL, max_iter=5, tol=0).fit(X, sample_weight=weights)
    expected = ChangePointEstimator(init=MODEL, max_iter=5, tol=0).fit(repeated)
    np.testing.assert_allclose(found.model_.parameters(), expected.model_.parameters(), rtol=1e-10)
    np.testing.assert_allclose(found.history_[-1], objective(found.model_, X, weights), rtol=1e-12)
    kept = ChangePointEstimator(init=MODEL, fixed=("change",)).fit(X)
    np.testing.assert_array_equal(kept.model_.change, MODEL.change)
    each = ChangePointEstimator(init=[MODEL, OTHER]).fit_each(X[:2])
    for model, start, word in zip(each, [MODEL, OTHER], X):
        alone = ChangePointEstimator(init=start).fit([word]).model_
        np.testing.assert_array_equal(model.parameters(), alone.parameters())


def test_samples_follow_the_law():
    draws = MODEL.sample(4000, length=3, rng=0)
    words = WORDS[-24:-16]
    shares = np.array([draws.count(word) for word in words]) / len(draws)
    np.testing.assert_allclose(shares, np.exp(MODEL.log_prob(words)), atol=4 * 0.5 / np.sqrt(len(draws)))

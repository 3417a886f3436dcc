import itertools
import pickle

import numpy as np
import pytest
from scipy import stats

from genkern import HMM, Categorical, Gaussian, check_score
from tests.cases import path_weights, random_hmm, random_sequence

FAMILIES = ("categorical", "isotropic", "diagonal", "full")
ENDINGS = (None, "end", "stop")


@pytest.fixture(params=list(itertools.product(FAMILIES, ENDINGS)), ids=lambda pair: f"{pair[0]}-{pair[1]}")
def case(request):
    family, ending = request.param
    rng = np.random.default_rng(0)
    model = random_hmm(rng, family, 2, ending)
    X = [random_sequence(rng, family, length, missing=0.2) for length in (1, 4, 2)]
    return model, X


def test_log_prob_sums_over_all_paths(case):
    model, X = case
    expected = [np.log(path_weights(model, x)[1].sum()) for x in X]
    np.testing.assert_allclose(model.log_prob(X), expected, rtol=1e-12)


def test_posterior_is_the_share_of_paths(case):
    model, X = case
    for x, (gamma, xi) in zip(X, model.posterior(X, pairs=True)):
        paths, weights = path_weights(model, x)
        weights = weights / weights.sum()
        expected = np.zeros((len(x), 2))
        pairs = np.zeros((len(x) - 1, 2, 2))
        for path, weight in zip(paths, weights):
            expected[np.arange(len(x)), path] += weight
            for t in range(len(x) - 1):
                pairs[t, path[t], path[t + 1]] += weight
        np.testing.assert_allclose(gamma, expected, atol=1e-12)
        np.testing.assert_allclose(xi, pairs, atol=1e-12)


def test_viterbi_is_the_best_path(case):
    model, X = case
    for x, path in zip(X, model.viterbi(X)):
        paths, weights = path_weights(model, x)
        assert tuple(path) == paths[np.argmax(weights)]


def test_derivatives_match_differences(case):
    assert max(check_score(*case).values()) < 1e-7


def test_statistics_are_expected_counts(case):
    model, X = case
    statistics = model.statistics(X)
    for i, x in enumerate(X):
        paths, weights = path_weights(model, x)
        weights = weights / weights.sum()
        first = np.zeros(2)
        steps = np.zeros((2, 2))
        for path, weight in zip(paths, weights):
            first[path[0]] += weight
            for a, b in itertools.pairwise(path):
                steps[a, b] += weight
        np.testing.assert_allclose(model.start * statistics["start"][i], first, atol=1e-12)
        np.testing.assert_allclose(model.transitions * statistics["transitions"][i], steps, atol=1e-12)
    summed = model.statistics(X, totals=True)
    for name, block in statistics.total().blocks.items():
        np.testing.assert_allclose(summed[name], block, rtol=1e-12, atol=1e-13)


def test_information_is_the_mean_outer_product_of_complete_data_scores():
    # Complete data are paths with their symbols: enumerate all of them.
    rng = np.random.default_rng(1)
    model = random_hmm(rng, n=2, size=2)
    length = 3
    p = len(model.parameter_names)
    total = np.zeros((p, p))
    for path in itertools.product(range(2), repeat=length):
        for x in itertools.product(range(2), repeat=length):
            weight = model.start[path[0]] * model.emissions.probs[path[0], x[0]]
            score = np.zeros(p)
            score[:2] -= model.start
            score[path[0]] += 1
            for t in range(length):
                row = 6 + 2 * path[t]
                score[row : row + 2] -= model.emissions.probs[path[t]]
                score[row + x[t]] += 1
                if t:
                    weight *= model.transitions[path[t - 1], path[t]] * model.emissions.probs[path[t], x[t]]
                    row = 2 + 2 * path[t - 1]
                    score[row : row + 2] -= model.transitions[path[t - 1]]
                    score[row + path[t] - 0] += 1
            total += weight * np.outer(score, score)
    dense = np.zeros((p, p))
    for index, block in model.information([length]):
        dense[np.ix_(index, index)] = block
    np.testing.assert_allclose(dense, total, atol=1e-12)


@pytest.mark.parametrize("family", ["isotropic", "diagonal", "full"])
@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt"])
def test_gaussian_information_is_the_covariance_of_scores(family, coordinates):
    rng = np.random.default_rng(2)
    model = random_hmm(rng, family, n=1, size=2)
    X = model.sample(40000, length=1, rng=3)
    scores = model.log_prob_grad(X, coordinates=coordinates)
    dense = np.zeros((scores.shape[1],) * 2)
    for index, block in model.information([1], coordinates):
        dense[np.ix_(index, index)] = block
    np.testing.assert_allclose(scores.T @ scores / len(scores), dense, atol=0.05 * np.abs(dense).max())


def test_information_index_covers_the_parameters_once():
    for ending in ENDINGS:
        model = random_hmm(np.random.default_rng(4), n=3, ending=ending)
        places = np.concatenate([index for index, _ in model.information([5, 6])])
        assert sorted(places) == list(range(len(model.parameter_names)))


def test_stop_model_is_a_distribution_over_all_lengths():
    model = random_hmm(np.random.default_rng(5), n=2, ending="stop", size=2)
    total = 0.0
    for length in range(1, 13):
        X = list(itertools.product(range(2), repeat=length))
        total += np.exp(model.log_prob([np.array(x) for x in X])).sum()
    left = 1.0 - total
    assert 0.0 < left < 0.05


def test_zero_probabilities_are_legal_and_scores_finite():
    model = HMM([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]], Categorical([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]))
    X = [[0, 0, 1, 2], [0]]
    for coordinates in ("softmax", "ratio", "sqrt", "raw"):
        assert np.isfinite(model.log_prob_grad(X, coordinates=coordinates)).all()
    assert model.log_prob([[1]])[0] == -np.inf
    with pytest.raises(ValueError, match=r"object 1 .* at position 2 \(symbol 0\).*pseudocount"):
        model.log_prob_grad([[0, 1], [0, 1, 0]])
    with pytest.raises(ValueError, match="object 0 has probability zero"):
        model.posterior([[1]])


def test_raw_derivative_is_finite_at_zero_parameters():
    # d log P / d a_12 at a_12 = 0, by differences of the unnormalised polynomial.
    model = HMM([0.5, 0.5], [[1.0, 0.0], [0.4, 0.6]], Categorical([[0.3, 0.7], [0.6, 0.4]]))
    x = [[0, 1, 1, 0]]
    theta = model.parameters("raw")
    step = 1e-6
    theta[3] += step
    moved = model.with_parameters(theta, "raw").log_prob(x)
    expected = (moved - model.log_prob(x)) / step
    np.testing.assert_allclose(model.log_prob_grad(x, coordinates="raw")[:, 3], expected, rtol=1e-4)


def test_missing_everything_has_probability_one():
    dna = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], Categorical(np.full((2, 4), 0.25), "dna"))
    np.testing.assert_allclose(dna.log_prob(["NNNN", "-?"]), 0.0, atol=1e-12)
    np.testing.assert_allclose(dna.log_prob_grad(["NNNN"]), 0.0, atol=1e-12)
    series = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], Gaussian([[0.0], [1.0]], 1.0))
    np.testing.assert_allclose(series.log_prob([np.full((5, 1), np.nan)]), 0.0, atol=1e-12)


def test_ambiguous_symbol_is_the_sum_over_its_completions():
    rng = np.random.default_rng(6)
    emissions = Categorical(rng.dirichlet(np.ones(4), 2), "dna")
    model = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], emissions)
    completions = ["A" + c + d for c in "AG" for d in "ACGT"]
    total = np.log(np.exp(model.log_prob(completions)).sum())
    np.testing.assert_allclose(model.log_prob(["ARN"]), total, rtol=1e-12)
    assert max(check_score(model, ["ARN", "YK-A"]).values()) < 1e-7


def test_long_sequences_do_not_underflow():
    rng = np.random.default_rng(7)
    model = random_hmm(rng, n=3)
    x = rng.integers(3, size=100_000)
    value = model.log_prob([x])[0]
    # Chained conditionals: log P(x) from halves agrees through the forward vector of the first half.
    alpha = model.start * model.emissions.probs[:, x[0]]
    total = 0.0
    for symbol in x[1:]:
        total += np.log(alpha.sum())
        alpha = (alpha / alpha.sum()) @ model.transitions * model.emissions.probs[:, symbol]
    np.testing.assert_allclose(value, total + np.log(alpha.sum()), rtol=1e-10)


@pytest.mark.parametrize("ending", ENDINGS)
def test_sample_follows_log_prob(ending):
    model = random_hmm(np.random.default_rng(8), n=2, ending=ending, size=2)
    draws = model.sample(6000, length=3, rng=9)
    words = list(itertools.product(range(2), repeat=3))
    law = np.exp(model.log_prob([np.array(word) for word in words]))
    counts = np.array([sum(tuple(draw) == word for draw in draws) for word in words])
    assert stats.chisquare(counts, 6000 * law / law.sum()).pvalue > 1e-3


def test_free_sample_lengths_follow_the_stop_probabilities():
    model = random_hmm(np.random.default_rng(10), n=2, ending="stop", size=2)
    lengths = np.array([len(x) for x in model.sample(4000, rng=11)])
    occupancy = model.start
    law = []
    for _ in range(4):
        law.append(occupancy @ model.stop)
        occupancy = occupancy @ model.transitions
    law.append(1.0 - sum(law))
    counts = np.append(np.bincount(np.minimum(lengths, 5), minlength=6)[1:5], (lengths >= 5).sum())
    assert stats.chisquare(counts, 4000 * np.array(law)).pvalue > 1e-3


def test_gaussian_sample_has_the_states_moments():
    model = HMM([1.0, 0.0], [[0.0, 1.0], [0.0, 1.0]], Gaussian([[0.0], [5.0]], [0.25, 1.0]))
    draws = np.array(model.sample(3000, length=2, rng=0))[..., 0]
    np.testing.assert_allclose(draws.mean(axis=0), [0.0, 5.0], atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), [0.5, 1.0], atol=0.1)


def test_value_semantics():
    model = random_hmm(np.random.default_rng(12), ending="stop")
    assert pickle.loads(pickle.dumps(model)) == model
    stack = HMM.stack([model, model])
    assert stack.shape == (2,)
    assert stack[1] == model
    assert "stop=(2,)" in model._in_a_line(0)
    np.testing.assert_allclose(stack.log_prob([[0, 1]]), np.tile(model.log_prob([[0, 1]]), (1, 2)), rtol=1e-14)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt", "raw"])
def test_parameters_round_trip_with_zeros(ending, coordinates):
    model = random_hmm(np.random.default_rng(13), n=3, ending=ending, zeros=0.3)
    back = model.with_parameters(model.parameters(coordinates), coordinates)
    np.testing.assert_allclose(back.transitions, model.transitions, atol=1e-14)
    np.testing.assert_allclose(back.chains().end, model.chains().end, atol=1e-14)
    assert len(model.parameter_names) == model.n_parameters == len(set(model.parameter_names))


LEAF = Categorical([[0.5, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: HMM([0.5, 0.5], [[1.0, 0.1], [0.0, 1.0]], LEAF), ValueError, "transitions.*sum to 1"),
        (lambda: HMM([0.5, 0.5], np.eye(3), LEAF), ValueError, r"shape \(2, 2\)"),
        (lambda: HMM([0.5, 0.5], np.eye(2), LEAF[0]), ValueError, "one distribution per state"),
        (lambda: HMM([0.5, 0.5], np.eye(2), [[0.5, 0.5]]), TypeError, "leaf family"),
        (lambda: HMM([0.5, 0.5], np.eye(2), LEAF, end=[0.5, 0.5], stop=[0, 0]), ValueError, "not both"),
        (lambda: HMM([0.5, 0.5], np.eye(2), LEAF, stop=[0.5, 0.5]), ValueError, "transitions | stop"),
        (lambda: HMM([0.5, 0.5], np.eye(2), LEAF).sample(3), ValueError, "give length="),
        (lambda: HMM([0.5, 0.5], np.eye(2), LEAF).log_prob_grad([[0]], "log"), ValueError, "must be one of"),
        (lambda: HMM([0.5, 0.5], np.eye(2), LEAF).log_prob([[0], [3]]), ValueError, "object 1"),
        (lambda: HMM.stack([HMM([0.5, 0.5], np.eye(2), LEAF)]).viterbi([[0]]), ValueError, "index it"),
        (lambda: HMM([0.5, 0.5], np.eye(2), LEAF).with_parameters(np.zeros(3)), ValueError, "shape"),
    ],
)
def test_errors_say_what_and_what_to_do(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_check_score_finds_a_wrong_derivative():
    class Wrong(HMM):
        def log_prob_grad(self, X, coordinates="softmax", n_jobs=None):
            gradient = super().log_prob_grad(X, coordinates, n_jobs)
            gradient[0, 1] += 1e-3
            return gradient

    model = Wrong([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], LEAF)
    with pytest.raises(ValueError, match=r"object 0, parameter start\[1\] in softmax"):
        check_score(model, [[0, 1]])


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("spread", [1.0, 1e-3])
def test_states_so_far_apart_that_one_density_vanishes_beside_the_other(spread, own):
    """A chain that cannot leave its state must take points that another state explains e**1000 times better."""
    n, steps = 3, np.array([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]])
    model = HMM([0.9, 0.1, 0.0], steps, Gaussian([[0.0], [60.0], [0.0]], spread))
    X = [np.array([0.0, 60.0, 61.0, 60.0, 0.5, 60.0, 0.0]), np.array([60.0, 0.0, 0.1, 60.0]), np.array([0.0])]
    with np.errstate(divide="ignore"):
        start, moves = np.log(model.start), np.log(model.transitions)
    for i, x in enumerate(X):
        logs = stats.norm(model.emissions.mean[:, 0], np.sqrt(spread)).logpdf(x[:, None])
        values = {}
        for path in itertools.product(range(n), repeat=len(x)):
            value = start[path[0]] + logs[np.arange(len(x)), list(path)].sum()
            values[path] = value + moves[list(path[:-1]), list(path[1:])].sum()
        expected = np.logaddexp.reduce(list(values.values()))
        assert expected < -1500 or i == 2
        np.testing.assert_allclose(model.log_prob([x]), expected, rtol=1e-13)
        best = max(values, key=values.get)
        np.testing.assert_array_equal(model.viterbi([x])[0], best)
        gamma = np.zeros((len(x), n))
        for path, value in values.items():
            gamma[np.arange(len(x)), list(path)] += np.exp(value - expected)
        np.testing.assert_allclose(model.posterior([x])[0], gamma, rtol=1e-9, atol=1e-12)
        stack = HMM.stack([model]) if own else model
        statistics = stack.statistics([x])
        np.testing.assert_allclose(statistics["emissions.weight"][0], gamma.sum(axis=0), rtol=1e-9, atol=1e-12)
        counts = statistics["transitions"][0] * model.transitions
        np.testing.assert_allclose(counts.sum(), len(x) - 1, rtol=1e-9)
    if spread == 1.0:  # below, a step of finite differences crosses from one best path to another
        check_score(model, X, coordinates="softmax")


def test_models_that_never_stop_are_not_drawn_from():
    leaf = Categorical([[1.0], [1.0]])
    trapped = HMM([0.5, 0.5], [[1.0, 0.0], [0.0, 0.5]], leaf, stop=[0.0, 0.5])
    with pytest.raises(ValueError, match=r"HMM.sample: state 0 can be reached, and from there no sequence ever stops"):
        trapped.sample(3, rng=0)
    with pytest.raises(ValueError, match=r"HMM.information: state 0 can be reached"):
        trapped.information(np.array([3]))
    slow = HMM([1.0], [[1.0 - 1e-12]], leaf[:1], stop=[1e-12])
    with pytest.raises(ValueError, match=r"2 sequences of 1e\+12 observations on average are too many"):
        slow.sample(2, rng=0)
    # What cannot be reached does not matter.
    free = HMM([0.0, 1.0], [[1.0, 0.0], [0.0, 0.5]], leaf, stop=[0.0, 0.5])
    assert np.mean([len(x) for x in free.sample(4000, rng=0)]) == pytest.approx(2.0, abs=0.1)

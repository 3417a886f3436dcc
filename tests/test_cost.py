"""What large alphabets, vocabularies, sparse tables and long objects may cost, and that values are as in small ones."""

import itertools
import tracemalloc
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

from genkern import (
    HMM,
    LDS,
    BlockNormalizer,
    Categorical,
    EmpiricalMean,
    EmpiricalMeanMap,
    FactorialHMM,
    FisherScore,
    FitEach,
    Gram,
    KernelLogisticRegression,
    KernelRidgeClassifierCV,
    KernelSVMClassifierCV,
    Marginalized,
    MarkovChain,
    MeanMap,
    MixtureEstimator,
    ModelLogOdds,
    Multinomial,
    MultinomialEstimator,
    PeriodicChain,
    Poisson,
    Power,
    ProbabilityProduct,
    SiteEstimator,
    Spectrum,
    UnitTrace,
    affinity,
    as_alphabet,
    explain,
)
from genkern.affinities import overlap as overlaps
from genkern.features.whitening import LowRank
from genkern.models import base
from genkern.models import estimator as estimators
from genkern.models.markov import positions as markov_positions


def peak_of(work):
    """Return what a function returns and the most bytes that were allocated meanwhile, all being compiled."""
    work()
    tracemalloc.start()
    try:
        result = work()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def rows(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1])


# --- the information of rows of probabilities


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt"])
def test_the_kernel_of_a_row_is_the_weighted_sum_of_pearson_residuals(coordinates):
    weights = [Fraction(k * k % 7, 1) for k in range(40)]  # with zeros
    theta = [weight / sum(weights) for weight in weights]
    rng = np.random.default_rng(0)
    possible = [k for k in range(40) if theta[k] > 0]
    X = [rng.choice(possible, size=int(size)) for size in (3, 7, 5)]
    typical = Fraction(15, 3)

    def value(x, y):
        gaps = [[Fraction(int(np.sum(z == k))) - len(z) * theta[k] for k in possible] for z in (x, y)]
        return float(sum(a * b / theta[k] for a, b, k in zip(*gaps, possible)) / typical)

    model = Categorical([float(p) for p in theta], alphabet=40)
    features = FisherScore(model, coordinates=coordinates).fit_transform(X)
    expected = [[value(x, y) for y in X] for x in X]
    np.testing.assert_allclose(features @ features.T, expected, rtol=1e-12, atol=1e-12)
    assert not features[:, [k for k in range(40) if theta[k] == 0]].any()


@pytest.mark.parametrize("coordinates", ["softmax", "ratio", "sqrt"])
@pytest.mark.parametrize("blocks", [["transitions"], ["stop"], ["stop", "transitions"], ["probs"]])
def test_parts_of_a_row_have_the_inverse_of_their_own_information(blocks, coordinates):
    rng = np.random.default_rng(3)
    joint = rows(rng, 3, 4)
    joint[0] = [0.2, 0.0, 0.3, 0.5]
    model = HMM(rows(rng, 3), joint[:, :3], Categorical(rows(rng, 3, 5), alphabet=5), stop=joint[:, 3])
    X = [rng.integers(0, 5, size) for size in (2, 5, 6, 9)]
    fisher = FisherScore(model, coordinates=coordinates, blocks=blocks).fit(X)
    kept = [model.parameter_names.index(name) for name in fisher.get_feature_names_out()]
    matrix = np.zeros((len(model.parameter_names),) * 2)
    for index, block in model.information([len(x) for x in X], coordinates):
        matrix[np.ix_(index, index)] = block
    matrix = matrix[np.ix_(kept, kept)]
    finite = np.isfinite(np.diag(matrix))
    scores = model.log_prob_grad(X, coordinates)[:, kept][:, finite]
    expected = scores @ np.linalg.pinv(matrix[np.ix_(finite, finite)], rcond=1e-10, hermitian=True) @ scores.T
    features = fisher.transform(X)
    np.testing.assert_allclose(features @ features.T, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("family", ["categorical", "poisson"])
def test_large_alphabets_need_no_matrix_of_their_size(family):
    m, rng = 3000, np.random.default_rng(0)
    model = Categorical(rows(rng, m), alphabet=m) if family == "categorical" else Poisson(rng.uniform(0.1, 2.0, m))
    X = list(rng.integers(0, m if family == "categorical" else 3, (5, 20) if family == "categorical" else (5, 1, m)))
    for information in ("complete", "diagonal"):
        _, peak = peak_of(lambda kind=information: FisherScore(model, kind).fit(X).transform(X))
        assert peak < 8 * m * m / 8


def test_few_objects_have_an_empirical_information_of_few_directions():
    m, rng = 1500, np.random.default_rng(1)
    model = Categorical(rows(rng, m), alphabet=m)
    X, new = ([rng.integers(0, m, 30) for _ in range(12)] for _ in range(2))
    fisher, peak = peak_of(lambda: FisherScore(model, "empirical").fit(X))
    assert peak < 8 * m * m / 8
    assert isinstance(fisher.whitener_.runs[0][1], LowRank)
    scores, others = model.log_prob_grad(X), model.log_prob_grad(new)
    moment = scores.T @ scores / len(X)
    moment += 1e-3 * np.trace(moment) / m * np.eye(m)
    expected = others @ np.linalg.solve(moment, others.T)
    np.testing.assert_allclose(gram(fisher.transform(new)), expected, rtol=1e-9, atol=1e-9)
    plain = FisherScore(model, "empirical", ridge=0.0).fit(X).transform(X)
    np.testing.assert_allclose(gram(plain), len(X) * np.eye(len(X)), rtol=1e-9, atol=1e-9)


def test_few_outcomes_have_an_exact_information_of_few_directions():
    rng = np.random.default_rng(2)
    model = HMM(rows(rng, 3), rows(rng, 3, 3), Categorical(rows(rng, 3, 2), alphabet=2))
    X = [np.array([0, 1]), np.array([1, 1])]
    fisher = FisherScore(model, "exact").fit(X)
    assert isinstance(fisher.whitener_.runs[0][1], LowRank)
    words = [np.array(word) for word in itertools.product(range(2), repeat=2)]
    slopes = model.log_prob_grad(words)
    matrix = slopes.T * np.exp(model.log_prob(words)) @ slopes
    expected = slopes @ np.linalg.pinv(matrix, rcond=1e-10, hermitian=True) @ slopes.T
    np.testing.assert_allclose(gram(fisher.transform(words)), expected, rtol=1e-9, atol=1e-9)


def gram(features):
    return features @ features.T


# --- alphabets with a missing symbol


def test_members_of_large_alphabets_are_sparse():
    m, rng = 6000, np.random.default_rng(0)
    alphabet = as_alphabet(m, missing=-1)
    X = [np.append(rng.integers(0, m, 20), -1) for _ in range(4)]
    model = HMM([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], Categorical(rows(rng, 2, m), alphabet=alphabet))
    works = {
        "spectrum": lambda: Spectrum(1, alphabet, sparse=False).fit_transform(X),
        "mean map": lambda: EmpiricalMeanMap(order=0, alphabet=alphabet, method="dense").fit_transform(X),
        "kernel": lambda: EmpiricalMean(order=0, alphabet=alphabet)(X),
        "marginalized": lambda: Marginalized(model, apply="time").fit_transform(X),
    }
    for name, work in works.items():
        _, peak = peak_of(work)
        assert peak < 8 * m * m / 8, name
    counts = works["spectrum"]()
    np.testing.assert_allclose(counts.sum(axis=1), 21.0, rtol=1e-12)
    np.testing.assert_allclose(counts.min(axis=1), 1 / m, rtol=1e-9)


def test_sparse_members_are_the_members():
    for alphabet in (as_alphabet("dna"), as_alphabet("abc", missing="?"), as_alphabet(4)):
        np.testing.assert_array_equal(alphabet.sparse_members.toarray(), alphabet.members)


def test_mixtures_of_windows_start_from_indicators():
    X = ["ACGN", "AANT", "TTTT", "TTNA"] * 4
    model = MixtureEstimator(2, SiteEstimator("dna"), random_state=0).fit(X).model_
    assert np.isfinite(model.log_prob(X)).all()


# --- documents


def documents(n, m, words, pseudocount, seed=0):
    rng = np.random.default_rng(seed)
    counts = np.zeros((n, m))
    for row in counts:
        np.add.at(row, rng.integers(0, m, words) ** 2 // m, 1.0)
    return (counts + pseudocount) / (counts + pseudocount).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("pseudocount", [0.0, 0.01])
@pytest.mark.parametrize("rho", [0.5, 1.0, 0.3])
def test_sparse_and_dense_rows_have_one_product(monkeypatch, rho, pseudocount):
    p, q = documents(9, 400, 12, pseudocount), documents(7, 400, 12, pseudocount, seed=1)
    p[0, :200], p[0, 200:] = 0.0, 1 / 200  # disjoint from q[0]
    q[0, :200], q[0, 200:] = 1 / 200, 0.0
    assert overlaps.thin_rows(p[1:], rho) is not None
    exact = np.array([[np.sum((a.astype(np.longdouble) * b) ** np.longdouble(rho)) for b in q] for a in p])
    with np.errstate(divide="ignore"):
        expected = np.log(exact.astype(np.float64))
    for some, others in ((slice(0, 9), slice(0, 7)), (slice(1, 9), slice(1, 7)), (slice(2, 3), slice(3, 7))):
        found = affinity(Categorical(p[some]), Categorical(q[others]), Power(rho))
        np.testing.assert_allclose(found, expected[some, others], rtol=1e-12, atol=1e-12)
    monkeypatch.setattr(overlaps, "TILE", 1000)  # blocks of two rows
    square = affinity(*[Categorical(p[1:])] * 2, Power(rho))
    np.testing.assert_array_equal(square, square.T)
    monkeypatch.setattr(overlaps, "FEW", 10**9)
    dense = affinity(*[Categorical(p[1:])] * 2, Power(rho))
    np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_allclose(square, dense, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(affinity.diag(Categorical(p[1:]), Power(rho)), np.diag(dense), rtol=1e-12, atol=1e-12)


def test_underflow_and_disjoint_supports_of_sparse_rows():
    p = np.zeros((3, 500))
    p[0, :2], p[1, 1:3], p[2, 3] = [1.0 - 1e-200, 1e-200], [1e-200, 1.0 - 1e-200], 1.0
    logs = affinity(*[Categorical(p)] * 2, Power(1.0))
    np.testing.assert_allclose(logs[0, 1], -400 * np.log(10), rtol=1e-12)
    assert (logs[2, :2] == -np.inf).all()
    values = MeanMap(2.0)(Categorical(p))
    np.testing.assert_allclose(values[2, :2], np.exp(-2.0), rtol=1e-12)


def test_gram_matrices_of_documents_copy_no_stack(monkeypatch):
    n, m = 120, 20000
    counts = sparse.random(n, m, density=0.004, random_state=0, format="csr")
    counts.data = np.ceil(3 * counts.data)
    counts = counts[np.asarray(counts.sum(axis=1)).ravel() > 0].tocsr()
    models_bytes = 8 * counts.shape[0] * m
    monkeypatch.setattr(estimators, "WIDE", 2 * m)
    embedding = FitEach(MultinomialEstimator(total=Poisson(20.0)))
    models, peak = peak_of(lambda: embedding.fit_transform(counts))
    assert peak < 1.5 * models_bytes
    with monkeypatch.context() as patch:
        patch.setattr(overlaps, "TILE", 10 * m)
        K, peak = peak_of(lambda: Gram(ProbabilityProduct(0.5).normalized()).fit_transform(models))
    assert peak < 0.5 * models_bytes
    roots = np.sqrt(np.stack([model.probs for model in models]))
    np.testing.assert_allclose(K, np.exp(20.0 * (gram(roots) - 1.0)), rtol=1e-11)
    monkeypatch.setattr(estimators, "WIDE", 1 << 60)
    for model, whole in zip(models, embedding.transform(counts), strict=True):
        assert model == whole
    with pytest.raises(ValueError, match="object 100"):
        embedding.transform([*([np.ones((1, m))] * 100), np.full((1, m), -1.0)])


def test_rows_of_counts_that_meet_themselves_are_mirrored():
    rng = np.random.default_rng(0)
    P = Multinomial(rows(rng, 5, 3), 4, ordered=False)
    logs = affinity(P, P, Power(1.0))
    np.testing.assert_array_equal(logs, logs.T)
    np.testing.assert_allclose(logs, affinity(P, Multinomial(P.probs.copy(), 4, ordered=False), Power(1.0)), rtol=1e-13)


# --- sparse tables


def wide_table(n=40, p=5_000_000, seed=0):
    rng = np.random.default_rng(seed)
    small = rng.poisson(0.3, (n, 60)).astype(np.float64)
    small[:, 0] += np.arange(n) % 2
    columns = np.sort(rng.choice(p, 60, replace=False))
    table = sparse.csr_matrix(small)
    wide = sparse.csr_matrix((table.data, columns[table.indices], table.indptr), shape=(n, p))
    return small, wide, columns, np.arange(n) % 2


@pytest.mark.parametrize("center", [True, False])
def test_unit_trace_looks_at_no_empty_column(center):
    small, wide, _, _ = wide_table()
    unit, peak = peak_of(lambda: UnitTrace(center).fit(wide))
    assert peak < 2_000_000
    gaps = small - small.mean(axis=0) * center
    np.testing.assert_allclose(unit.scale_**2, (gaps**2).sum() / len(small), rtol=1e-12)
    twice = sparse.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), (2, 3))
    np.testing.assert_allclose(UnitTrace(center).fit(twice).scale_, UnitTrace(center).fit(twice.toarray()).scale_)


@pytest.mark.parametrize("learner", [KernelRidgeClassifierCV, KernelSVMClassifierCV, KernelLogisticRegression])
def test_linear_learners_keep_coefficients_of_occupied_columns(learner):
    small, wide, columns, y = wide_table()
    few = wide_table(seed=1)[0][:7]
    new = sparse.csr_matrix((few.ravel(), np.tile(columns, 7), 60 * np.arange(8)), shape=(7, wide.shape[1]))
    fitted, peak = peak_of(lambda: learner(kernel="linear").fit(wide, y))
    values, later = peak_of(lambda: fitted.decision_function(new))
    assert max(peak, later) < 4_000_000
    reference = learner(kernel="precomputed").fit(small @ small.T, y)
    np.testing.assert_allclose(values, reference.decision_function(few @ small.T), rtol=1e-5, atol=1e-5)
    assert sparse.issparse(fitted.coef_)
    dense = fitted.coef_[:, columns].toarray()
    np.testing.assert_allclose(few @ dense[0] + fitted.intercept_[0], values, rtol=1e-9, atol=1e-9)


def test_block_normalizer_looks_at_no_empty_column():
    small, wide, columns, _ = wide_table()
    blocks = {"one": slice(0, 2_500_000), "two": slice(2_500_000, None)}
    normalizer = BlockNormalizer(None)
    normalizer.embedding_ = SimpleNamespace(blocks_=blocks)
    found, peak = peak_of(lambda: normalizer._normalised(wide))
    assert peak < 4_000_000
    parts = [small[:, columns < 2_500_000], small[:, columns >= 2_500_000]]
    roots = [np.sqrt(np.abs(part)) for part in parts]
    sizes = [np.sqrt((root**2).sum(axis=1, keepdims=True)) for root in roots]
    filled = sum((size > 0).astype(float) for size in sizes)
    unit = [root / np.where(size > 0, size, 1.0) / np.sqrt(np.maximum(filled, 1)) for root, size in zip(roots, sizes)]
    np.testing.assert_allclose(found[:, columns].toarray(), np.hstack(unit), rtol=1e-12)


# --- positions of long objects


def by_beginnings(model, x):
    """Return what each observation adds to the log-likelihood and its raw derivatives, from all beginnings."""
    found = [model.statistics([x[: t + 1]]) for t in range(len(x))]
    logs = np.array([part.log_prob[0] for part in found])
    slopes = np.concatenate([model.gradient(part, "raw") for part in found])
    return np.diff(logs, prepend=0.0), np.diff(slopes, axis=0, prepend=0.0)


def by_position(model, x):
    parts = list(model.position_statistics(model.pack([x])))
    return np.concatenate([p.log_prob for p in parts]), np.concatenate([model.gradient(p, "raw") for p in parts])


LETTERS = "NNACGTNNAGRTTACGNACCGTACGTTTNACG"


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_positions_of_chains_follow_the_beginnings_though_symbols_are_ambiguous(order):
    rng = np.random.default_rng(order)
    steps = rows(rng, *[4] * (order + 1))
    start = rows(rng, 4**order).reshape([4] * order) if order else None
    model = MarkovChain(start if order else 1, steps, "dna")
    for expected, found in zip(by_beginnings(model, LETTERS), by_position(model, LETTERS)):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_a_chain_may_start_where_it_never_goes_again():
    model = MarkovChain([1.0, 0.0], [[0.0, 1.0], [0.3, 0.7]], "ab")
    for expected, found in zip(by_beginnings(model, "abbabab"), by_position(model, "abbabab")):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_log_probabilities_of_a_periodic_chain_follow_the_beginnings(order):
    rng = np.random.default_rng(order)
    steps = rows(rng, 3, *[4] * (order + 1))
    steps[0, ..., 0] = 0.0  # a phase that becomes impossible
    steps /= steps.sum(axis=-1, keepdims=True)
    model = PeriodicChain(rows(rng, 3), rows(rng, 3, 4**order).reshape(3, *[4] * order), steps, alphabet="dna")
    x = "CGNTTCGACGTCCGTN"
    logs, _ = by_position(model, x)
    beginnings = model.log_prob([x[: t + 1] for t in range(len(x))])
    np.testing.assert_allclose(np.cumsum(logs), beginnings, rtol=1e-11)
    parts = model.position_statistics(model.pack([x]))
    slopes = sum(model.gradient(part, "softmax").sum(axis=0) for part in parts)
    np.testing.assert_allclose(slopes[3:], model.log_prob_grad([x])[0][3:], rtol=1e-9, atol=1e-9)


def test_positions_of_linear_systems_follow_the_beginnings():
    rng = np.random.default_rng(0)
    Q, x = np.array([[1.0, 0.2], [0.2, 0.5]]), rng.normal(size=(12, 3))
    x[3, 1], x[6] = np.nan, np.nan
    A, C = np.array([[0.9, 0.4], [-0.3, 0.8]]), rng.normal(size=(3, 2))
    for state_cov in (Q, np.zeros((2, 2)), 0.7):
        model = LDS(A, C, state_cov, np.array([0.5, 0.3, 1.0]), [0.3, -0.2], np.eye(2))
        for expected, found in zip(by_beginnings(model, x), by_position(model, x)):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


def test_positions_of_factorial_models_are_expectations_over_all_paths():
    rng = np.random.default_rng(0)
    starts, steps = [rows(rng, 2), rows(rng, 2)], [rows(rng, 2, 2), rows(rng, 2, 2)]
    means, noise, x = rng.normal(size=(2, 2, 2)), np.array([0.7, 1.3]), rng.normal(size=(4, 2))
    model = FactorialHMM(starts, steps, means, noise)
    expected = {"transitions": np.zeros((4, 2, 2, 2)), "means": np.zeros((4, 2, 2, 2))}
    joints, terms = [], []
    for path in itertools.product(itertools.product(range(2), repeat=2), repeat=4):
        joint, term = 1.0, {name: np.zeros((4, 2, 2, 2)) for name in expected}
        for t, states in enumerate(path):
            gap = x[t] - sum(means[c, s] for c, s in enumerate(states))
            joint *= np.prod(np.exp(-0.5 * gap**2 / noise) / np.sqrt(2 * np.pi * noise))
            for c, s in enumerate(states):
                joint *= starts[c][s] if t == 0 else steps[c][path[t - 1][c], s]
                term["means"][t, c, s] = gap / noise
                if t:
                    term["transitions"][t, c, path[t - 1][c], s] = 1 / steps[c][path[t - 1][c], s]
        joints.append(joint)
        terms.append(term)
    logs, slopes = by_position(model, x)
    np.testing.assert_allclose(logs.sum(), np.log(sum(joints)), rtol=1e-12)
    names = np.array([name.split("[")[0] for name in model.parameter_names])
    for name in expected:
        sums = sum(joint * term[name] for joint, term in zip(joints, terms)) / sum(joints)
        np.testing.assert_allclose(slopes[:, names == name], sums.reshape(4, -1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.cumsum(logs), model.log_prob([x[: t + 1] for t in range(4)]), rtol=1e-12)


def test_explanations_of_long_objects_read_them_a_few_times_only(monkeypatch):
    rng, length, read = np.random.default_rng(0), 400, []
    chains = {label: MarkovChain(rows(rng, 4), rows(rng, 4, 4), "dna") for label in "ab"}
    X, y = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(8)], list("ab" * 4)
    pipeline = make_pipeline(ModelLogOdds(chains), RidgeClassifier()).fit(X, y)
    plain = MarkovChain.statistics

    def counted(self, objects, totals=False):
        read.append(self.pack(objects).n_points)
        return plain(self, objects, totals)

    monkeypatch.setattr(MarkovChain, "statistics", counted)
    seen = explain(pipeline, "".join(rng.choice(list("ACGT"), length)))
    assert len(seen.positions) == length
    assert sum(read) < 2 * 4 * length
    for module in (base, markov_positions):
        monkeypatch.setattr(module, "changes", None)  # would follow every beginning
    systems = {label: LDS([[a]], [[1.0]], 1.0, 0.5, [0.0], 1.0) for label, a in zip("ab", (0.5, 0.9))}
    series = [rng.normal(size=(20, 1)) for _ in range(8)]
    pipeline = make_pipeline(ModelLogOdds(systems), RidgeClassifier()).fit(series, y)
    assert len(explain(pipeline, rng.normal(size=(length, 1))).positions) == length

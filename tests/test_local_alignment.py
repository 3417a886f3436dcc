"""The local alignment kernel: enumerated alignments, exact decimals, lanes beside plain loops, matrices of it."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from genkern import Gram, LocalAlignment
from genkern.core.alignment import lanes, logs, passes
from genkern.core.alignment.types import Costs, Sequences
from genkern.kernels import NotPositiveWarning
from genkern.models.profile.tables import BLOSUM62

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
SIGNS = [[2.0, -1.0, 0.5], [-1.0, 1.5, -0.5], [0.5, -0.5, 1.0]]


def gap(n: int, opened: float, extended: float) -> float:
    return 0.0 if n == 0 else opened + extended * (n - 1) if n > 1 else opened


def alignments(x: Any, y: Any, score: Any, opened: float, extended: float) -> list[float]:
    """Return the scores of all alignments: all sets of pairs that are in order in both sequences."""

    def onward(i: int, j: int) -> list[float]:
        """Return the scores of all that follows the pair (i, j)."""
        found = [0.0]
        for k in range(i + 1, len(x)):
            for m in range(j + 1, len(y)):
                step = score(x[k], y[m]) - gap(k - i - 1, opened, extended) - gap(m - j - 1, opened, extended)
                found += [step + rest for rest in onward(k, m)]
        return found

    firsts = [(i, j) for i in range(len(x)) for j in range(len(y))]
    return [0.0, *(score(x[i], y[j]) + rest for i, j in firsts for rest in onward(i, j))]


def enumerated(x: Any, y: Any, score: Any, beta: float, opened: float, extended: float) -> float:
    return math.log(math.fsum(math.exp(beta * s) for s in alignments(x, y, score, opened, extended)))


def decimal_log(x: str, y: str, beta: float, opened: float, extended: float) -> float:
    """Return the log sum by decimals of 50 digits and any size: sums over the last pair, gap by gap."""
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 50, 10**9, -(10**9)
        weight = {
            (a, b): (Decimal(beta) * int(BLOSUM62[AMINO_ACIDS.index(a), AMINO_ACIDS.index(b)])).exp()
            for a in AMINO_ACIDS
            for b in AMINO_ACIDS
        }
        o, e = (-Decimal(beta) * Decimal(opened)).exp(), (-Decimal(beta) * Decimal(extended)).exp()
        total = one = Decimal(1)
        zero = Decimal(0)
        # reached[j]: sum over alignments that end in a pair of an earlier row and of column j, with their gap in x.
        after, reached = [zero] * len(y), [zero] * len(y)
        for a in x:
            row, beside, closed = [], zero, zero  # sums over all columns before this one, with their gap in y, if any
            for j, b in enumerate(y):
                if j:
                    beside = o * closed + e * beside
                    closed = after[j - 1] + reached[j - 1]
                row.append(weight[a, b] * (one + closed + beside))
            reached = [o * m + e * r for m, r in zip(after, reached)]
            after = row
            total += sum(row)
        return float(total.ln())


def strings(seed: int, lengths: Any, letters: str = AMINO_ACIDS) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), int(length))) for length in lengths]


def signs(a: str, b: str) -> float:
    return SIGNS["abc".index(a)]["abc".index(b)]


def blosum(a: str, b: str) -> float:
    """Return the score of two letters, ambiguous ones with the mean of their members."""
    members = {"B": "DN", "Z": "EQ", "J": "IL", "X": AMINO_ACIDS}
    places = [[AMINO_ACIDS.index(letter) for letter in members.get(c, c)] for c in (a, b)]
    return float(BLOSUM62[np.ix_(*places)].mean())


def coded(X: list[Any]) -> Sequences:
    """Return lists of codes as the passes take them."""
    codes = [np.asarray(x, np.int64) for x in X]
    return Sequences(np.concatenate(codes), np.concatenate([[0], np.cumsum([len(x) for x in codes])]))


def plain(x: Sequences, y: Sequences, costs: Costs) -> Any:
    """Return log sums of all pairs by plain loops."""
    shape = len(x.offsets) - 1, len(y.offsets) - 1
    return logs.pair_logs(x, y, np.array(list(np.ndindex(shape))), costs).reshape(shape)


# --- values


SETTINGS = [(0.5, 11.0, 1.0), (1.0, 2.0, 0.5), (0.3, 0.0, 0.0), (2.0, 1.0, 3.0), (0.7, 0.4, math.inf), (20.0, 3.0, 1.0)]


@pytest.mark.parametrize(("beta", "opened", "extended"), SETTINGS)
def test_it_sums_over_all_alignments(beta: float, opened: float, extended: float) -> None:
    kernel = LocalAlignment(beta, SIGNS, opened, extended, "abc")
    X = ["a", "c", "ab", "cab", "bcbac", "aabcc", "cbacb"]
    expected = np.array([[enumerated(x, y, signs, beta, opened, extended) for y in X] for x in X])
    assert_allclose(kernel.log(X), expected, rtol=1e-13)
    assert_allclose(kernel.log(X[:3], X[2:]), expected[:3, 2:], rtol=1e-13)
    assert_allclose(kernel.log_diag(X), np.diagonal(expected), rtol=1e-13)
    assert_allclose(kernel(X), np.exp(expected), rtol=1e-11)
    logarithm = kernel.set_params(logarithm=True)
    with pytest.warns(NotPositiveWarning, match="logarithm=False is"):
        assert_allclose(logarithm(X), expected / beta, rtol=1e-13)
    assert_allclose(logarithm.diag(X), np.diagonal(expected) / beta, rtol=1e-13)
    with pytest.warns(NotPositiveWarning):
        assert_allclose(logarithm.log(X), np.log(expected / beta), rtol=1e-12, atol=1e-12)
    assert_allclose(logarithm.log_diag(X), np.log(np.diagonal(expected) / beta), rtol=1e-12, atol=1e-12)


def test_decimals_and_enumeration_agree() -> None:
    exact = enumerated("HEAGA", "PAHEA", blosum, 0.5, 2.0, 1.0)
    assert decimal_log("HEAGA", "PAHEA", 0.5, 2.0, 1.0) == pytest.approx(exact, rel=1e-14)


def test_long_sequences_agree_with_decimals() -> None:
    x, y, z = strings(0, (300, 170, 90))
    X = [x, y, z, x[:100] + z + x[100:], z + y]
    expected = [[decimal_log(a, b, 0.5, 11.0, 1.0) for b in X] for a in X]
    assert expected[0][0] > 709.0  # out of the range of doubles
    assert_allclose(LocalAlignment().log(X), expected, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    beta=st.sampled_from([0.1, 0.5, 1.0, 2.0, 5.0, 15.0]),
    opened=st.sampled_from([0.0, 0.5, 3.0, 11.0]),
    extended=st.sampled_from([0.0, 0.3, 1.0, 4.0]),
)
def test_lanes_agree_with_plain_loops(seed: int, beta: float, opened: float, extended: float) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 30))
    table = rng.normal(0.0, 2.0, (m, m))
    costs = Costs(beta * (table + table.T), beta * opened, beta * extended)
    x, y = (coded([rng.integers(m, size=n) for n in rng.integers(1, 70, count)]) for count in (11, 9))
    assert_allclose(passes.log_sums(x, y, costs), plain(x, y, costs), rtol=1e-11, atol=1e-11)
    own = passes.log_sums(x, None, costs)
    assert_allclose(own, plain(x, x, costs), rtol=1e-11, atol=1e-11)
    assert_array_equal(np.diagonal(own), passes.own_log_sums(x, costs))


def test_every_size_of_tiles_is_tried() -> None:
    sizes = [lanes.tile_size(Costs(np.full((1, 1), score), 5.0, 0.5)) for score in (*SCORES, 400.0)]
    assert sizes == [16, 8, 4, 2, 0]
    assert lanes.tile_size(Costs(np.zeros((1, 1)), math.inf, 0.5)) == 0


SCORES = (4.0, 30.0, 60.0, 120.0)


@pytest.mark.parametrize("score", SCORES)
def test_thousands_of_symbols_in_any_order(score: float) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(20, size=(2, 800))
    table = np.full((20, 20), -2.0)
    np.fill_diagonal(table, score)
    costs = Costs(table, 6.0, 0.3)
    # Beside the end of one alignment, the beginning of another counts for nothing; but that one may grow as much.
    X = coded([[*first, *second], [*second, *first], [*second, *first[:790]]])
    found = passes.log_sums(X, None, costs)
    assert found[0, 0] > 1599 * score
    expected = logs.pair_logs(X, X, np.array([[0, 0], [0, 1], [0, 2], [1, 2]]), costs)
    assert_allclose(found[[0, 0, 0, 1], [0, 1, 2, 2]], expected, rtol=1e-12)


def test_sequences_of_one_symbol() -> None:
    n, m, weight = 40, 3000, 1.5
    kernel = LocalAlignment(math.log(weight), [[1.0]], math.inf, 0.0, "a")
    # Alignments without gaps are pairs of stretches of one length.
    total = sum((n - k + 1) * (m - k + 1) * weight**k for k in range(1, n + 1)) + 1
    assert kernel(["a" * n], ["a" * m])[0, 0] == pytest.approx(total, rel=1e-11)
    kernel = LocalAlignment(math.log(weight), [[1.0]], 0.0, 0.0, "a")
    # If gaps are free: k symbols of each.
    every = sum(math.comb(n, k) * math.comb(m, k) * Fraction(weight) ** k for k in range(n + 1))
    assert kernel.log(["a" * n], ["a" * m])[0, 0] == pytest.approx(math.log(every), rel=1e-13)


def test_the_largest_steps_that_tiles_take() -> None:
    n = 1500
    assert lanes.tile_size(Costs(np.full((1, 1), 26 * math.log(2.0)), 0.0, 0.0)) == lanes.LARGEST_TILE
    every = sum(math.comb(n, k) ** 2 << 26 * k for k in range(n + 1))
    kernel = LocalAlignment(math.log(2.0), [[26.0]], 0.0, 0.0, "a")
    assert kernel.log(["a" * n])[0, 0] == pytest.approx(math.log(every), rel=1e-13)


# --- what values depend on


def test_values_depend_on_their_pair_only() -> None:
    X = [*strings(1, [*np.random.default_rng(1).integers(1, 90, 20), *[60] * 40]), "ACD", "ACD", "A"]
    kernel, order = LocalAlignment(), np.random.default_rng(2).permutation(63)
    K = kernel.log(X)
    assert_array_equal(K, K.T)
    assert_array_equal(kernel.log([X[i] for i in order]), K[np.ix_(order, order)])
    assert_array_equal(kernel.log(X[:5], X[3:]), K[:5, 3:])
    assert_array_equal(kernel.log(X[3:], X[:5]), K[3:, :5])
    assert_array_equal([[kernel.log([x], [y])[0, 0] for y in X[::7]] for x in X[::5]], K[::5, ::7])
    assert_array_equal(kernel.log_diag(X), np.diagonal(K))
    for gram in (Gram(kernel, block_size=7), Gram(kernel, n_jobs=2, block_size=10)):
        assert_array_equal(gram.fit_transform(X), np.exp(K - np.diagonal(K).max()))


def test_ambiguous_symbols_have_mean_scores() -> None:
    X = ["XBZJ", "XX", "DNXEQ", "ILBX", "W"]
    expected = [[enumerated(x, y, blosum, 0.5, 11.0, 1.0) for y in X] for x in X]
    assert_allclose(LocalAlignment().log(X), expected, rtol=1e-13)
    assert_array_equal(LocalAlignment().log(["xbzj", "U*", "DN-OQ"])[:2, :2], LocalAlignment().log(["XBZJ", "XX"]))
    assert np.isfinite(LocalAlignment().log([*AMINO_ACIDS, *"BZJX-?*.UO"])).all()
    runs = LocalAlignment().log(["X" * 200, "W" * 200])
    assert runs[0, 0] < 13.0  # no more than 200 x 200 pairs of symbols
    dna = LocalAlignment(1.0, 3.0 * np.eye(4) - 1.0, 2.0, alphabet="dna")
    assert_allclose(dna.log(["R"], ["A", "C", "N"]), np.log1p(np.exp([[0.5, -1.0, -0.25]])), rtol=1e-14)


def test_other_alphabets_and_forms() -> None:
    kernel = LocalAlignment(1.0, SIGNS, 2.0, 0.5, alphabet=3)
    letters = LocalAlignment(1.0, tuple(map(tuple, SIGNS)), 2.0, 0.5, alphabet="abc")
    arrays = LocalAlignment(1.0, np.array(SIGNS), 2.0, 0.5, "abc")
    assert_array_equal(kernel([[0, 1, 2], [2, 2]]), letters(["abc", "cc"]))
    assert_array_equal(kernel([np.array([0, 1, 2]), np.array([2, 2])]), letters([list("abc"), list("cc")]))
    assert letters == LocalAlignment(1.0, SIGNS, 2.0, 0.5, "abc") == arrays
    assert hash(letters) == hash(arrays)
    assert letters not in (kernel, LocalAlignment(1.0, np.eye(3), 2.0, 0.5, "abc"))
    assert_array_equal(LocalAlignment(table="BLOSUM62")(["AC"]), LocalAlignment()(["AC"]))


# --- matrices


def relatives(seed: int, n: int) -> list[str]:
    """Return strings of two families in turn: two parts of a family, both, or both in the other order, and changed."""
    rng = np.random.default_rng(seed)
    parts, found = strings(7, (30, 30, 30, 30)), []
    for i in range(n):
        first, second = parts[i % 2 :: 2]
        letters = np.array(list((first, second, first + second, second + first)[i // 2 % 4]))
        changed = rng.random(len(letters)) < 0.03
        letters[changed] = rng.choice(list(AMINO_ACIDS), int(changed.sum()))
        found.append("".join(letters))
    return found


def test_sums_are_positive_semidefinite() -> None:
    X = [*relatives(0, 20), *strings(3, (5, 2, 9, 4), AMINO_ACIDS + "XBZJ"), "XXX", "B", "D", "N"]
    for beta in (0.1, 0.5, 2.0):
        kernel = LocalAlignment(beta)
        assert kernel.table_is_positive(kernel.prepare([AMINO_ACIDS + "XBZJ"]))
        K = kernel.normalized()(X)
        assert np.linalg.eigvalsh(K)[0] > -1e-12
        assert K.max() == 1.0


def test_tables_that_are_not_positive_are_told() -> None:
    kernel = LocalAlignment(1.0, [[0.0, 1.0], [1.0, 0.0]], 2.0, alphabet="ab")
    with pytest.warns(NotPositiveWarning, match=r"A table for which exp\(beta \* table\) is positive semi-definite is"):
        K = kernel(["a", "b"])
    assert np.linalg.eigvalsh(K)[0] < 0.0
    with pytest.raises(ValueError, match=r"since exp\(beta \* table\) is not; change the table"):
        Gram(kernel, psd="raise").fit(["a", "b"])
    kernel(["a", "aa"])  # all is well between the symbols that occur


@pytest.mark.parametrize("psd", ["clip", "shift"])
def test_logarithms_are_mended_for_learners(psd: str) -> None:
    kernel = LocalAlignment(logarithm=True)
    X, new, y = relatives(1, 32), relatives(2, 16), [0, 1] * 16
    with pytest.warns(NotPositiveWarning):
        values, rows = kernel(X), kernel(new, X)
    assert np.linalg.eigvalsh(values)[0] < -1.0
    with pytest.raises(ValueError, match=r"LocalAlignment\(logarithm=True\) is not positive semi-definite in general"):
        Gram(kernel, psd="raise").fit(X)
    gram = Gram(kernel, psd=psd)
    K = gram.fit_transform(X)
    assert np.linalg.eigvalsh(K)[0] > -1e-9
    expected = rows
    if psd == "shift":
        assert_allclose(K, values + gram.shift_ * np.eye(32), rtol=1e-14)
    else:
        assert_allclose(gram.transform(X), K, rtol=1e-11)
        expected = rows - (rows @ gram.negative_) @ gram.negative_.T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_allclose(gram.transform(new), expected, rtol=1e-12)
        machine = make_pipeline(Gram(kernel, psd=psd), SVC(kernel="precomputed", C=0.1)).fit(X, y)
        assert machine.score(new, [0, 1] * 8) == 1.0


def test_values_out_of_range_ask_for_what_works() -> None:
    X = strings(0, (400, 390))
    with pytest.raises(ValueError, match=r"leave the range of floating point.*\.normalized\(\)"):
        LocalAlignment()(X)
    assert np.isfinite(Gram(LocalAlignment()).fit_transform(X)).all()
    assert_array_equal(np.diagonal(LocalAlignment().normalized()(X)), 1.0)


# --- descriptions and errors


def test_formulas() -> None:
    assert LocalAlignment().formula == r"\sum_{\pi \in \Pi(x, y)} e^{0.5\, s(\pi)}"
    assert LocalAlignment(logarithm=True).formula == r"2\, \log \sum_{\pi \in \Pi(x, y)} e^{0.5\, s(\pi)}"


@pytest.mark.parametrize(
    ("parameters", "X", "message"),
    [
        ({"beta": 0.0}, ["A"], "'beta' parameter of LocalAlignment must be a finite number > 0"),
        ({"gap_open": -1.0}, ["A"], "'gap_open' parameter of LocalAlignment"),
        ({"gap_extend": math.nan}, ["A"], "'gap_extend' parameter of LocalAlignment"),
        ({"table": "pam250"}, ["A"], r"must be 'blosum62' or an array \(m, m\). Got 'pam250'"),
        ({"alphabet": "dna"}, ["A"], "table='blosum62' is for alphabet='protein'"),
        ({"alphabet": None}, ["A"], "'alphabet' must be given"),
        ({"table": np.eye(3), "alphabet": "ab"}, ["a"], r"each of the 2 symbols.*Got shape \(3, 3\)"),
        ({"table": [[0, 1], [2, 0]], "alphabet": "ab"}, ["a"], r"Got 1 at \(0, 1\) and 2 at \(1, 0\)"),
        ({"table": [[0, math.nan], [2, 0]], "alphabet": "ab"}, ["a"], "must be finite and symmetric. Got nan at"),
        ({"table": [[1e300]], "beta": 1e5, "alphabet": "a"}, ["a"], r"must be at most 1e\+75"),
        ({}, ["A", ""], "LocalAlignment: object 1 is empty"),
        ({}, ["AC", "A1"], "LocalAlignment: object 1, position 1"),
    ],
)
def test_errors(parameters: dict[str, Any], X: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalAlignment(**parameters)(X)

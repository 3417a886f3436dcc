"""Affinities against brute force, their limits and edge cases, and the table of formulas."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import oracles_affinity as oracle
import pytest
from affinity_cases import ELSEWHERE
from numpy.testing import assert_allclose, assert_array_equal

from genkern.affinities import Affinity, Expected, Jeffreys, PairError, Power, affinity, gaussian, hmm, resolvent
from genkern.core.arrays import products
from genkern.core.pairs.recursion import PairSide
from genkern.models.factorial.model import FactorialHMM
from genkern.models.families.categorical import Categorical
from genkern.models.families.gaussian import Gaussian
from genkern.models.hmm.model import HMM
from genkern.models.lds.model import LDS
from genkern.models.value import rebatch

IDS = [repr(how) for how in oracle.HOWS]
KINDS = ("isotropic", "diagonal", "full")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def value(*args: Any, **options: Any) -> float:
    return math.exp(float(affinity(*args, **options)))


# --- every row of the table against its oracle


def case_categorical(how: Any) -> None:
    p, q = oracle.random_categorical(rng(1)), Categorical([0.0, 0.3, 0.7])
    assert value(p, q, how) == pytest.approx(oracle.categorical(p, q, how), rel=1e-12)
    assert affinity(p, q, how, length=7) == pytest.approx(7 * affinity(p, q, how), rel=1e-14)


def case_gaussian(how: Any) -> None:
    p, q = Gaussian(0.3, 0.5), Gaussian(-1.1, 1.7)
    assert value(p, q, how) == pytest.approx(oracle.gaussian(p, q, how), rel=1e-8)


def case_hmm_given(how: Any) -> None:
    for final in (None, "end", "stop"):
        p, q = oracle.random_hmm(rng(2), 2, final=final), oracle.random_hmm(rng(3), 3, final=final)
        for length in (1, 3):
            expected = oracle.hmm_symbols(p, q, how, length)
            assert value(p, q, how, length=length) == pytest.approx(expected, rel=1e-11), (final, length)
    p, q = (oracle.random_hmm(rng(s), n, oracle.random_gaussian(rng(s), (n,))) for s, n in ((4, 2), (5, 3)))
    assert value(p, q, how, length=3) == pytest.approx(oracle.hmm_numbers(p, q, how, 3), rel=1e-7)


def case_hmm_all(how: Any) -> None:
    # Models that nearly always stop at once: few lengths suffice.
    p = oracle.random_hmm(rng(6), 2, Categorical([[0.9, 0.1], [0.7, 0.3]]), "stop", stop=0.97)
    q = oracle.random_hmm(rng(7), 1, Categorical([[0.2, 0.8]]), "stop", stop=0.97)
    assert value(p, q, how) == pytest.approx(oracle.all_lengths(p, q, how, 5), rel=1e-6)


CASES = {
    ("Categorical", "Categorical", "Power", "iid", "exact"): (case_categorical, "categorical_product"),
    ("Categorical", "Categorical", "Expected", "iid", "exact"): (case_categorical, "categorical_mean_map"),
    ("Gaussian", "Gaussian", "Power", "iid", "exact"): (case_gaussian, "gaussian_product"),
    ("Gaussian", "Gaussian", "Expected", "iid", "exact"): (case_gaussian, "gaussian_mean_map"),
    ("HMM", "HMM", "Power", "given", "exact"): (case_hmm_given, "state_pair_recursion"),
    ("HMM", "HMM", "Expected", "given", "exact"): (case_hmm_given, "state_pair_recursion"),
    ("HMM", "HMM", "Power", "all", "exact"): (case_hmm_all, "all_lengths"),
    ("HMM", "HMM", "Expected", "all", "exact"): (case_hmm_all, "all_lengths"),
}


def key(rule: Any) -> tuple[str, str, str, str, str]:
    return (rule.left.__name__, rule.right.__name__, rule.how.__name__, rule.length, rule.method)


@pytest.mark.parametrize("names", CASES, ids="-".join)
def test_every_formula_equals_its_oracle(names: tuple[str, ...]) -> None:
    case, name = CASES[names]
    (rule,) = [rule for rule in affinity.table() if key(rule) == names]
    assert rule.name == name
    for how in oracle.HOWS:
        if isinstance(how, rule.how):
            case(how)


def test_every_formula_has_an_oracle_somewhere() -> None:
    tested = [set(CASES), *ELSEWHERE.values()]
    own = [rule for rule in affinity.table() if rule.left.__module__.startswith("genkern.")]  # not those of tests
    assert sorted(names for part in tested for names in part) == sorted(map(key, own))


@pytest.mark.parametrize("rho", [0.5, 1.0, 2.2])
@pytest.mark.parametrize("kinds", [("full", "full"), ("full", "isotropic"), ("diagonal", "full")])
def test_gaussians_in_the_plane_equal_a_dense_grid(rho: float, kinds: tuple[str, str]) -> None:
    p, q = (oracle.random_gaussian(rng(s), (), 2, kind) for s, kind in zip((1, 2), kinds))
    assert value(p, q, Power(rho)) == pytest.approx(oracle.gaussian_plane(p, q, rho), rel=1e-8)


# --- dispatch


def test_explain_names_the_formulas_in_charge() -> None:
    p = oracle.random_hmm(rng(), 2, oracle.random_gaussian(rng(), (2,)))
    found = affinity.explain(p, p, Power(0.5), length=3)
    assert (found.name, found.kind) == ("state_pair_recursion", "exact")
    assert found.parts["emissions"].name == "gaussian_product"
    assert "Jebara" in found.reference
    assert "gaussian_product" in str(found)
    assert affinity.explain(p, p, Expected(1.0)).name == "all_lengths"


def test_table_prints_every_rule_and_its_reference_in_120_columns() -> None:
    table = affinity.table()
    lines = repr(table).splitlines()
    assert max(map(len, lines)) <= 120
    assert sum(not line.startswith(" ") for line in lines) == len(table) + 1
    assert all(rule.reference in " ".join(repr(table).split()) for rule in table)
    assert "gaussian_mean_map" in repr(table)
    assert f"{len(table)} formulas" in repr(affinity)


def test_table_is_filtered_by_names() -> None:
    found = affinity.table("hmm", "Power")
    assert [rule for rule in affinity.table() if "HMM" in rule.names and rule.how is Power] == list(found)
    assert {rule.how for rule in found} == {Power}
    assert len(affinity.table("HMM")) > len(found) > 2
    assert len(affinity.table("SwitchingLDS", "paired")) == 6
    with pytest.raises(ValueError, match=r"'HHM' must be the name of a model.*HMM"):
        affinity.table("HHM")


# Where the paper of probability product kernels has what each family's formula is, read off its pages.
PRINTED = {
    "Adapted": "section 5,",
    "BayesNet": "section 4.3", "Bernoulli": "section 3.2", "Categorical": "section 3.3", "Chain": "section 4.2",
    "Dirichlet": "section 3,", "Exponential": "section 3.4", "Gamma": "section 3.4", "Gaussian": "eq. 5",
    "Geometric": "section 3,", "HMM": "section 4.2", "KDE": "section 4.1", "LDS": "section 4.5",
    "LinearGaussianNet": "section 4.4",
    "NegativeBinomial": "section 2.2",
    "DirichletMultinomial": "section 2.2", "StudentT": "section 2.2", "NaturalFamily": "section 3,",
    "MarkovChain": "section 4.2", "Mixture": "section 4.1",
    "Multinomial": "section 3.3", "Poisson": "table 1", "Sampled": "section 5,", "SiteModel": "section 3.3",
    "ProfileHMM": "section 4.2", "SparseMultinomial": "section 3.3",
    "SwitchingLDS": "section 5.1", "VonMises": "section 3,",
}  # fmt: skip
MEAN_FIELD, DIVERGENCES = "section 6.1", "section 7"


def test_formulas_cite_the_sections_of_the_paper() -> None:
    for rule in affinity.table():
        if "Jebara" not in rule.reference:
            continue
        if rule.how is Jeffreys:
            printed = DIVERGENCES
        elif rule.left is FactorialHMM:  # exact over joint states, as for hidden Markov models
            printed = MEAN_FIELD if rule.kind == "bound" else PRINTED["HMM"]
        else:
            printed = PRINTED[rule.left.__name__]
        assert printed in rule.reference, rule.name
    assert "kernels, eq. 2." in str(Power.__doc__)


class Base:
    shape = (1,)


class Middle(Base): ...


class Other(Base): ...


class Leafmost(Middle): ...


def rule(book: Affinity, left: type, right: type, name: str, **options: Any) -> None:
    book.register(left, right, Power, name=name, reference="test", **options)(lambda P, Q, how: np.zeros((1, 1)))


def test_the_nearest_rule_wins_and_serves_the_reversed_pair() -> None:
    book = Affinity()
    rule(book, Base, Base, "general")
    rule(book, Middle, Other, "special")
    assert book.explain(Base(), Base(), Power()).name == "general"
    assert book.explain(Leafmost(), Other(), Power()).name == "special"
    assert book.explain(Other(), Leafmost(), Power()).name == "special"
    assert book.explain(Other(), Other(), Power()).name == "general"
    with pytest.raises(
        ValueError, match=r"Middle x Other under Power has the formula 'special' already.*reversed pair"
    ):
        rule(book, Other, Middle, "reversed")
    assert book.explain(Other(), Leafmost(), Power()).name == "special"
    rule(book, Other, Middle, "reversed", method="other")
    assert book.explain(Other(), Leafmost(), Power(), method="other").name == "reversed"


def test_a_reversed_rule_is_transposed() -> None:
    book = Affinity()

    @book.register(Categorical, Gaussian, Power, reference="test")
    def numbered(P: Categorical, Q: Gaussian, how: Power) -> Any:
        return np.arange(P.shape[-1])[:, None] + 10.0 * np.arange(Q.shape[-1])

    p, q = oracle.random_categorical(rng(), (2,)), oracle.random_gaussian(rng(), (3,))
    assert_array_equal(book(p, q, Power()), [[0, 10, 20], [1, 11, 21]])
    assert_array_equal(book(q, p, Power(), length=2), [[0, 2], [20, 22], [40, 42]])


def test_errors_of_a_reversed_rule_name_the_right_models() -> None:
    book = Affinity()

    @book.register(Categorical, Gaussian, Power, reference="test")
    def refuse(P: Categorical, Q: Gaussian, how: Power) -> Any:
        raise PairError((0, 2), "no")

    with pytest.raises(ValueError, match="models 2 and 0: no"):
        book(oracle.random_gaussian(rng(), (3,)), oracle.random_categorical(rng(), (2,)), Power())


def test_duplicates_and_ties_raise() -> None:
    book = Affinity()
    rule(book, Middle, Base, "one")
    with pytest.raises(ValueError, match="Middle x Base under Power has the formula 'one' already"):
        rule(book, Middle, Base, "two")
    rule(book, Base, Leafmost, "two")
    rule(book, Middle, Middle, "three")
    with pytest.raises(TypeError, match=r"Leafmost x Leafmost under Power fits .*'two'.*'three'.* equally well"):
        book.explain(Leafmost(), Leafmost(), Power())


def test_ties_of_a_pair_and_its_reverse_raise() -> None:
    class LeftBase(Base): ...

    class RightBase(Base): ...

    class Left(LeftBase): ...

    class Right(RightBase): ...

    book = Affinity()
    rule(book, Left, RightBase, "one")
    rule(book, Right, LeftBase, "two")
    for pair in ((Left, Right), (Right, Left)):
        with pytest.raises(TypeError, match=r"fits 'one' .* and 'two' .* equally well"):
            book.explain(pair[0](), pair[1](), Power())
    rule(book, Left, Right, "settled")
    assert book.explain(Right(), Left(), Power()).name == book.explain(Left(), Right(), Power()).name == "settled"
    rule(book, Left, Left, "own")
    assert book.explain(Left(), Left(), Power()).name == "own"


def test_failures_name_types_how_and_methods() -> None:
    book = Affinity()
    rule(book, Middle, Middle, "rough", method="sampled", exact="sampled")
    with pytest.raises(TypeError, match=r"Middle x Middle under Power with method='exact'.*'sampled'"):
        book.explain(Middle(), Middle(), Power())
    assert book.explain(Middle(), Middle(), Power(), method="sampled").kind == "sampled"
    with pytest.raises(TypeError, match=r"Other x Middle under Power.*Methods for this pair: none"):
        book.explain(Other(), Middle(), Power())
    p, leaf = oracle.random_hmm(rng()), oracle.random_categorical(rng())
    one = np.ones((1, 1))
    with pytest.raises(TypeError, match="no formula for HMM x LDS under Expected"):
        affinity(p, LDS(0.5 * one, one, one, one, [0.0], one), Expected(1.0), length=3)
    with pytest.raises(TypeError, match=r"Categorical x Gaussian"):
        affinity(leaf, Gaussian(0.0, 1.0), Power())
    with pytest.raises(TypeError, match=r"Power\(rho\) or Expected"):
        affinity(p, p, 0.5, length=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"method='mean-field'.*'exact'"):
        affinity(p, p, Power(), length=3, method="mean-field")


def test_a_rule_for_all_lengths_alone_takes_no_length() -> None:
    book = Affinity()
    rule(book, Middle, Middle, "endless", length="all")
    with pytest.raises(TypeError, match="takes no length"):
        book.explain(Middle(), Middle(), Power(), length=2)


@pytest.mark.parametrize(
    ("make", "bad"), [(Power, 0.0), (Power, -1.0), (Power, math.nan), (Expected, -0.1), (Expected, "x")]
)
def test_hows_are_checked(make: Any, bad: Any) -> None:
    with pytest.raises(ValueError, match=r"must be a (finite )?number"):
        make(bad)


def test_hows_are_values() -> None:
    assert Power(0.5) == Power(0.5) != Power(1.0)
    assert pickle.loads(pickle.dumps(Expected(2.0))) == Expected(2.0)
    assert len({Power(1), Power(1.0), Expected(1.0)}) == 2


# --- shapes, lists, blocks


def test_shapes_are_those_of_both_batches() -> None:
    p, q = oracle.random_categorical(rng(), (2, 3)), oracle.random_categorical(rng(), (4,))
    logs = affinity(p, q, Power())
    assert logs.shape == (2, 3, 4)
    assert logs[1, 2, 3] == pytest.approx(affinity(p[1, 2], q[3], Power()), rel=1e-14)
    assert affinity(p[0, 0], q[0], Power()).shape == ()
    assert affinity.diag(p, Power()).shape == (2, 3)
    assert affinity.diag(q[0], Power()).shape == ()


def mixed_models(seed: int = 0) -> list[HMM]:
    random = rng(seed)
    return [oracle.random_hmm(random, n) for n in (2, 4, 3, 2, 14, 3, 2, 14)]


@pytest.mark.parametrize("how", [Power(0.5), Expected(1.0)], ids=repr)
def test_ragged_lists_are_scattered_back(how: Any) -> None:
    models = mixed_models()
    square = affinity(models, models, how, length=4)
    assert_array_equal(square, square.T)
    assert_allclose(affinity(models, list(models), how, length=4), square, rtol=1e-13)
    assert_allclose(affinity.diag(models, how, length=4), np.diagonal(square), rtol=1e-13)
    each = [[float(affinity(p, q, how, length=4)) for q in models] for p in models]
    assert_allclose(square, each, rtol=1e-12)


def test_results_do_not_depend_on_neighbours_or_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    random = rng(3)
    models = [oracle.random_hmm(random, 3) for _ in range(70)]
    whole = affinity(models, models, Power(0.7), length=6)
    assert_array_equal(affinity(models[5:9], models[60:], Power(0.7), length=6), whole[5:9, 60:])
    assert_allclose(affinity.diag(models, Power(0.7), length=6), np.diagonal(whole), rtol=1e-13)
    # Many symbols: psi is a table, made for a few rows at a time.
    monkeypatch.setattr(hmm, "FEW", 2)
    tables = affinity(models, models, Power(0.7), length=6)
    assert_allclose(tables, whole, rtol=1e-13, atol=1e-13)
    monkeypatch.setattr(hmm, "CHUNK", 100)
    assert_allclose(affinity(models, models, Power(0.7), length=6), tables, rtol=1e-13)
    assert_allclose(affinity.diag(models, Power(0.7), length=6), np.diagonal(whole), rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [Power(0.5), Power(1.0), Expected(0.7)], ids=repr)
def test_gaussian_chunks_agree(kind: str, how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = oracle.random_gaussian(rng(1), (2, 5), 3, kind), oracle.random_gaussian(rng(2), (2, 4), 3, "diagonal")
    whole = affinity.block(p, q, how)
    assert whole.shape == (2, 5, 4)
    for chunk in (1, 9, 50):
        monkeypatch.setattr(gaussian, "CHUNK", chunk)
        assert_allclose(affinity.block(p, q, how), whole, rtol=1e-13)
    assert_allclose(whole[1, 2, 3], affinity(p[1, 2], q[1, 3], how), rtol=1e-13)


@pytest.mark.parametrize("length", [1, 2, 30, 200, 1000])
def test_end_weights_of_what_dies_out(length: int) -> None:
    """A path must end in the second state, and so begin there and stay, while the first one fits far better."""
    emissions = Categorical([[0.9, 0.1], [0.5, 0.5]])
    one = HMM([1.0], [[1.0]], Categorical([[1.0, 0.0]]), end=[1.0])
    p = HMM([0.5, 0.5], [[1.0, 0.0], [0.1, 0.9]], emissions, end=[0.0, 1.0])
    expected = math.log(0.5 * 0.5) + (length - 1) * math.log(0.9 * 0.5)
    assert_allclose(affinity(p, one, Power(), length=length), expected, rtol=1e-12)
    stopping = HMM([0.5, 0.5], [[1.0, 0.0], [0.1, 0.4]], emissions, stop=[0.0, 0.5])
    halting = HMM([1.0], [[0.5]], Categorical([[1.0, 0.0]]), stop=[0.5])
    expected = math.log(0.5 * 0.5 * 0.25) + (length - 1) * math.log(0.4 * 0.5 * 0.5)
    assert_allclose(affinity(stopping, halting, Power(), length=length), expected, rtol=1e-12)


def test_pieces_of_products_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = oracle.random_categorical(rng(1), (7,)), oracle.random_categorical(rng(2), (5,))
    whole = affinity(p, q, Power(0.7))
    monkeypatch.setattr(products, "SERIAL", 40)
    assert_allclose(affinity(p, q, Power(0.7)), whole, rtol=1e-13)


def test_blocks_pair_leading_axes_of_hmms() -> None:
    models = [oracle.random_hmm(rng(s), 2) for s in range(6)]
    stack = HMM.stack(models)
    pairs = rebatch(stack, (2, 3))
    logs = affinity.block(pairs, pairs, Power(), length=3)
    assert_allclose(logs[1], affinity(models[3:], models[3:], Power(), length=3), rtol=1e-13)
    flat = rebatch(HMM.stack([oracle.random_hmm(rng(1), 1, Gaussian([[0.0]], [[v]])) for v in (1, 1, 1, 0)]), (2, 2))
    with pytest.raises(PairError, match="states 0 and 0") as caught:
        affinity.block(flat, flat, Power(), length=3)
    assert caught.value.index == (1, 1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_may_be_of_any_kind(kind: str) -> None:
    p, q = oracle.random_gaussian(rng(1), (3,), 2, "isotropic"), oracle.random_gaussian(rng(2), (4,), 2, kind)
    full = [Gaussian(g.mean, np.stack([oracle.covariance(x) for x in g])) for g in (p, q)]
    for how in oracle.HOWS:
        assert_allclose(affinity(p, q, how), affinity(*full, how), rtol=1e-11, atol=1e-13)


def test_bad_inputs_say_what_is_wrong() -> None:
    p = oracle.random_categorical(rng())
    with pytest.raises(ValueError, match="at least one model"):
        affinity([], [p], Power())
    with pytest.raises(TypeError, match="Got str at index 1"):
        affinity([p, "acgt"], [p], Power())
    with pytest.raises(TypeError, match="Got int"):
        affinity(3, [p], Power())
    with pytest.raises(ValueError, match=r"Got a stack of \(2,\) at index 1"):
        affinity([p, oracle.random_categorical(rng(), (2,))], [p], Power())
    with pytest.raises(ValueError, match="same alphabet"):
        affinity(Categorical([0.5, 0.5], "ab"), Categorical([0.5, 0.5], "ac"), Power())
    with pytest.raises(ValueError, match="same alphabet"):
        affinity([Categorical([0.5, 0.5], "ab"), p], [p], Expected(1.0))
    with pytest.raises(ValueError, match=r"dimensions\. Got 1 and 2"):
        affinity(Gaussian(0.0, 1.0), Gaussian([0.0, 1.0], 1.0), Power())
    with pytest.raises(ValueError, match="'length' parameter of affinity must be an int >= 1"):
        affinity(p, p, Power(), length=0)


# --- lengths


def test_sequences_need_a_length() -> None:
    p, q = oracle.random_hmm(rng(1)), oracle.random_hmm(rng(2), 3)
    with pytest.raises(ValueError, match=r"needs length=.*about 10.*median length.*'stop'"):
        affinity(p, q, Power())
    ends = oracle.random_hmm(rng(1), final="end")
    with pytest.raises(ValueError, match="needs length="):
        affinity(ends, ends, Expected(1.0))


@pytest.mark.parametrize("length", [None, 3])
def test_one_sided_stop_raises(length: int | None) -> None:
    p, q = oracle.random_hmm(rng(1), final="stop"), oracle.random_hmm(rng(2))
    with pytest.raises(ValueError, match="Give both 'stop', or neither"):
        affinity(p, q, Power(), length=length)
    with pytest.raises(ValueError, match="Give both 'stop', or neither"):
        affinity([p, q], [p], Power(), length=length)


@pytest.mark.parametrize("how", [Power(0.8), Power(1.0), Expected(2.0)], ids=repr)
def test_all_lengths_are_the_sum_over_lengths(how: Any) -> None:
    models = [oracle.random_hmm(rng(s), n, final="stop") for s, n in ((1, 2), (2, 3), (3, 3))]
    logs = affinity(models, models, how)
    each = [affinity(models, models, how, length=length) for length in range(1, 100)]
    assert_allclose(logs, np.logaddexp.reduce(each), rtol=1e-11)
    assert_allclose(affinity.diag(models, how), np.diagonal(logs), rtol=1e-12)


def test_diverging_sums_raise_and_name_the_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    safe = oracle.random_hmm(rng(1), 2, stop=0.9, final="stop")
    # With rho = 0.1 the transitions' powers sum to far more than one.
    with pytest.raises(ValueError, match=r"models 0 and 0: .*diverges.*length="):
        affinity([safe], [safe], Power(0.1))
    wide, narrow = (oracle.random_hmm(rng(1), 1, Gaussian([[0.0]], [[v]]), "stop", stop=0.5) for v in (1.0, 1e-4))
    for chunk in (1, 1 << 20):
        monkeypatch.setattr(hmm, "CHUNK", chunk)
        with pytest.raises(ValueError, match="models 2 and 2: the sum over all lengths diverges"):
            affinity([wide, wide, narrow], [wide, wide, narrow], Power(1.0))
        with pytest.raises(ValueError, match="models 1 and 1: the sum over all lengths diverges"):
            affinity.diag([wide, narrow], Power(1.0))
        with pytest.raises(ValueError, match="models 1 and 0: the sum over all lengths diverges"):
            affinity([wide, narrow], [narrow, wide], Power(1.0))
    assert np.isfinite(affinity(narrow, narrow, Expected(1.0)))


def test_only_the_diagonal_need_converge_for_the_diagonal() -> None:
    # The second model's first state is narrow but hardly ever returns to itself; the first model's always does.
    stay = HMM([1.0, 0.0], [[0.9, 0.0], [0.0, 0.9]], Gaussian([[0.0], [0.0]], [[1.0], [1.0]]), stop=[0.1, 0.1])
    leave = HMM([1.0, 0.0], [[0.05, 0.85], [0.05, 0.85]], Gaussian([[0.0], [9.0]], [[3e-5], [1.0]]), stop=[0.1, 0.1])
    own = affinity.diag([stay, leave], Power(1.0))
    assert_allclose(own, np.diagonal(affinity([stay, leave], [stay, leave], Power(1.0))), rtol=1e-12)


def test_states_off_every_path_do_not_diverge() -> None:
    # State 1 never stops and cannot be reached: the kernel is that of state 0 alone.
    emissions = Categorical([[0.5, 0.5], [1.0, 0.0]])
    p = HMM([1.0, 0.0], [[0.5, 0.0], [0.0, 1.0]], emissions, stop=[0.5, 0.0])
    assert value(p, p, Power(1.0)) == pytest.approx(0.5 * 0.25 / (1 - 0.5 * 0.25), rel=1e-13)
    never = HMM([0.0, 1.0], [[0.5, 0.0], [0.0, 1.0]], emissions, stop=[0.5, 0.0])
    assert affinity(p, never, Power(1.0)) == -np.inf


def left_right(shift: float) -> HMM:
    emissions = Gaussian([[0.0 + shift], [1.0 + shift], [2.0 + shift]], np.ones((3, 1)))
    steps = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 0.5]]
    return HMM([1.0, 0.0, 0.0], steps, emissions, stop=[0.0, 0.0, 0.5])


def test_all_lengths_beyond_the_range_of_floating_point() -> None:
    p, q = left_right(0.0), left_right(90.0)
    logs = affinity(p, q, Power(1.0))
    each = [affinity(p, q, Power(1.0), length=length) for length in range(1, 12)]
    assert logs < -5000
    assert logs == pytest.approx(np.logaddexp.reduce(each), rel=1e-12)


def test_elimination_equals_solving() -> None:
    random = rng(4)
    sides = [
        PairSide(random.dirichlet(np.ones(n), 5), 0.6 * random.dirichlet(np.ones(n), (5, n)), np.full((5, n), 0.4))
        for n in (2, 3)
    ]
    psi = np.log(random.uniform(0.1, 1.5, (5, 2, 3)))
    psi[4] += 3.0
    live = np.ones(psi.shape, dtype=bool)
    solved = resolvent._by_solving(*sides, psi, live)
    assert np.isposinf(solved[4])
    assert np.isfinite(solved[:4]).all()
    logs = [PairSide(*(np.log(part) for part in side)) for side in sides]
    assert_allclose(resolvent._by_elimination(*logs, psi, live), solved, rtol=1e-12)
    assert_allclose(resolvent.log_all_lengths(*sides, psi), solved, rtol=1e-12)


def test_a_singular_system_means_divergence() -> None:
    # lam = 0 makes every emission alike, and a chain that returns surely would go on for ever.
    one = PairSide(np.ones((1, 1)), np.ones((1, 1, 1)), np.ones((1, 1)))
    assert np.isposinf(resolvent.log_all_lengths(one, one, np.zeros((1, 1, 1)))).all()


# --- limits


def test_a_sharp_mean_map_of_symbols_is_the_expected_likelihood() -> None:
    p, q = oracle.random_hmm(rng(1), 2), oracle.random_hmm(rng(2), 3)
    target = affinity(p, q, Power(1.0), length=6)
    for lam, tolerance in ((20.0, 1e-6), (40.0, 1e-12), (800.0, 1e-13)):
        assert affinity(p, q, Expected(lam), length=6) == pytest.approx(target, rel=tolerance)


def test_a_sharp_mean_map_of_numbers_is_the_expected_likelihood_up_to_a_factor() -> None:
    d, length, lam = 2, 4, 1e6
    p, q = (oracle.random_hmm(rng(s), 2, oracle.random_gaussian(rng(s), (2,), d)) for s in (1, 2))
    scale = 0.5 * d * length * math.log(lam / (2 * math.pi))
    target = affinity(p, q, Power(1.0), length=length)
    assert affinity(p, q, Expected(lam), length=length) + scale == pytest.approx(target, abs=1e-4)


@pytest.mark.parametrize("how", oracle.HOWS, ids=IDS)
def test_one_state_is_an_independent_leaf(how: Any) -> None:
    leaf, other = oracle.random_gaussian(rng(1), (1,), 2, "full"), oracle.random_gaussian(rng(2), (1,), 2)
    p, q = oracle.random_hmm(rng(3), 1, leaf), oracle.random_hmm(rng(4), 1, other)
    assert affinity(p, q, how, length=9) == pytest.approx(affinity(leaf[0], other[0], how, length=9), rel=1e-12)


def test_bhattacharyya_of_a_distribution_with_itself_is_one() -> None:
    assert affinity.diag(oracle.random_gaussian(rng(), (4,), 3, "full"), Power(0.5)) == pytest.approx(0, abs=1e-12)
    assert affinity.diag(oracle.random_categorical(rng(), (4,)), Power(0.5)) == pytest.approx(0, abs=1e-13)


def test_long_sequences_do_not_underflow() -> None:
    p, q = oracle.random_hmm(rng(1), 2), oracle.random_hmm(rng(2), 3)
    step = affinity(p, q, Power(1.0), length=301) - affinity(p, q, Power(1.0), length=300)
    logs = affinity(p, q, Power(1.0), length=100_000)
    assert logs == pytest.approx(affinity(p, q, Power(1.0), length=300) + (100_000 - 300) * step, rel=1e-9)
    assert logs < -1e4


def test_disjoint_supports_are_minus_infinity() -> None:
    p, q = Categorical([[1.0, 0.0], [1.0, 0.0]]), Categorical([[0.0, 1.0], [0.0, 1.0]])
    assert_array_equal(affinity(p, q, Power(0.5)), np.full((2, 2), -np.inf))
    first, second = (oracle.random_hmm(rng(1), 2, leaf) for leaf in (p, q))
    assert affinity(first, second, Power(0.5), length=3) == -np.inf
    assert affinity(first, second, Expected(2.0), length=3) == pytest.approx(-6.0, rel=1e-12)


def test_powers_that_underflow_are_done_in_logs() -> None:
    p, q = Categorical([0.999, 0.001, 0.0]), Categorical([0.001, 0.999, 0.0])
    assert affinity(p, q, Power(200.0)) == pytest.approx(200 * math.log(0.000999) + math.log(2), rel=1e-12)
    stack = Categorical([[0.999, 0.001, 0.0], [0.0, 0.0, 1.0]])
    assert_allclose(affinity(stack, q, Power(200.0)), [200 * math.log(0.000999) + math.log(2), -np.inf], rtol=1e-12)
    tiny = Categorical([1e-200, 1.0]), Categorical([1.0, 1e-200])
    assert affinity(*tiny, Expected(900.0)) == pytest.approx(math.log(2) - 200 * math.log(10), rel=1e-12)


# --- singular covariances


@pytest.mark.parametrize("kind", KINDS)
def test_singular_covariances(kind: str) -> None:
    flat = {"isotropic": 0.0, "diagonal": [1.0, 0.0], "full": [[1.0, 1.0], [1.0, 1.0]]}[kind]
    p, q = Gaussian([0.0, 0.0], flat), Gaussian([1.0, 0.5], 1.0)
    assert affinity(p, q, Power(0.5)) == -np.inf
    assert affinity(p, p, Power(0.5)) == -np.inf
    assert np.isfinite(affinity(p, q, Power(1.0)))
    with pytest.raises(ValueError, match=r"models 0 and 0: the sum of the covariances is singular.*min_covar"):
        affinity(p, p, Power(1.0))
    with pytest.raises(ValueError, match=r"models 1 and 0: a covariance is singular.*rho = 2 > 1.*min_covar"):
        affinity([q, p], [q], Power(2.0))
    assert affinity(p, p, Expected(0.0)) == 0.0
    assert np.isfinite(affinity(p, p, Expected(1.0)))
    assert np.isfinite(affinity(p, q, Expected(1.0)))


def test_singular_sums_are_found_among_regular_ones() -> None:
    covs = np.array([np.eye(3), np.zeros((3, 3)), np.ones((3, 3))])
    models = Gaussian(np.zeros((3, 3)), covs)
    for i, j in ((1, 1), (1, 2), (2, 2)):
        with pytest.raises(ValueError, match="models 0 and 0: the sum of the covariances is singular"):
            affinity(models[i], models[j], Power(1.0))
    with pytest.raises(ValueError, match="models 1 and 1: the sum of the covariances is singular"):
        affinity(models, models, Power(1.0))
    assert np.isfinite(affinity(models[:1], models, Power(1.0))).all()


def test_extreme_variances_do_not_overflow_on_their_way_to_the_logarithm() -> None:
    for scale in (1e-80, 1e80):
        p = Gaussian(np.zeros(5), np.full(5, scale))
        assert affinity(p, p, Power(1.0)) == pytest.approx(-2.5 * math.log(4 * math.pi * scale), rel=1e-12)


def test_point_masses_have_the_kernel_of_their_points() -> None:
    p, q = Gaussian([0.0, 1.0], 0.0), Gaussian([3.0, 0.0], 0.0)
    assert affinity(p, q, Expected(0.3)) == pytest.approx(-0.15 * 10.0, rel=1e-14)


@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_errors_in_emissions_name_models_and_states(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmm, "CHUNK", chunk)
    good = oracle.random_hmm(rng(1), 2, Gaussian([[0.0], [1.0]], [[1.0], [1.0]]))
    bad = oracle.random_hmm(rng(1), 2, Gaussian([[0.0], [1.0]], [[1.0], [0.0]]))
    with pytest.raises(ValueError, match="models 2 and 2: in the emissions of states 1 and 1, the sum"):
        affinity([good, good, bad], [good, good, bad], Power(1.0), length=2)
    with pytest.raises(ValueError, match="models 2 and 2: in the emissions of states 1 and 1, the sum"):
        affinity.diag([good, good, bad], Power(1.0), length=2)
    with pytest.raises(ValueError, match="models 1 and 0: in the emissions of states 1 and 0, a covariance"):
        affinity([good, bad], [good], Power(1.5), length=2)

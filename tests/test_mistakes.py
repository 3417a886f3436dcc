"""Inputs that would be taken for what they are not: lengths, readings, tables of strings, layouts, flags."""

import inspect
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import genkern
from genkern import (
    Categorical,
    CategoricalEstimator,
    CentreSeries,
    Channels,
    CharacteristicFeatures,
    EmpiricalMean,
    EmpiricalMeanMap,
    FisherScore,
    FitEach,
    GaussianEstimator,
    HMMEstimator,
    KDEEstimator,
    LatentMeanMap,
    LDSEstimator,
    Marginalized,
    MarkovChainEstimator,
    MixtureEstimator,
    Multinomial,
    MultinomialEstimator,
    PlugInClassifier,
    PositionalSpectrum,
    Posteriors,
    ProposalFeatures,
    Recode,
    RegionSpectrum,
    ScaleSeries,
    SiteEstimator,
    Spectrum,
    StateSpace,
    Windows,
    as_alphabet,
    check_objects,
    from_concatenated,
    recipes,
)
from genkern.data.inspection import FEW, SMALL
from genkern.data.objects import infer_alphabet, kind_of, pack_points, pack_series, pack_symbols

# --- a y that nothing uses

ROWS = np.random.default_rng(0).normal(size=(240, 1))
TEXTS = ["abab", "bb", "aab"]
NUMBERS = [
    HMMEstimator(2, max_iter=1, tol=0),
    GaussianEstimator(),
    MixtureEstimator(2, max_iter=1, tol=0),
    KDEEstimator(),
    LDSEstimator(1, max_iter=1, tol=0),
    FisherScore(GaussianEstimator()),
    StateSpace(HMMEstimator(2, max_iter=1, tol=0)),
    Posteriors(HMMEstimator(2, max_iter=1, tol=0)),
    FitEach(GaussianEstimator()),
    EmpiricalMeanMap(0),
    Windows(1),
    ScaleSeries(),
    CentreSeries(),
]
SYMBOLS = [
    CategoricalEstimator(),
    MarkovChainEstimator(1),
    HMMEstimator(2, max_iter=1, tol=0),
    Spectrum(1),
    RegionSpectrum((1,)),
    EmpiricalMeanMap(1),
    Channels("one-hot"),
    Recode("a b"),
]


@pytest.mark.parametrize("estimator", NUMBERS, ids=lambda e: type(e).__name__)
def test_lengths_are_refused_with_the_call_that_is_meant(estimator):
    name = type(estimator).__name__
    with pytest.raises(
        ValueError, match=rf"^{name}: y holds 2 integers that sum to 240.*{name}\(\.\.\.\)\.fit\(from_conc"
    ):
        clone(estimator).fit(ROWS, [100, 140])
    clone(estimator).fit(from_concatenated(ROWS, [100, 140]))


@pytest.mark.parametrize("estimator", SYMBOLS, ids=lambda e: type(e).__name__)
def test_paths_and_other_sizes_are_refused_and_labels_are_not(estimator):
    paths = [[0, 1, 0, 1], [1, 1], np.array([0, 0, 1])]
    for y, match in (
        (paths, "y holds one sequence per object"),
        (np.concatenate(paths), "one entry per position"),
        ([0, 1], r"inconsistent numbers of samples: \[3, 2\]"),
        ([0, 1, 0, 1], r"inconsistent numbers of samples: \[3, 4\]"),
        (["a"], r"inconsistent numbers of samples: \[3, 1\]"),
    ):
        with pytest.raises(ValueError, match=match):
            clone(estimator).fit(TEXTS, y)
    for y in (None, [0, 1, 1], ["u", "v", "v"], np.eye(3), [[0, 1], [1, 0], [1, 1]], [1, 1, 1]):
        clone(estimator).fit(TEXTS, y)
        clone(estimator).fit(check_objects(TEXTS), y)


def test_windows_of_one_length_refuse_lengths_too():
    for estimator in (SiteEstimator(), PositionalSpectrum((1,))):
        with pytest.raises(ValueError, match="y holds 2 integers that sum to 4"):
            clone(estimator).fit(["ab", "ba", "bb", "aa"], [3, 1])


@pytest.mark.parametrize("embedding", [CharacteristicFeatures(n_components=2), ProposalFeatures(n=4)])
def test_transformers_of_models_ignore_y(embedding):
    models = [Categorical([0.2, 0.8], "ab"), Categorical([0.5, 0.5], "ab"), Categorical([0.9, 0.1], "ab")]
    expected = clone(embedding).fit_transform(models)
    for y in ([0, 1, 1], [[0, 1], [1, 0], [1, 1]]):
        np.testing.assert_array_equal(clone(embedding).fit_transform(models, y), expected)


# --- integers


def readings():
    """Return two classes of noisy readings of a 12-bit sensor, as int16."""
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    t = np.arange(60)
    X = [(900 + 700 * np.sin(t / (6 + 4 * c)) + rng.normal(0, 60, 60)).astype(np.int16) for c in y]
    return X, y


@pytest.mark.parametrize(
    "form", [lambda X: X, np.array, lambda X: [x.tolist() for x in X]], ids=["list", "2-D", "lists"]
)
def test_readings_are_asked_about(form):
    X, y = readings()
    assert len(np.unique(X)) > 1000
    for estimator in (
        HMMEstimator(2),
        MixtureEstimator(2),
        EmpiricalMeanMap(0),
        FisherScore(HMMEstimator(2)),
        PlugInClassifier(HMMEstimator(2)),
        recipes.fisher_svm(2),
        recipes.meanmap_svm(2),
    ):
        with pytest.raises(ValueError, match=r"symbols or numbers\?.*X\.astype\(float\).*alphabet="):
            clone(estimator).fit(form(X), y)
    for ask in (kind_of, check_objects, EmpiricalMean()):
        with pytest.raises(ValueError, match=r"symbols or numbers\?"):
            ask(form(X))


def test_readings_as_floats_and_symbols_by_name():
    X, y = readings()
    floats = [x.astype(float) for x in X]
    learner = make_pipeline(FisherScore(HMMEstimator(2, max_iter=20, tol=0)), SVC(kernel="linear"))
    assert cross_val_score(learner, floats, y, cv=4).mean() == 1.0
    with pytest.raises(ValueError, match=r"symbols or numbers\?.*emission= .*CategoricalEstimator\(alphabet="):
        HMMEstimator(2, "categorical", max_iter=1, tol=0).fit(X)
    listed = HMMEstimator(2, CategoricalEstimator(alphabet=np.unique(X)), max_iter=1, tol=0).fit(X).model_
    assert listed.emissions.alphabet.symbols == tuple(np.unique(X).tolist())
    named = HMMEstimator(2, CategoricalEstimator(alphabet=2000), max_iter=1, tol=0).fit(X).model_
    assert named.emissions.alphabet.size == 2000
    HMMEstimator(2, "gaussian", max_iter=1, tol=0).fit(X)
    assert check_objects(X, alphabet=2000).alphabet.size == 2000
    assert check_objects(X, kind="series").alphabet is None


def test_few_and_small_integers_are_symbols():
    few = [np.arange(FEW) * 4 % SMALL, [0, 3 * 4]]
    assert kind_of(few) == kind_of([[0, 1], np.array([2, 1])]) == kind_of(np.array([[0, 7]])) == "symbols"
    for wrong, match in (
        ([np.arange(FEW + 1)], f"Objects 0 to 0 have {FEW + 1}"),
        ([[0], [1, SMALL]], f"Got {SMALL} in object 1, position 1"),
        ([[0, -1]], "Got -1 in object 0, position 1"),
        (np.array([[0, 1], [2, 2**40]]), f"Got {2**40} in object 1, position 1"),
        ([[0, 2**70]], f"Got {2**70} in object 0, position 1"),
    ):
        with pytest.raises(ValueError, match=match):
            kind_of(wrong)
        assert kind_of(wrong, ask=False) == "symbols"
    assert kind_of([[0, 500], [0.5]]) == "series"
    assert check_objects([[0, -1]], missing=-1).alphabet == as_alphabet([0], missing=-1)


def test_inferred_alphabets_are_the_codes_that_occur():
    codes = [[3, 120, 240], [120, 3]]
    assert infer_alphabet(codes).symbols == (3, 120, 240)
    pairs = Spectrum(2).fit(codes)
    assert pairs.n_features_out_ == 9
    assert pairs.get_feature_names_out()[1] == "3,120"
    np.testing.assert_array_equal(pairs.transform(codes), [[0, 1, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0, 0]])
    assert MarkovChainEstimator(1).fit(codes).model_.transitions.shape == (3, 3)
    np.testing.assert_array_equal(genkern.Categorical([0.5, 0.25, 0.25]).log_prob([[2, 1]]), [np.log(0.0625)])


# All that is public and has alphabet=, made with a given one; those that have one in any case, with the reason.
TAKE_SYMBOLS = {
    "CategoricalEstimator": CategoricalEstimator,
    "Channels": lambda alphabet=None: Channels("one-hot", alphabet),
    "EmpiricalMean": lambda alphabet=None: EmpiricalMean(alphabet=alphabet),
    "EmpiricalMeanMap": lambda alphabet=None: EmpiricalMeanMap(0, alphabet=alphabet),
    "MarkovChainEstimator": lambda alphabet=None: MarkovChainEstimator(0, alphabet=alphabet),
    "PeriodicChainEstimator": lambda alphabet=None: genkern.PeriodicChainEstimator(0, 1, alphabet=alphabet),
    "PositionalChainEstimator": lambda alphabet=None: genkern.PositionalChainEstimator(0, alphabet=alphabet),
    "ProfileHMMEstimator": lambda alphabet=None: genkern.ProfileHMMEstimator(4, tol=1.0, alphabet=alphabet),
    "PositionalSpectrum": lambda alphabet=None: PositionalSpectrum((1,), alphabet),
    "RegionSpectrum": lambda alphabet=None: RegionSpectrum((1,), 2, alphabet),
    "SiteEstimator": SiteEstimator,
    "Spectrum": lambda alphabet=None: Spectrum(1, alphabet),
    "aligned_symbols": lambda alphabet=None: recipes.aligned_symbols(
        ks=(1,), region_ks=(), orders=(), alphabet=alphabet, cv=2
    ),
    "check_objects": lambda alphabet=None: lambda X: check_objects(X, "symbols", alphabet),
    "pack_symbols": lambda alphabet=None: lambda X: pack_symbols(X, alphabet),
    "infer_alphabet": lambda alphabet=None: lambda X: infer_alphabet(X) if alphabet is None else as_alphabet(alphabet),
    "spectrum_svm": lambda alphabet=None: recipes.spectrum_svm(1, alphabet=alphabet),
    "symbols": lambda alphabet=None: recipes.symbols(alphabet, n_lags=1, n_gaps=1),
}
HAVE_ALPHABETS = {
    "Categorical": "a value, which has an alphabet",
    "LocalAlignment": "compares proteins by default",
    "MarkovChain": "a value",
    "PeriodicChain": "a value",
    "PositionalChain": "a value",
    "ProfileHMM": "a value",
    "SiteModel": "a value",
    "Recode": "its groups name the symbols",
    "contours": "has directions by default",
    "mmd_test": "passes it to the recipe of the kind of objects",
}


def test_all_that_takes_symbols_stands_in_the_table():
    public = [getattr(module, name) for module in (genkern, recipes) for name in module.__all__]
    takes = {
        f.__name__
        for f in public
        if callable(f) and f is not genkern.read and "alphabet" in inspect.signature(f).parameters
    }
    assert takes == set(TAKE_SYMBOLS) - {"pack_symbols", "infer_alphabet"} | set(HAVE_ALPHABETS)


@pytest.mark.parametrize("name", TAKE_SYMBOLS)
def test_integers_are_symbols_unasked_only_if_few_and_small(name):
    def use(X, alphabet=None):
        made = TAKE_SYMBOLS[name](alphabet)
        return made.fit(X, np.arange(len(X)) % 2) if hasattr(made, "fit") else made(X)

    few = [np.arange(FEW) * 4, np.arange(FEW)[::-1] * 4] * 2
    use(few)
    for wrong, got, alphabet in (
        ([x + 4 for x in few], f"Got {SMALL} in object 0, position {FEW - 1}", SMALL + 1),
        ([np.arange(FEW), np.arange(1, FEW + 1)] * 2, f"Objects 0 to 3 have {FEW + 1}", FEW + 1),
        ([x.astype(np.int16)[:40] for x in readings()[0]], r"Got \d+ in object 0", np.unique(readings()[0])),
    ):
        for form in (list, np.array, lambda X: [x.tolist() for x in X]):
            with pytest.raises(ValueError, match=rf"symbols or numbers\?.*{got}.*X\.astype\(float\).*alphabet=m"):
                use(form(wrong))
        use(wrong, alphabet)
    with pytest.raises(ValueError, match=r"-5 is negative.*missing=-5|Got -5 in object 1, position 0"):
        use([np.array([2, 1]), np.array([-5, 1])])


def test_floats_that_are_integers_are_no_way_around():
    with pytest.raises(ValueError, match=f"symbols or numbers.*Got {SMALL} in object 1, position 0"):
        Spectrum(1).fit([[0.0, 1.0], [float(SMALL), 1.0]])
    with pytest.raises(ValueError, match=r"object 0, position 1: 0\.5 is not a symbol"):
        Spectrum(1).fit([[0.0, 0.5], [float(SMALL), 1.0]])
    assert pack_symbols([[0, -1, 1], [-1, 1]], missing=-1).alphabet.size == 2


# --- containers and objects


def test_columns_of_strings():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["abab", "bb"], "label": [0, 1]}, index=[7, 3])
    expected = [[2.0, 2.0], [0.0, 2.0]]
    for dtype in (object, "string", "category", None):
        column = frame["text"] if dtype is None else frame["text"].astype(dtype)
        np.testing.assert_array_equal(Spectrum(1).fit_transform(column), expected)
        assert pack_symbols(column).lengths.tolist() == [4, 2]
    for table in (frame[["text"]], frame[["text"]].to_numpy(), np.array([["abab"], ["bb"]])):
        for use in (Spectrum(1).fit, HMMEstimator(2).fit, check_objects, CategoricalEstimator().fit):
            with pytest.raises(ValueError, match=r"one column of strings, such as 'abab' in row 0.*X\.iloc\[:, 0\]"):
                use(table)
    np.testing.assert_array_equal(Spectrum(1).fit_transform(frame[["text"]].iloc[:, 0]), expected)
    assert pack_symbols([[s] for s in frame["text"]]).lengths.tolist() == [1, 1]
    assert pack_symbols(np.array([["a"], ["b"]])).lengths.tolist() == [1, 1]
    assert pack_symbols(np.array([["up", "down"], ["up", "up"]])).lengths.tolist() == [2, 2]


def test_groups_of_data_frames_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [0, 0, 1], "u": [1.0, 2.0, 3.0], "v": [0.0, 1.0, 5.0]})
    for X in (frame.groupby("id"), frame.groupby("id")["u"]):
        with pytest.raises(TypeError, match=r"Got \w+GroupBy; pass one array per group.*for _, group in X"):
            check_objects(X)
    assert check_objects([group[["u", "v"]].to_numpy() for _, group in frame.groupby("id")]).lengths.tolist() == [2, 1]


@pytest.mark.parametrize("buffer", [bytearray, memoryview])
def test_buffers_are_refused(buffer):
    for use in (check_objects, Spectrum(1).fit, HMMEstimator(2).fit, pack_series):
        with pytest.raises(
            TypeError, match=rf"object 1 is a {buffer.__name__}: text or numbers\?.*bytes\(x\).*list\(x\)"
        ):
            use([b"ab" if use is not pack_series else [1.0], buffer(b"ab")])
    with pytest.raises(TypeError, match=r"Got one string; put it into a list"):
        check_objects(buffer(b"ab"))
    assert check_objects([bytes(buffer(b"ab"))]).objects() == ["ab"]


@pytest.mark.parametrize("kind", [Decimal, Fraction])
def test_other_numbers_are_refused(kind):
    wrong = [
        [[1.0, 2.0], [0.5, kind(3)]],
        [["a", "b"], ["a", kind(3)]],
        [[0.5, 1.5], np.array([0.5, kind(3)], dtype=object)],
        np.array([[0.5, 1.5], [0.5, kind(3)]], dtype=object),
    ]
    for X in wrong:
        for use in (check_objects, pack_series, pack_points, pack_symbols, HMMEstimator(2).fit):
            if isinstance(X[0][0], str) and use in (pack_series, pack_points):
                continue
            with pytest.raises(TypeError, match=r"object 1, position 1 is (Decimal|Fraction)\(.*float\(x\).*str\(x\)"):
                use(X)


def test_channels_before_time_are_noticed():
    rng = np.random.default_rng(0)
    right, wrong = rng.normal(size=(4, 50, 3)), rng.normal(size=(4, 3, 50))
    said = r"3 time steps of 50 channels.*layout=\"channels-first\".*np\.swapaxes\(X, 1, 2\)"
    for use in (check_objects, HMMEstimator(2, max_iter=1, tol=0).fit, Windows(1).fit, ScaleSeries().fit):
        for form in (list, lambda X: X.tolist()):
            with pytest.warns(UserWarning, match=said):
                use(form(wrong))
        with pytest.raises(
            ValueError, match=r"shape \(4, 3, 50\): 3 time steps of 50 channels, or 50 of 3\? .*list\(X\)"
        ):
            use(wrong)
    uneven = [wrong[0], wrong[1][:, :40], wrong[2][:, :30]]
    turn = r"All objects have 3 rows, as if .*layout=\"channels-first\".*\[np\.transpose\(x\) for x in X\]"
    with pytest.raises(ValueError, match=rf"object 1 has 40 channels \(shape \(3, 40\)\), object 0 has 50\. {turn}"):
        check_objects(uneven)
    assert check_objects([np.transpose(x) for x in uneven]).values.shape == (120, 3)
    with pytest.raises(ValueError, match=r"object 1 has 40 channels.*50\. If the objects are \(d, T\)"):
        check_objects([*uneven, np.zeros((4, 50))])
    check_objects([wrong[0], wrong[1][:2]])  # lengths differ, as those of time do
    pack_series(list(wrong), n_channels=50)  # as a fitted model expects
    check_objects(right)
    check_objects(list(rng.normal(size=(4, 3, 23))))
    with pytest.warns(UserWarning, match="3 time steps of 24 channels"):
        check_objects(list(rng.normal(size=(4, 3, 24))))
    assert check_objects(wrong, layout="channels-first").values.shape == (200, 3)
    assert check_objects(wrong, kind="series", layout="time-first").values.shape == (12, 50)
    with pytest.warns(UserWarning, match="1 time steps of 9 channels"):
        check_objects(list(rng.normal(size=(4, 1, 9))))  # one channel of nine steps, as some tools keep series
    pack_points(wrong)  # bags of three points have no time


@pytest.mark.parametrize("shape", [(6, 3, 4), (6, 4, 4), (6, 1, 4)])
def test_an_array_that_may_have_channels_before_time_is_asked_about(shape):
    X, y = np.random.default_rng(0).normal(size=shape), [0, 1] * 3
    for model in (recipes.series(n_components=2, n_states=2), recipes.fisher_svm(1), HMMEstimator(1)):
        with pytest.raises(ValueError, match=r"read as \(n, time, channels\).*np\.swapaxes\(X, 1, 2\).*list\(X\)"):
            model.fit(X, y)
    packed = check_objects(list(X), kind="series")
    np.testing.assert_array_equal(packed.values, X.reshape(-1, shape[2]))
    for other in (np.swapaxes(X, 1, 2) if shape[1] < shape[2] else list(np.swapaxes(X, 1, 2)),):
        np.testing.assert_array_equal(check_objects(other).values, np.concatenate([x.T for x in X]))
    check_objects(X, layout="time-first")
    HMMEstimator(1).fit(list(X)).model_.log_prob(X)  # a fitted model knows its channels
    check_objects(X[:, :, :1])


# --- flags


@pytest.mark.parametrize("value", ["anything", "False", 1, None, np.array([True])])
def test_flags_are_true_or_false(value):
    hmm, texts, y = HMMEstimator(2, max_iter=1, tol=0), ["abab", "abb", "bba", "baa"], [0, 1, 0, 1]
    series = [[0.0, 1.0, 0.5], [1.0, 0.0, 2.0]]
    for kind in (FisherScore, StateSpace, Marginalized, LatentMeanMap):
        with pytest.raises(ValueError, match=rf"'per_class' parameter of {kind.__name__} must be True or False"):
            kind(hmm, per_class=value).fit(texts, y)
    cases = [
        (StateSpace(hmm), "transitions", texts),
        (StateSpace(hmm), "normalize", texts),
        (Marginalized(hmm), "normalize", texts),
        (genkern.TopScore(hmm), "standardize", texts),
        (genkern.TopScore(hmm), "constant", texts),
        (Windows(1), "normalize", series),
        (Windows(1), "circular", series),
        (Windows(1), "standardize", series),
        (genkern.Turns(), "circular", [np.ones((3, 2))]),
        (genkern.UnitTrace(), "center", np.eye(2)),
        (genkern.LogOddsWeights(), "binary", np.eye(4)),
        (Spectrum(1), "sparse", texts),
        (MarkovChainEstimator(1), "stationary", texts),
        (LDSEstimator(1), "stable", series),
        (genkern.SwitchingLDSEstimator(2, 1), "stable", series),
        (MultinomialEstimator(), "ordered", np.eye(2)),
        (genkern.CharacteristicFeatures(), "normalize", [genkern.Gaussian([0.0], 1.0)]),
        (genkern.ProposalFeatures(), "normalize", [genkern.Gaussian([0.0], 1.0)]),
    ]
    for estimator, name, X in cases:
        with pytest.raises(
            ValueError, match=rf"'{name}' parameter of {type(estimator).__name__}.* must be True or False"
        ):
            clone(estimator).set_params(**{name: value}).fit(X, y[: len(X)])
    with pytest.raises(ValueError, match="'ordered' parameter of Multinomial must be True or False"):
        Multinomial([0.5, 0.5], ordered=value)
    with pytest.raises(ValueError, match="'length' parameter of symbols, if not 'auto', must be True or False"):
        recipes.symbols(length=value)


def test_flags_of_arrays_are_flags():
    StateSpace(HMMEstimator(2, max_iter=1, tol=0), transitions=np.True_, per_class=np.bool_(False)).fit(TEXTS)


# --- nothing observed


def test_objects_without_any_value_are_named():
    gap = [np.nan, np.nan]
    series, said = [[1.0, 2.0], gap, [0.0, 3.0], gap], r"2 of 4 objects have nothing observed \(object 1, 3\)"
    for use in (
        HMMEstimator(2, max_iter=1, tol=0).fit,
        GaussianEstimator().fit,
        FitEach(HMMEstimator(1, max_iter=1, tol=0)).fit,
        check_objects,
        HMMEstimator(2, max_iter=1, tol=0).fit([[0.0, 1.0, 4.0]]).model_.log_prob,
        FisherScore(HMMEstimator(2, max_iter=1, tol=0)).fit([[0.0, 1.0, 4.0]]).transform,
    ):
        with pytest.warns(UserWarning, match=said):
            use(series)
    with pytest.warns(UserWarning, match="1 of 2 objects have nothing observed"):
        logs = HMMEstimator(2, CategoricalEstimator("dna"), max_iter=1, tol=0).fit(["ACGT", "NNN"]).model_
    with pytest.warns(UserWarning, match=r"7 of 7 objects have nothing observed \(object 0, 1, 2, 3, 4, \.\.\.\)"):
        np.testing.assert_allclose(logs.log_prob(["N-X"] * 7), 0.0, atol=1e-12)
    check_objects([[np.nan, 1.0], ["N", "A"][:0] or [2.0]])
    with pytest.warns(UserWarning, match="object 0"):
        table = pack_points(np.array([[np.nan, np.nan], [np.nan, 1.0]]))
    assert table.n_objects == 2

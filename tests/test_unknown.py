"""Symbols that training never saw are missing information: marginalised, with one warning; an error on request."""

import copy
import pickle
import tracemalloc
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

from genkern import (
    CategoricalEstimator,
    Channels,
    CrossFit,
    EmpiricalMeanMap,
    FisherScore,
    FitEach,
    Gram,
    HMMEstimator,
    LatentMeanMap,
    Marginalized,
    MarkovChainEstimator,
    MixtureEstimator,
    ModelLogOdds,
    PeriodicChainEstimator,
    PlugInClassifier,
    PositionalChainEstimator,
    PositionalSpectrum,
    ProbabilityProduct,
    Recode,
    RegionSpectrum,
    SiteEstimator,
    Spectrum,
    StateSpace,
    Store,
    TopScore,
    as_alphabet,
    check_objects,
    recipes,
)
from genkern.data.objects import infer_alphabet, pack_symbols
from genkern.preprocess.recode import reduced_alphabet

SYMBOLS = "abc"
LENGTH = 8
NEW = ["abzabcab", "abcabcab", "qzabccab"]  # of which z and q are new: three symbols in two objects
DECLARED = [text.translate(str.maketrans("zq", "??")) for text in NEW]
COUNTED = r"3 of 24 symbols, in 2 of 3 objects, are not in Alphabet\('abc'\) and count as missing: "
COUNTED += r"'z' \(object 0, position 2\), 'q' \(object 2, position 0\)\. .*unknown='error'"


def training(n=24):
    rng = np.random.default_rng(5)
    tables = [[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]]
    y = np.arange(n) % 2
    return ["".join(rng.choice(list(SYMBOLS), LENGTH, p=tables[label])) for label in y], y


X, Y = training()


def completions(text):
    """Return all texts in which every symbol outside the alphabet is one of it."""
    places = [SYMBOLS if symbol not in SYMBOLS else symbol for symbol in text]
    return ["".join(word) for word in product(*places)]


def dense(features):
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features)


def declared(estimator):
    """Return the same estimator with an alphabet in which "?" is declared missing."""
    alphabet = as_alphabet(SYMBOLS, missing="?")
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "alphabet"]
    if names:
        return clone(estimator).set_params(**dict.fromkeys(names, alphabet))
    name = next(name for name in estimator.get_params() if name.endswith("emission"))
    return clone(estimator).set_params(**{name: CategoricalEstimator(alphabet)})


MODELS = [
    HMMEstimator(2, max_iter=20, tol=0),
    MarkovChainEstimator(0),
    MarkovChainEstimator(2, backoff=2.0),
    PeriodicChainEstimator(1, 2, max_iter=20, tol=0),
    PositionalChainEstimator(1),
    CategoricalEstimator(),
    SiteEstimator(),
    MixtureEstimator(2, "categorical", max_iter=20, tol=0),
]


@pytest.mark.parametrize("estimator", MODELS, ids=lambda e: type(e).__name__)
def test_likelihood_is_the_sum_over_what_an_unknown_symbol_may_be(estimator):
    model = clone(estimator).fit(X).model_
    with pytest.warns(UserWarning, match=COUNTED) as caught:
        logs = model.log_prob(NEW)
    assert len(caught) == 1
    sums = [logsumexp(model.log_prob(completions(text))) for text in NEW]
    np.testing.assert_allclose(logs, sums, rtol=1e-10)


@pytest.mark.parametrize("estimator", MODELS, ids=lambda e: type(e).__name__)
def test_posterior_of_classes_is_that_of_the_sums(estimator):
    learner = PlugInClassifier(clone(estimator)).fit(X, Y)
    with pytest.warns(UserWarning, match=COUNTED) as caught:
        shares = learner.predict_proba(NEW)
    assert len(caught) == 1
    joint = np.array([[logsumexp(model.log_prob(completions(text))) for model in learner.models_] for text in NEW])
    joint += np.log(learner.priors_)
    np.testing.assert_allclose(shares, np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), rtol=1e-8)


@pytest.mark.parametrize(
    "embedding",
    [
        FisherScore(HMMEstimator(2, max_iter=10, tol=0), information="identity"),
        FisherScore(MarkovChainEstimator(1)),
        FisherScore(SiteEstimator()),
        StateSpace(HMMEstimator(2, max_iter=10, tol=0), transitions=True),
        Marginalized(HMMEstimator(2, max_iter=10, tol=0)),
    ],
    ids=lambda e: f"{type(e).__name__}-{type(e.estimator).__name__}",
)
def test_features_of_posteriors_are_expectations_over_completions(embedding):
    fitted = clone(embedding).fit(X)
    with pytest.warns(UserWarning, match=COUNTED) as caught:
        features = fitted.transform(NEW)
    assert len(caught) == 1
    for text, row in zip(NEW, features):
        whole = completions(text)
        logs = fitted.model_.log_prob(whole)
        shares = np.exp(logs - logsumexp(logs))
        np.testing.assert_allclose(row, shares @ fitted.transform(whole), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "embedding",
    [
        Spectrum(1),
        Spectrum(3),
        Spectrum(2, sparse=True),
        Spectrum(offsets=(0, 2), normalize="frequency"),
        PositionalSpectrum((1, 2)),
        RegionSpectrum((1, 2), 2),
        EmpiricalMeanMap(1),
        EmpiricalMeanMap(2, method="sparse"),
    ],
    ids=str,
)
def test_words_are_shared_among_what_they_may_spell(embedding):
    fitted = clone(embedding).fit(X)
    with pytest.warns(UserWarning, match=COUNTED) as caught:
        features = dense(fitted.transform(NEW))
    assert len(caught) == 1
    means = [dense(fitted.transform(completions(text))).mean(axis=0) for text in NEW]
    np.testing.assert_allclose(features, means, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "embedding",
    [
        TopScore(HMMEstimator(2, max_iter=10, tol=0)),
        LatentMeanMap(HMMEstimator(2, max_iter=10, tol=0)),
        Marginalized(HMMEstimator(2, max_iter=10, tol=0), order=2),
        ModelLogOdds(MarkovChainEstimator(1)),
        FisherScore(HMMEstimator(2, max_iter=10, tol=0), per_class=True),
        Channels("one-hot"),
        Channels([1.0, 2.0, 7.0]),
        CrossFit(TopScore(MarkovChainEstimator(1)), cv=3),
    ],
    ids=lambda e: type(e).__name__,
)
def test_unknown_is_what_a_declared_missing_symbol_is(embedding):
    fitted, other = clone(embedding).fit(X, Y), declared(embedding).fit(X, Y)
    with pytest.warns(UserWarning, match=COUNTED):
        features = fitted.transform(NEW)
    for one, right in zip(features, other.transform(DECLARED)):
        np.testing.assert_allclose(dense(one), dense(right), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("estimator", [HMMEstimator(1), MarkovChainEstimator(1), SiteEstimator()])
def test_a_model_per_object_leaves_unknown_symbols_out(estimator):
    fitted, other = FitEach(clone(estimator)).fit(X), FitEach(declared(estimator)).fit(X)
    with pytest.warns(UserWarning, match=COUNTED) as caught:
        models = fitted.transform(NEW)
    assert len(caught) == 1
    for one, right in zip(models, other.transform(DECLARED)):
        np.testing.assert_allclose(one.parameters("raw"), right.parameters("raw"), rtol=1e-9, atol=1e-12)


RECIPES = {
    "fisher_svm": recipes.fisher_svm(2),
    "product_svm": recipes.product_svm(2),
    "meanmap_svm": recipes.meanmap_svm(2),
    "spectrum_svm": recipes.spectrum_svm(2),
    "symbols": recipes.symbols(n_lags=2, n_gaps=1),
    "aligned_symbols": recipes.aligned_symbols(ks=(1,), region_ks=(1,), orders=(0,), cv=2),
}


@pytest.mark.parametrize("name", RECIPES)
def test_one_new_letter_stops_no_recipe(name):
    recipe = clone(RECIPES[name]).fit(X, Y)
    known = recipe.predict(NEW[1:2])
    with pytest.warns(UserWarning, match=COUNTED) as caught:
        labels = recipe.predict(NEW)
    assert len(caught) == 1, "once, however many steps read the objects"
    assert labels.shape == (3,)
    assert labels[1] == known[0]


@pytest.mark.parametrize(
    ("recipe", "objects"),
    [
        (recipes.spectrum_svm(2, unknown="error"), NEW),
        (recipes.symbols(n_lags=2, n_gaps=1, unknown="error"), NEW),
        (recipes.aligned_symbols(ks=(1,), region_ks=(1,), orders=(), cv=2, unknown="error"), NEW),
    ],
)
def test_recipes_refuse_on_request(recipe, objects):
    recipe.fit(X, Y)
    with pytest.raises(ValueError, match=r"object 0, position 2: the symbol 'z' is not in"):
        recipe.predict(objects)


def test_contours_take_other_codes_on_request():
    shapes = ["0" * a + "2" * b + "4" * a + "6" * b for a, b in [(9, 9), (10, 10), (11, 11), (16, 4), (17, 5), (18, 5)]]
    labels = [0, 0, 0, 1, 1, 1]
    strict = recipes.contours(n_components=2, n_states=2).fit(shapes, labels)
    with pytest.raises(ValueError, match="the symbol 'x' is not in"):
        strict.predict([shapes[0].replace("02", "x2")])
    lenient = recipes.contours(n_components=2, n_states=2, unknown="missing").fit(shapes, labels)
    with pytest.warns(UserWarning, match="1 of 36 symbols, in 1 of 1 objects"):
        assert lenient.predict([shapes[0].replace("02", "x2")]).shape == (1,)


# --- who decides


ALPHABETS = [
    CategoricalEstimator(),
    SiteEstimator(),
    MarkovChainEstimator(1),
    PeriodicChainEstimator(1, 2),
    PositionalChainEstimator(1),
    Spectrum(2),
    PositionalSpectrum((1,)),
    RegionSpectrum((1,)),
    EmpiricalMeanMap(1),
    Channels("one-hot"),
]


def use(fitted, objects):
    return fitted.transform(objects) if hasattr(fitted, "transform") else fitted.model_.log_prob(objects)


@pytest.mark.parametrize("estimator", ALPHABETS, ids=lambda e: type(e).__name__)
def test_named_alphabets_and_requests_decide(estimator):
    for settings in ({"alphabet": SYMBOLS}, {"unknown": "error"}, {"alphabet": as_alphabet(SYMBOLS, unknown="error")}):
        strict = clone(estimator).set_params(**settings).fit(X)
        with pytest.raises(ValueError, match=r"'z' is not in Alphabet\('abc'\).*unknown='missing'"):
            use(strict, NEW)
    inferred = clone(estimator).fit(X)
    for settings in ({"unknown": "missing"}, {"alphabet": as_alphabet(SYMBOLS, unknown="missing")}):
        lenient = clone(estimator).set_params(alphabet=SYMBOLS).set_params(**settings).fit(X)
        with pytest.warns(UserWarning, match=COUNTED):
            results = [use(fitted, NEW) for fitted in (lenient, inferred)]
        for one, right in zip(*map(list, results)):
            np.testing.assert_array_equal(dense(one), dense(right))
    with pytest.raises(ValueError, match=r"'unknown' parameter .* must be one of 'missing', 'error'. Got 'drop'"):
        clone(estimator).set_params(unknown="drop").fit(X)


def test_recoded_unknown_symbols_stay_unknown():
    with pytest.raises(ValueError, match="the symbol 'z' is not in"):
        Recode("ab c").fit(X).transform(NEW)
    recode = Recode("ab c", unknown="missing").fit(X)
    with pytest.warns(UserWarning, match="1 of 4 symbols"):
        texts = recode.transform(["abzc"])
    alphabet = reduced_alphabet("ab c", unknown="missing")
    assert pack_symbols(texts, alphabet).values.tolist() == [0, 0, alphabet.missing_code, 1]
    counts = Spectrum(1, alphabet).fit_transform(texts)
    np.testing.assert_allclose(counts, [[2.5, 1.5]])


def test_integers_tokens_and_gaps_are_unknown_too():
    model = MarkovChainEstimator(0).fit([[3, 120], [240, 3, 3]]).model_
    assert model.alphabet.symbols == (3, 120, 240)
    with pytest.warns(UserWarning, match=r"2 of 4 symbols.*7 \(object 0, position 1\), 500 \(object 1, position 0\)"):
        logs = model.log_prob([[3, 7], np.array([500, 3])])
    np.testing.assert_allclose(logs, model.log_prob([[3], [3]]), rtol=1e-12)
    words = MarkovChainEstimator(0).fit([["up", "down"], ["up"]]).model_
    with pytest.warns(UserWarning, match=r"2 of 3 symbols.*'left' \(object 0, position 1\), None \(object 0"):
        logs = words.log_prob([["up", "left", None]])
    np.testing.assert_allclose(logs, words.log_prob([["up"]]), rtol=1e-12)
    many = [f"new{i}" for i in range(9)]
    with pytest.warns(UserWarning, match=r"9 of 10 symbols.*'new4' \(object 0, position 5\) and 4 others\."):
        words.log_prob([["up", *many]])


@pytest.mark.parametrize(
    ("train", "objects", "match"),
    [
        (["ab"], [[0, 1]], "object 0, position 0: the symbol 0 is not in"),
        ([[0, 1]], ["ab"], "object 0, position 0: the symbol 'a' is not in"),
        ([["up", "down"]], ["up"], "object 0, position 0: the symbol 'u' is not in"),
        ([[0, 1]], [[0.0, 0.5]], "object 0, position 1: 0.5 is not a symbol"),
        ([["up", "down"]], [["up", 3]], "object 0, position 1: the symbol 3 is not in"),
        (["ab"], [["a", "ab"]], "object 0, position 1: the symbol 'ab' is not in"),
    ],
)
def test_another_kind_of_data_is_no_unknown_symbol(train, objects, match):
    model = MarkovChainEstimator(0).fit(train).model_
    with pytest.raises(ValueError, match=match):
        model.log_prob(objects)


# --- folds, clones, digests


def rare_data():
    texts, labels = training()
    texts[3] = "abdabcab"  # the only d: it is missing from all training parts but one
    return texts, labels


@pytest.mark.parametrize(
    "learner",
    [
        PlugInClassifier(HMMEstimator(2, max_iter=10, tol=0)),
        make_pipeline(Spectrum(2), Normalizer(), LinearSVC()),
        make_pipeline(FisherScore(MarkovChainEstimator(1)), LinearSVC()),
        recipes.product_svm(2),
    ],
    ids=["plugin", "spectrum", "fisher", "product"],
)
def test_folds_without_a_symbol(learner):
    texts, labels = rare_data()
    folds = KFold(4)
    with pytest.warns(UserWarning, match=r"1 of 48 symbols, in 1 of 6 objects, are not in Alphabet\('abc'\)") as caught:
        scores = cross_val_score(learner, texts, labels, cv=folds, error_score="raise")
    assert len({str(warning.message) for warning in caught}) == 1
    assert np.isfinite(scores).all()


def test_unknown_is_a_parameter_of_grids():
    texts, labels = rare_data()
    pipeline = make_pipeline(Spectrum(2), Normalizer(), LinearSVC())
    search = GridSearchCV(pipeline, {"spectrum__unknown": [None, "missing"]}, cv=KFold(4), error_score="raise")
    with pytest.warns(UserWarning, match="count as missing"):
        search.fit(texts, labels)
    assert len(set(search.cv_results_["mean_test_score"])) == 1
    with pytest.raises(ValueError, match="the symbol 'd' is not in"):
        cross_val_predict(clone(pipeline).set_params(spectrum__unknown="error"), texts, labels, cv=KFold(4))


def test_alphabets_keep_what_they_do_with_unknown_symbols():
    alphabet = infer_alphabet(X)
    assert alphabet.unknown == "missing"
    assert alphabet == as_alphabet(SYMBOLS)
    assert alphabet.digest == as_alphabet(SYMBOLS).digest
    for other in (copy.deepcopy(alphabet), pickle.loads(pickle.dumps(alphabet)), as_alphabet(alphabet)):
        assert other.unknown == "missing"
    assert as_alphabet(alphabet, unknown="error").unknown == "error"
    assert as_alphabet(alphabet, missing="?").unknown == "missing"
    assert as_alphabet("dna").unknown == "error"
    with pytest.warns(UserWarning, match="2 of 3 symbols"):
        assert as_alphabet("dna", unknown="missing").encode("AZ!").tolist() == [0, 14, 14]
    model = MarkovChainEstimator(1).fit(X).model_
    assert model == MarkovChainEstimator(1, alphabet=SYMBOLS).fit(X).model_
    assert pickle.loads(pickle.dumps(model)).alphabet.unknown == "missing"


def test_models_of_both_kinds_can_be_compared():
    models = [FitEach(MarkovChainEstimator(1, alphabet=a)).fit(X).transform(X[:2]) for a in (None, SYMBOLS)]
    kernel = ProbabilityProduct(0.5, length=4).normalized()
    np.testing.assert_allclose(kernel(models[0], models[1]), kernel(models[0]), rtol=1e-12)
    Gram(kernel).fit_transform(models[0] + models[1])


def test_stores_tell_both_kinds_apart():
    store = Store()
    for alphabet, right in ((SYMBOLS, "error"), (None, "missing")):
        models = FitEach(MarkovChainEstimator(1, alphabet=alphabet), store).fit(X).transform(X)
        assert {model.alphabet.unknown for model in models} == {right}


def test_packed_objects_carry_unknown_symbols():
    known = check_objects(X)
    with pytest.warns(UserWarning, match=COUNTED):
        packed = pack_symbols(NEW, known.alphabet)
    model = MarkovChainEstimator(1).fit(known).model_
    assert model.alphabet.unknown == "missing"
    with pytest.warns(UserWarning, match=COUNTED):
        expected = model.log_prob(NEW)
    np.testing.assert_array_equal(model.log_prob(packed), expected)
    assert packed.objects() == [text.translate(str.maketrans("zq", "\ufffd\ufffd")) for text in NEW]
    strict = MarkovChainEstimator(1, alphabet=SYMBOLS).fit(X).model_
    with pytest.raises(ValueError, match="object 0, position 2 was unknown when it was packed"):
        strict.log_prob(packed)
    np.testing.assert_array_equal(strict.log_prob(known), model.log_prob(known))


def test_an_object_of_unknown_symbols_alone_tells_nothing():
    learner = PlugInClassifier(MarkovChainEstimator(1)).fit(X, Y)
    with pytest.warns(UserWarning, match=r"count as missing|nothing observed \(object 0\)") as caught:
        shares = learner.predict_proba(["zzz", "abc"])
    assert len(caught) == 2
    np.testing.assert_allclose(shares[0], learner.priors_, rtol=1e-12)


# --- cost


def test_unknown_symbols_of_large_vocabularies_take_no_square():
    words = [f"word{i}" for i in range(4000)]
    hmm = HMMEstimator(2, CategoricalEstimator(), max_iter=1, tol=0)
    for estimator in (CategoricalEstimator(), hmm, Spectrum(1), Spectrum(2), Marginalized(hmm), EmpiricalMeanMap(0)):
        fitted = estimator.fit([words, words[::-1]])
        tracemalloc.start()
        with pytest.warns(UserWarning, match="1 of 3 symbols"):
            use(fitted, [["word1", "new", "word2"]])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6, "a square of 4000 numbers has 128 MB"


def test_words_with_too_many_spellings_are_left_out():
    words = [f"word{i}" for i in range(70)]
    spectrum = Spectrum(2, sparse=True).fit([words])
    with pytest.warns(UserWarning, match="3 of 6 symbols"):
        counts = spectrum.transform([["word1", "new", "word2", "new", "newer", "word3"]])
    np.testing.assert_allclose(counts.sum(), 4.0)  # of five pairs that of two new ones may spell 4900 words
    strict = Spectrum(2, as_alphabet(words, missing="?"), sparse=True).fit([words])
    with pytest.raises(ValueError, match="may spell more than 4096 words"):
        strict.transform([["word1", "?", "?"]])

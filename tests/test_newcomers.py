"""What new users meet first: names that are not ours, too few objects, one class, words for alphabets, own models."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import genkern
from genkern import recipes
from genkern.models.hmm.names import OURS

DNA = ["ACGTACGTAA", "AACCGGTTAC", "GGTTACGTAC"]
SERIES = [np.sin(np.arange(60.0) / (2 + i)) for i in range(3)]
PAGES = ["red green blue words", "green blue words here", "here are other words"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("FisherKernel", "FisherScore"), ("TOPKernel", "TopScore"), ("GMM", "MixtureEstimator"),
     ("gmm", "MixtureEstimator"), ("HMMEstimater", "HMMEstimator"), ("spectrum", "Spectrum"), ("hmm", "HMM")],
)  # fmt: skip
def test_an_unknown_name_tells_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(
        AttributeError, match=rf"module 'genkern' has no attribute '{name}'; did you mean .*\b{meant}\b"
    ):
        getattr(genkern, name)
    assert not hasattr(genkern, name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("symbol", "mean symbols"), ("time_series", "mean series"), ("xyz", "there are .*aligned_symbols")],
)
def test_an_unknown_recipe_tells_those_there_are(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=f"'genkern.recipes' has no attribute '{name}'.*{hint}"):
        getattr(recipes, name)


@pytest.mark.parametrize(
    ("word", "meant"), [("aminoacids", "protein"), ("peptides", "protein"), ("nucleotides", "dna")]
)
def test_a_word_that_is_no_alphabet(word: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"'{word}' is no name of an alphabet.*'rna'.*Did you mean '{meant}'"):
        recipes.symbols(word).fit(DNA * 3, [0, 1, 0] * 3)


@pytest.mark.parametrize("alphabet", [None, "dna"])
def test_numbers_are_no_symbols(alphabet: str | None) -> None:
    with pytest.raises(ValueError, match=r"object \d.*is not a symbol.*recipes.series"):
        recipes.symbols(alphabet).fit([np.linspace(0.1, 0.9, 7)] * 9, [0, 1, 0] * 3)


RECIPES = [
    (recipes.symbols, DNA),
    (lambda: recipes.symbols("dna"), DNA),
    (recipes.aligned_symbols, DNA),
    (recipes.fisher_svm, DNA),
    (recipes.homology, DNA),
    (recipes.product_svm, DNA),
    (recipes.meanmap_svm, DNA),
    (recipes.spectrum_svm, DNA),
    (recipes.text, PAGES),
    (lambda: recipes.series(n_components=2, n_states=2), SERIES),
    (lambda: recipes.points(n_components=2), SERIES),
]
NAMES = [
    "symbols",
    "dna",
    "aligned",
    "fisher",
    "homology",
    "product",
    "meanmap",
    "spectrum",
    "text",
    "series",
    "points",
]


@pytest.mark.parametrize(("recipe", "X"), RECIPES, ids=NAMES)
def test_one_class_is_refused_by_every_recipe(recipe, X: list) -> None:
    X = [x.reshape(-1, 1) for x in X] if isinstance(X[0], np.ndarray) else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"at least 2 classes. Got one class only: 'exon', for all 12 objects"):
            recipe().fit(list(X) * 4, ["exon"] * 12)


@pytest.mark.parametrize("make", [lambda: recipes.symbols("dna"), recipes.aligned_symbols, recipes.text])
def test_fewer_objects_than_folds(make) -> None:
    X = PAGES if make is recipes.text else DNA
    with pytest.raises(ValueError, match=r"folds.*Got 4 objects, at most 2 of a class.*[Gg]ive more objects"):
        make().fit([*X, X[0]], [0, 0, 1, 1])


def test_fewer_objects_than_folds_of_a_learner() -> None:
    with pytest.raises(ValueError, match="KernelSVMClassifierCV: 5 folds need 5 objects"):
        genkern.KernelSVMClassifierCV().fit(np.eye(3), [0, 0, 1])


class Own:
    def log_prob(self, X: object) -> None: ...

    def sample(self, n: int) -> None: ...


def test_own_models_are_told_about_adapt() -> None:
    for compare in (genkern.ProbabilityProduct(), genkern.MeanMap()):
        with pytest.raises(TypeError, match=r"genkern.adapt\(model\)"):
            compare([Own(), Own()])
    with pytest.raises(TypeError, match=r"genkern.adapt\(model\)"):
        genkern.FisherScore(Own()).fit(DNA)


@pytest.mark.parametrize(
    ("recipe", "X"),
    [
        (lambda: recipes.symbols("dna"), DNA),
        (lambda: recipes.aligned_symbols(alphabet="dna"), DNA),
        (recipes.text, PAGES),
    ],
)
def test_a_class_of_one_object_is_named_with_its_count_and_a_remedy(recipe: object, X: list[str]) -> None:
    objects = [f"{x[i:]}{x[:i]}" if " " not in x else f"{x} {'new ' * i}" for x in X[:2] for i in range(6)] + X[2:]
    y = ["one"] * 6 + ["two"] * 6 + ["rare"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if X is DNA:  # where objects train models that score others
            with pytest.raises(ValueError, match=r"no objects of class 'rare' .*, and 1 in all\. Expected at least 2"):
                recipe().fit(objects, y)  # type: ignore[operator]
        else:
            recipe().fit(objects, y)  # type: ignore[operator]
    told = [str(one.message) for one in caught if "fewer than the 5 folds" in str(one.message)]
    assert len(told) == 1
    assert "class 'rare' has 1 object, " in told[0]
    assert told[0].endswith("Give more objects of it, or leave the class out.")
    assert not any("least populated" in str(one.message) for one in caught)
    with pytest.raises(ValueError, match=r"class rare has 1\. Give more objects of it, or leave the class out"):
        genkern.evaluate(objects, y, {"r": recipe()}, folds=2)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"class a has 1, and 2 more have fewer than 2\. Give more objects of them"):
        genkern.evaluate(objects[:3], ["a", "b", "c"], {"r": recipe()}, folds=2)  # type: ignore[operator]
    with pytest.raises(ValueError, match=r"class rare has 3\. Use at most 3 folds, or give more objects of it"):
        genkern.evaluate(objects * 3, y * 3, {"r": recipe()}, folds=5)  # type: ignore[operator]


def test_what_is_no_dict_of_recipes_is_told() -> None:
    for given, came in (("series", "str"), (recipes.spectrum_svm(2), "Recipe"), ([1], "list")):
        with pytest.raises(
            TypeError, match=f"evaluate: 'recipes' must be a dict.*Got {came}.*pass {{name: classifier}}"
        ):
            genkern.evaluate(DNA * 3, [0, 1, 0] * 3, given)
    with pytest.raises(TypeError, match=r"Got one string; read files by genkern.read\(path\)"):
        genkern.evaluate("sites.fa", [0, 1] * 4, {"words": recipes.spectrum_svm(2)})


@pytest.mark.parametrize("evaluated", [False, True])
def test_labels_of_several_types_and_lost_ones(evaluated: bool) -> None:
    """As arrays, 1 and "1" would be one class."""

    def fit(y: list) -> None:
        if evaluated:
            genkern.evaluate(DNA * 4, y, {"words": recipes.spectrum_svm(2)}, folds=2)
        else:
            recipes.spectrum_svm(2).fit(DNA * 4, y)

    with pytest.raises(TypeError, match=r"several types, 1 at index 0 and '1' at index 3; expected.*str\(label\)"):
        fit([1, 2, 1, "1"] * 3)
    for lost, told in ((None, "None"), (float("nan"), "NaN")):
        with pytest.raises(ValueError, match=rf"contains {told} at index 2 \(3 such in all\).*Leave these objects out"):
            fit(["a", "b", lost, "b"] * 3)


def test_missing_labels_of_pandas_are_told() -> None:
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(["a", pandas.NA, "b"] * 4, dtype="string")
    with pytest.raises(ValueError, match=r"contains NaN at index 1 \(4 such in all\)"):
        recipes.spectrum_svm(2).fit(DNA * 4, y)


def test_the_first_number_that_is_no_symbol_is_named() -> None:
    X = [[0, 1, 2]] * 4 + [[0, 2.5, 1, 7.25]] + [[0.5, 1.5]] * 4
    with pytest.raises(ValueError, match=r"object 4, position 1: 2\.5 is not a symbol"):
        recipes.symbols().fit(X, [0, 1, 0] * 3)


def test_models_are_no_objects() -> None:
    models = [genkern.Gaussian([0.0], [1.0])] * 3
    for given in (models, [genkern.adapt(type("Own", (), {"log_prob": len, "sample": len})())] * 3):
        with pytest.raises(TypeError, match=r"object 0 .*Got a model.*ProbabilityProduct"):
            genkern.FisherScore(genkern.HMMEstimator(2)).fit(given)


def test_a_path_is_no_list_of_objects() -> None:
    with pytest.raises(TypeError, match=r"Got one string; put it into a list: \[X\]; a file is read by genkern.read"):
        recipes.spectrum_svm(2).fit("sites.fa", [0, 1, 0, 1])


@pytest.mark.parametrize("name", list(OURS))
def test_names_of_hmmlearn_tell_ours(name: str) -> None:
    """And what is told can be asked."""
    X = [np.random.default_rng(i).poisson(3.0, size=(20, 1)).astype(float) for i in range(3)]
    emission = {"lambdas_": "poisson", "weights_": genkern.MixtureEstimator(2, "gaussian")}.get(name, "gaussian")
    if name == "emissionprob_":
        X, emission = DNA, "categorical"
    fitted = genkern.HMMEstimator(2, emission=emission, max_iter=3, tol=0).fit(X)
    model = fitted.model_
    with pytest.raises(AttributeError, match=f"'HMM' object has no attribute '{name}'; here it is ") as told:
        getattr(model, name)
    asked = str(told.value).split("here it is ")[1]
    assert eval(f"model.{asked}", {"model": model, "X": X}) is not None
    if name != "score":
        with pytest.raises(AttributeError, match=f"'{name}'; here it is model_.{asked.split('(')[0]}"):
            getattr(fitted, name)
    assert not hasattr(model, "no_such_name")


def test_methods_in_the_guide_from_hmmlearn_are_there() -> None:
    guide = Path(__file__).parents[1] / "docs" / "guides" / "hmmlearn.md"
    asked = set(re.findall(r"`model\.(\w+)", guide.read_text("utf-8"))) - set(OURS)
    assert {"posterior", "simulate", "viterbi"} <= asked
    for name in asked:
        assert hasattr(genkern.HMM, name) or name == "transitions", name


@pytest.mark.parametrize("estimator", [genkern.HMMEstimator, genkern.MixtureEstimator])
def test_a_size_in_quotes_is_no_size(estimator: type) -> None:
    with pytest.raises(ValueError, match=r"must be an int >= 1, or one of .*'aic', 'bic'\. Got '3'"):
        estimator("3").fit([np.zeros((4, 1))])
    with pytest.raises(ValueError, match=r"must be an int >= 1\. Got 2\.5"):
        estimator(2.5).fit([np.zeros((4, 1))])


def test_recipes_that_are_not_called_are_told() -> None:
    with pytest.raises(
        TypeError, match=r"recipe 'words' must be a classifier\. Got spectrum_svm; call it: spectrum_svm"
    ):
        genkern.evaluate(DNA * 4, [0, 1] * 6, {"words": recipes.spectrum_svm})
    with pytest.raises(TypeError, match=r"recipe 'words' must be a classifier. Got str; pass an estimator"):
        genkern.evaluate(DNA * 4, [0, 1] * 6, {"words": "spectrum_svm"})


def test_a_dataset_is_no_list_of_objects() -> None:
    data = genkern.Dataset(DNA * 4, np.array([0, 1] * 6), kind="symbols")
    with pytest.raises(TypeError, match=r"Got Dataset; pass data.X, data.y"):
        genkern.evaluate(data, data.y, {"words": recipes.spectrum_svm(2)})
    with pytest.raises(TypeError, match=r"Got Dataset, of objects and labels; pass data.X"):
        recipes.spectrum_svm(2).fit(data, data.y)


def test_an_error_inside_of_an_own_model_has_its_name() -> None:
    class Own:
        mean = 0.0

        def log_prob(self, x: object) -> float:
            raise KeyError("table")

        def sample(self, n: int, rng: object) -> list:
            return []

    with pytest.raises(ValueError, match=r"Given object 0, it raised KeyError: 'table'; given two objects, it raised"):
        genkern.FisherScore(genkern.adapt(Own(), parameters=["mean"])).fit_transform(["a", "b"])

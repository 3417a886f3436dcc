"""Estimators in files: the same results bit by bit in another process, what is refused, and how files are written."""

from __future__ import annotations

import copy
import errno
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from cases_zoo import ZOO
from saving_attacks import file_of, parts_of
from saving_cases import BESIDE, COUNTS, DNA, LABELS, RECIPES, STRINGS, TABLE, THREE, TWO, results
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, LabelBinarizer, LabelEncoder
from sklearn.svm import SVC
from test_sklearn import CASES

import genkern
from genkern import (
    RBF,
    Diffusion,
    EmpiricalMean,
    FitEach,
    Hellinger,
    HMMEstimator,
    Laplace,
    LatentMean,
    Linear,
    LocalAlignment,
    MeanMap,
    On,
    Polynomial,
    ProbabilityProduct,
    Representations,
    SetBhattacharyya,
    Spectrum,
    Store,
    SymmetricKL,
    load,
    recipes,
    save,
)
from genkern.data.digests import make_key
from genkern.data.serialize import UnknownClassError, dumps
from genkern.saving import FormatError, ModelFileError, describe, files, register, registry
from genkern.saving.codec import Objects
from genkern.threads import one_blas_thread
from tests.checks import objects


def content(value):
    """Return the bytes of an object and of all that it holds."""
    return dumps(value, Objects())


def example(name):
    """Return a fitted estimator of the table of all of this package, and objects."""
    case = CASES[name]
    if case.kinds:
        X, y = objects(case.kinds[0])
    else:
        X, y = COUNTS, TWO
    estimator = case.make()
    if getattr(estimator, "kernel", None) == "precomputed":
        X = X @ X.T
    return estimator.fit(copy.deepcopy(X), y), X


def fit_one(parts):
    estimator, X, y = parts
    return clone(estimator).fit(copy.deepcopy(X), y), X


GROUPS = {
    "recipes": {name: (fit_one, parts) for name, parts in RECIPES.items()},
    "scikit-learn": {name: (fit_one, parts) for name, parts in BESIDE.items()},
    **{f"estimators {k}": {name: (example, name) for name in list(CASES)[k::4]} for k in range(4)},
}
ELSEWHERE = """
import json, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[2])
from saving_cases import results
from genkern import load
from genkern.data.digests import make_key
from genkern.data.serialize import dumps, loads
from genkern.saving.codec import Objects
from genkern.threads import one_blas_thread
found = {}
for path in Path(sys.argv[1]).glob("*.gk"):
    with one_blas_thread():
        said = results(load(path), loads(path.with_suffix(".x").read_bytes(), codec=Objects()))
    found[path.stem] = {name: make_key(dumps(value, Objects())) for name, value in said.items()}
print(json.dumps(found))
"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", GROUPS)
def test_results_are_the_same_in_another_process(group, tmp_path):
    expected = {}
    for i, (name, (make, argument)) in enumerate(GROUPS[group].items()):
        estimator, X = make(argument)
        save(estimator, tmp_path / f"{i}.gk")
        (tmp_path / f"{i}.x").write_bytes(content(X))
        assert content(load(tmp_path / f"{i}.gk")) == content(estimator), name
        with one_blas_thread():  # by two, matrix products may differ in the last bits
            said = results(estimator, copy.deepcopy(X))
        assert said, name
        expected[str(i)] = {key: make_key(content(value)) for key, value in said.items()}
    run = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(tmp_path), str(Path(__file__).parent)], capture_output=True, check=True
    )
    found = json.loads(run.stdout)
    names = list(GROUPS[group])
    assert [names[int(i)] for i in expected if found[i] != expected[i]] == []


def test_every_recipe_is_there():
    assert {name.split(" ")[0] for name in RECIPES} == {
        name for name in recipes.__all__ if name[0].islower() and name not in ("auto", "candidates")
    }


@pytest.mark.parametrize("name", ZOO)
def test_models(name, tmp_path):
    save(ZOO[name], tmp_path / "model")
    assert content(load(tmp_path / "model")) == content(ZOO[name])


KERNELS = [
    Linear() + RBF(0.5) * Polynomial(2, 1.0) ** 2,
    2.0 * RBF(0.1).normalized().exp(2.0),
    On("a", Linear()) + On("b", ProbabilityProduct(0.5, 3).normalized()),
    MeanMap(2.0, 5) + MeanMap(1.0, 5, kernel="laplace"),
    Laplace(0.3),
    Hellinger(4),
    SymmetricKL(1.0),
    Diffusion(0.3),
    EmpiricalMean(1, 2.0),
    LatentMean(),
    LocalAlignment(0.3, gap_open=8.0, logarithm=True),
    LocalAlignment(table=2.0 * np.eye(4) - 1.0, gap_open=np.inf, alphabet="dna").normalized(),
    SetBhattacharyya(),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels(kernel, tmp_path):
    save(kernel, tmp_path / "kernel")
    found = load(tmp_path / "kernel")
    assert repr(found) == repr(kernel)
    assert found.formula == kernel.formula
    assert content(found) == content(kernel)


def test_every_public_kernel_is_tried():
    public = {name for name in genkern.__all__ if isinstance(getattr(genkern, name), type)}
    kernels = {name for name in public if issubclass(getattr(genkern, name), genkern.Kernel)} - {"Kernel"}
    assert all(any(f"{name}(" in repr(kernel) for kernel in KERNELS) for name in kernels)


def test_views_and_other_things(tmp_path):
    X = Representations({"rows": np.eye(2), "words": ["ab", "b"], "laws": [ZOO["HMM of symbols"]] * 2})
    save(X, tmp_path / "views")
    assert content(load(tmp_path / "views")) == content(X)
    for labels in (THREE, np.array(["x", "y", None], dtype=object)[[0, 1, 1, 0]], np.array([True, False])):
        for encoder in (LabelBinarizer(), LabelEncoder()):
            save(encoder.fit(labels), tmp_path / "labels")
            assert load(tmp_path / "labels").classes_.tolist() == encoder.classes_.tolist()
    parts = [np.random.RandomState(3), np.random.default_rng(3), slice(1, None, 2), range(3), {2, 1}, frozenset("ab")]
    parts += [np.dtype("f4"), np.float32, int, np.ma.masked_array([1.0, 2.0], [True, False]), (1, [2.5, None, 1 << 80])]
    save(FunctionTransformer(kw_args={"parts": parts}), tmp_path / "parts")
    found = load(tmp_path / "parts").kw_args["parts"]
    assert content(found) == content(parts)
    assert found[0].normal() == parts[0].normal()
    assert found[1].normal() == parts[1].normal()


def test_unfitted_estimators_and_arrays_in_their_order(tmp_path):
    estimator = recipes.symbols("dna", random_state=np.random.RandomState(0))
    save(estimator, tmp_path / "new")
    assert content(load(tmp_path / "new")) == content(estimator)
    turned = FunctionTransformer(
        kw_args={"a": np.asfortranarray(np.ones((2, 3))), "b": np.ones((2, 3, 4)).swapaxes(0, 1)}
    )
    save(turned, tmp_path / "turned")
    found = load(tmp_path / "turned").kw_args
    assert found["a"].flags.f_contiguous
    assert found["b"].swapaxes(0, 1).flags.c_contiguous


# --- stores


def test_stores_are_saved_as_their_path(tmp_path):
    folder = tmp_path / "store"
    estimator = FitEach(HMMEstimator(1), store=Store(folder, 2**20)).fit(STRINGS)
    models = estimator.transform(STRINGS)
    save(estimator, tmp_path / "each")
    assert len(list((tmp_path / "each").read_bytes())) < 4000  # without entries
    found = load(tmp_path / "each")
    assert (found.store.path, found.store.max_bytes) == (folder, 2**20)
    assert found.transform(STRINGS) == models
    assert found.store.hits == len(set(STRINGS))


@pytest.mark.parametrize("trouble", ["gone", "open", "other things"])
def test_a_file_cannot_choose_where_a_store_writes(trouble, tmp_path):
    folder = tmp_path / "store"
    save(FitEach(HMMEstimator(1), store=Store(folder)), tmp_path / "each")
    folder.chmod(0o777 if trouble == "open" else 0o700)
    if trouble == "gone":
        folder.rmdir()
    if trouble == "other things":
        (folder / "authorized_keys").touch()
    with pytest.warns(UserWarning, match="keeps its results in memory"):
        found = load(tmp_path / "each")
    assert found.store.path is None
    assert folder.exists() == (trouble != "gone")


# --- what cannot be saved


def own(X):
    return X


class Own(BaseEstimator):
    def __init__(self, width=1):
        self.width = width

    def fit(self, X, y=None):
        self.mean_ = np.mean(X)
        return self


def nested():
    def inner(X):
        return X

    return inner


@pytest.mark.parametrize(
    ("estimator", "place"),
    [
        (make_pipeline(Linear(), FunctionTransformer(lambda X: X)), r"Pipeline\.steps\[1\]\[1\]\.func"),
        (FunctionTransformer(own), r"FunctionTransformer\.func .*test_saving\.own is not known.*saving\.register"),
        (make_pipeline(Own()), r"Pipeline\.steps\[0\]\[1\] .*test_saving\.Own is not known.*saving\.register"),
        (FunctionTransformer(kw_args={"a": [1, print]}), r"\.kw_args\['a'\]\[1\] "),
        (FunctionTransformer(kw_args={"a": open}), r"\.kw_args\['a'\] "),
        (FunctionTransformer(kw_args={"a": os}), r"\.kw_args\['a'\] .*module"),
        (FunctionTransformer(kw_args={"a": 1j}), r"\.kw_args\['a'\] .*complex"),
        (FunctionTransformer(kw_args={"a": np.zeros(2, complex)}), r"\.kw_args\['a'\] .*complex128"),
        (Spectrum(dtype=np.complex128), r"Spectrum\.dtype .*complex128"),
        (Pipeline([("a", Linear())], memory="cache"), r"Pipeline cannot be saved: memory='cache'"),
        (RBF(gamma=object()), r"RBF\.gamma .*builtins\.object"),
    ],
)
def test_what_cannot_be_saved_is_named_with_its_place(estimator, place, tmp_path):
    with pytest.raises(TypeError, match=rf"genkern\.save: .*{place}"):
        save(estimator, tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("thing", [3, "text", None, [1], lambda X: X, RBF, {"a": 1}])
def test_other_things_are_not_saved(thing, tmp_path):
    with pytest.raises(TypeError, match="expected an estimator, a kernel or a model"):
        save(thing, tmp_path / "none")


@pytest.mark.parametrize("summary", [3, "text", {1: 2}, {"a": lambda: 0}, {"a": {"b": object()}}])
def test_summaries_are_plain(summary, tmp_path):
    with pytest.raises(TypeError, match="summary"):
        save(RBF(), tmp_path / "none", summary=summary)


def test_own_classes_and_functions(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    assert register(own) is own
    assert register(Own) is Own
    save(make_pipeline(FunctionTransformer(own), Own(3)).fit(TABLE), tmp_path / "own")
    found = load(tmp_path / "own")
    assert found[0].func is own
    assert (found[1].width, found[1].mean_) == (3, TABLE.mean())
    registry._registered.clear()
    with pytest.raises(
        ModelFileError, match=r"test_saving\.own' is not known; import the module that registers it"
    ) as e:
        load(tmp_path / "own")
    assert isinstance(e.value.__cause__, UnknownClassError)
    for wrong in (lambda X: X, nested(), 3, dict, "text"):
        with pytest.raises(TypeError, match=r"saving\.register"):
            register(wrong)


# --- what a file says


def test_descriptions(tmp_path):
    summary = {"objects": 12, "classes": {"exon": 3}, "lengths": (3, 9), "seconds": 0.5, "date": "2026-01-01"}
    save(recipes.spectrum_svm(2, alphabet="dna").fit(DNA, ["exon", "intron"] * 6), tmp_path / "a.gk", summary=summary)
    found = describe(tmp_path / "a.gk")
    assert (found["format"], found["class"]) == (1, "genkern.recipes.recipe.Recipe")
    assert found["labels"] == ["exon", "intron"]
    assert found["alphabet"] == {"name": "dna", "symbols": list("ACGT")}
    assert found["summary"] == summary
    assert set(found["versions"]) == {"python", "genkern", "numpy", "scikit-learn", "scipy"}
    assert found["versions"]["genkern"] == genkern.__version__
    assert found["bytes"] == (tmp_path / "a.gk").stat().st_size
    save(RBF(), tmp_path / "b.gk")
    found = describe(tmp_path / "b.gk")
    assert (found["class"], found["labels"], found["alphabet"], found["summary"]) == ("genkern.RBF", None, None, None)


def test_a_description_needs_only_the_beginning_of_a_file(tmp_path):
    save(ZOO["HMM of symbols"], tmp_path / "a")
    whole = (tmp_path / "a").read_bytes()
    size = files.PREFIX.unpack_from(whole)[2]
    (tmp_path / "a").write_bytes(whole[: files.PREFIX.size + size])
    assert describe(tmp_path / "a")["class"] == "genkern.HMM"
    with pytest.raises(ModelFileError, match="description is that of another file"):
        load(tmp_path / "a")


def test_a_description_must_fit(tmp_path):
    save(RBF(1.0), tmp_path / "a")
    save(Linear(), tmp_path / "b")
    (one, _), (_, other) = parts_of(tmp_path / "a"), parts_of(tmp_path / "b")
    (tmp_path / "c").write_bytes(file_of(one, other))
    with pytest.raises(ModelFileError, match="description does not fit"):
        load(tmp_path / "c")


def test_other_versions_are_named_once(tmp_path, monkeypatch):
    made = LogisticRegression().fit(TABLE, TWO)
    with monkeypatch.context() as m:
        m.setattr(files, "_versions", lambda: {**dict.fromkeys(("python", *files.PACKAGES), "0.0.1")})
        save(make_pipeline(made, made), tmp_path / "old")
    with pytest.warns(UserWarning, match=r"old was saved with scikit-learn 0\.0\.1; here is [1-9]") as found:
        load(tmp_path / "old")
    assert len(found) == 1
    assert found[0].filename == __file__


def test_later_formats_say_what_to_do(tmp_path):
    save(RBF(), tmp_path / "a")
    content = bytearray((tmp_path / "a").read_bytes())
    content[8] = 7
    (tmp_path / "a").write_bytes(content)
    for read in (load, describe):
        with pytest.raises(
            FormatError, match=r"a cannot be read: it is of format 7, and genkern .* reads format 1"
        ) as e:
            read(tmp_path / "a")
        assert e.value.path == str(tmp_path / "a")


# --- writing


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    save(RBF(1.0), tmp_path / "a")
    before = (tmp_path / "a").read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"a cannot be written \(No space left on device\); the file that was there") as e:
        save(RBF(2.0), tmp_path / "a")
    assert e.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match=r"no file was made"):
        save(RBF(2.0), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_leaves_the_old_file(tmp_path):
    resource = pytest.importorskip("resource")
    assert resource
    code = (
        "import resource, sys; from genkern import RBF, Gaussian, load, save; import numpy as np\n"
        "save(RBF(1.0), sys.argv[1]); resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: save(Gaussian(np.zeros(9999), np.ones(9999)), sys.argv[1])\n"
        "except OSError as error: print(error)\n"
        "print(load(sys.argv[1]))"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], capture_output=True, text=True, check=True)
    assert "a cannot be written (File too large); the file that was there is as it was." in run.stdout
    assert run.stdout.endswith("RBF(gamma=1.0)\n") or "RBF(" in run.stdout.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_modes_and_links(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real" / "a")
    old = os.umask(0o027)
    try:
        save(RBF(), tmp_path / "link")
    finally:
        os.umask(old)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").stat().st_mode & 0o777 == 0o640
    (tmp_path / "real" / "a").chmod(0o600)
    save(RBF(2.0), str(tmp_path / "link"))
    assert (tmp_path / "real" / "a").stat().st_mode & 0o777 == 0o600
    assert load(tmp_path / "link").gamma == 2.0


def test_wrong_places(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist; make it first"):
        save(RBF(), tmp_path / "none" / "a")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(RBF(), tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(ModelFileError, match="it is not a file"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="it is not a file"):
        load(tmp_path / "pipe")


# --- the closed list


def test_every_estimator_of_the_package_is_listed():
    for module in pkgutil.walk_packages(genkern.__path__, "genkern."):
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            own = cls.__module__.startswith("genkern.") and issubclass(cls, BaseEstimator)
            if own and not inspect.isabstract(cls) and not cls.__name__.startswith("_"):
                known = registry.name_of(cls) is not None
                base = any(cls in other.__mro__[1:] for other in _all_estimators())
                assert known or base, cls


def _all_estimators():
    return {cls for name in registry.listed() if isinstance(cls := registry.find(name), type)}


def test_every_listed_name_is_that_of_something():
    for name in registry.listed():
        found = registry.find(name)
        assert registry.name_of(found) is not None or not hasattr(found, "__name__"), name


def test_nothing_is_fitted_by_loading(tmp_path, monkeypatch):
    estimator = make_pipeline(Spectrum(2), SVC(kernel="linear")).fit(STRINGS, LABELS)
    save(estimator, tmp_path / "a")
    for cls in (Spectrum, SVC, Pipeline):
        monkeypatch.setattr(cls, "fit", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (load(tmp_path / "a").predict(STRINGS) == estimator.predict(STRINGS)).all()

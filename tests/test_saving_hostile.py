"""Files that were made to do harm: code planted in every field, wrong sizes for compiled code, any change at all."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from saving_attacks import Raw, file_of, forge, parse, parts_of, plants, signed
from saving_cases import BESIDE, RECIPES
from sklearn.base import clone

import genkern
from genkern import RBF, EmpiricalMeanMap, PositionalSpectrum, RegionSpectrum, Spectrum, load, save
from genkern.data.serialize import UnreadableError, dumps, loads
from genkern.saving import ModelFileError, describe
from genkern.saving.codec import Objects
from genkern.saving.files import FORMAT, MAGIC, PREFIX

HERE = Path(__file__).parent
ALL = {**RECIPES, **BESIDE}


def saved(name, folder):
    """Save a fitted estimator, and objects beside it."""
    estimator, X, y = ALL[name]
    path = folder / f"{name.replace(' ', '_')}.gk"
    save(clone(estimator).fit(X, y), path)
    path.with_suffix(".x").write_bytes(dumps(X, Objects()))
    return path


def run_attacks(folder, seed, count):
    """Attack all files of a folder in another process, which may crash; return what it says."""
    command = [
        sys.executable,
        "-X",
        "faulthandler",
        str(HERE / "saving_attacks.py"),
        str(folder),
        str(seed),
        str(count),
    ]
    (folder / "planted.py").write_text(f"import pathlib; pathlib.Path({str(folder / 'canary')!r}).touch()\n")
    paths = os.pathsep.join([str(Path(genkern.__file__).parents[1]), str(HERE), str(folder)])
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    assert not (folder / "canary").exists()
    return run.stdout


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["spectrum_svm", "SVC"])
def test_code_planted_in_every_field_does_not_run(name, tmp_path):
    saved(name, tmp_path)
    assert "'refused'" in run_attacks(tmp_path, 0, 0)


@pytest.mark.filterwarnings("ignore")
def test_changed_files_are_refused_or_answer_without_a_crash(tmp_path):
    for name in ("SVC", "SVC, sparse", "neighbours by a tree", "text", "spectrum_svm", "product_svm"):
        saved(name, tmp_path)
    said = run_attacks(tmp_path, 1, 25)
    assert said.count("'refused'") == 6


def test_the_attacks_work(tmp_path, monkeypatch):
    """What plants code would be seen: a pickle in a field, were it loaded, makes the canary."""
    canary = tmp_path / "canary"
    (bomb,) = [plant for plant in plants(canary) if isinstance(plant, Raw) and plant.tag == "bytes"]
    pickle.loads(bomb.data)
    assert canary.exists()


# --- one by one


def node(name, /, **fields):
    return {"object": [name, fields]}


ESTIMATORS = {
    "a function of os": node("os.system", command="true"),
    "a builtin": node("builtins.eval", source="1"),
    "a function with fields": node("numpy.absolute", x=1),
    "a module": node("genkern.recipes"),
    "a function of ours": node("genkern.explain"),
    "a private function": node("genkern.saving.files.load", path="x"),
    "a store by its class": node("genkern.Store", path="/tmp/x"),
    "a model by its class": node("genkern.Gaussian", mean=0.0, cov=1.0),
    "statistics": node("genkern.Statistics", model=1, log_prob=1, lengths=1, blocks=1),
    "an abstract class": node("genkern.Kernel"),
    "a number for a name": {"object": [3, {}]},
    "a list for a name": {"object": [["os"], {}]},
    "fields as a list": {"object": ["genkern.RBF", []]},
    "an unknown parameter": node("genkern.RBF", gamma=1.0, other=1),
    "a fitted parameter": node("genkern.RBF", gamma=1.0, predict_=1, fit=1),
    "a class": node("genkern.RBF", gamma=1.0, __class__="x"),
    "a dict": node("genkern.RBF", gamma=1.0, __dict__={"dict": []}),
    "a method": node("genkern.RBF", gamma=1.0, get_params=1),
    "a private method": node("genkern.RBF", gamma=1.0, _values=1),
    "a property": node("genkern.RBF", gamma=1.0, formula=1),
    "a function for an attribute": node("genkern.RBF", gamma=1.0, x_=node("numpy.absolute")),
    "a class for an attribute": node("genkern.RBF", gamma=1.0, x_=node("numpy.float64")),
    "memory": node("sklearn.pipeline.Pipeline", steps=[], memory="/tmp"),
    "many threads": node("genkern.Gram", kernel=None, n_jobs=10**6),
    "a slice of text": node("slice", start="a", stop=None, step=None),
    "a range without steps": node("range", start=0, stop=1, step=0),
    "a set of a string": node("set", items="abc"),
    "a set of lists": node("set", items=[[1]]),
    "objects that are too few": node("objects", shape=[10**9], items=[1]),
    "objects of negative number": node("objects", shape=[-1, -1], items=[1]),
    "a type of objects": node("dtype", name="|O"),
    "a type of records": node("dtype", name="f8,f8"),
    "a bunch of dunders": node("Bunch", __class__=1),
    "a store of no size": node("Store", path=None, max_bytes=-1),
    "a store at a number": node("Store", path=3, max_bytes=9),
    "views of nothing": node("Representations", views=[]),
    "a layout of other fields": node("genkern.features.score_blocks.Layout", names=[], x=1),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_hostile_nodes_are_refused(name):
    before = set(sys.modules)
    with pytest.raises(UnreadableError):
        loads(forge(ESTIMATORS[name]), codec=Objects())
    assert {
        module for module in set(sys.modules) - before if not module.startswith(("genkern", "sklearn", "scipy"))
    } == set()


def raw(*numbers, dtype="<i8"):
    return Raw("array", [dtype, [len(numbers)]], np.array(numbers, dtype).tobytes())


KEYS = Raw("array", ["<u4", [624]], bytes(4 * 624))


@pytest.mark.parametrize(
    "tree",
    [
        node("csr_matrix", shape=[1, 2], data=raw(1.0, dtype="<f8"), indices=raw(2), indptr=raw(0, 1)),
        node("csr_matrix", shape=[1, 2], data=raw(1.0, dtype="<f8"), indices=raw(-1), indptr=raw(0, 1)),
        node("csr_matrix", shape=[1, 2], data=raw(1.0, dtype="<f8"), indices=raw(0), indptr=raw(0, 2**40)),
        node("csr_matrix", shape=[2, 2], data=raw(1.0, dtype="<f8"), indices=raw(0), indptr=raw(0, 5, 1)),
        node("csr_matrix", shape=[2**40, 2], data=raw(1.0, dtype="<f8"), indices=raw(0), indptr=raw(0, 1)),
        node("csr_matrix", shape=[1, -2], data=raw(1.0, dtype="<f8"), indices=raw(0), indptr=raw(0, 1)),
        node("csc_array", shape=[2, 1], data=raw(1.0, dtype="<f8"), indices=raw(7), indptr=raw(0, 1)),
        node("csr_array", shape=[1, 2], data=[1.0], indices=raw(0), indptr=raw(0, 1)),
        node("RandomState", keys=KEYS, position=625, has_gauss=0, gauss=0.0),
        node("RandomState", keys=KEYS, position=-1, has_gauss=0, gauss=0.0),
        node("RandomState", keys=raw(1, 2), position=1, has_gauss=0, gauss=0.0),
        node("Generator", state=2**128, inc=1, has_uint32=0, uinteger=0),
        node("Generator", state=1, inc=-1, has_uint32=0, uinteger=0),
        node("masked", data=raw(1, 2), mask=raw(1, 0, 1, dtype="|b1")),
    ],
)
def test_what_c_code_would_believe_is_refused(tree):
    with pytest.raises(UnreadableError):
        loads(forge(tree), codec=Objects())


def changed(name, tmp_path, *path, to):
    """Return a forgery of a fitted estimator with another value in one place."""
    tree = parse(parts_of(saved(name, tmp_path))[1])
    spot = tree
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = to(spot[path[-1]]) if callable(to) else to
    return forge(tree)


def with_entry(index, value):
    def change(old):
        values = np.frombuffer(old.data, old.content[0]).copy()
        values[index] = value
        return Raw("array", old.content, values.tobytes())

    return change


def longer(old):
    dtype, (size, *rest) = old.content[:2]
    return Raw("array", [dtype, [size + 1, *rest]], old.data + old.data[: len(old.data) // size])


@pytest.mark.parametrize(
    ("name", "attribute", "to"),
    [
        ("SVC", "support_", with_entry(0, 10**6)),
        ("SVC", "support_", with_entry(0, -1)),
        ("SVC", "support_", longer),
        ("SVC", "_n_support", with_entry(0, 10**6)),
        ("SVC", "_n_support", with_entry(1, -1)),
        ("SVC", "_n_support", longer),
        ("SVC", "_dual_coef_", longer),
        ("SVC", "support_vectors_", longer),
        ("SVC", "_intercept_", longer),
        ("SVC", "_probA", Raw("array", ["<f8", [1]], bytes(8))),
        ("SVC", "n_features_in_", 5),
        ("SVC", "_sparse", True),
        ("SVC", "_gamma", "x"),
        ("SVC", "kernel", "precomputed"),
        ("SVC", "kernel", "no such"),
        ("SVC", "_impl", "epsilon_svr"),
        ("SVC", "shape_fit_", {"tuple": [1, 4]}),
        ("SVC, precomputed", "kernel", "linear"),
        ("SVC, precomputed", "shape_fit_", {"tuple": [2, 2]}),
        ("neighbours", "_y", with_entry(0, 9)),
        ("neighbours", "_y", with_entry(0, -1)),
        ("neighbours", "n_samples_fit_", 10**9),
        ("neighbours", "effective_metric_", "pyfunc"),
        ("neighbours by a tree", "leaf_size", 0),
        ("neighbours by a tree", "_fit_method", "x"),
    ],
)
def test_wrong_sizes_do_not_reach_compiled_code(name, attribute, to, tmp_path):
    with pytest.raises(UnreadableError):
        loads(changed(name, tmp_path, "object", 1, attribute, to=to), codec=Objects())


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("offsets_", {"tuple": [0, 10**9]}),
        ("offsets_", {"tuple": [-5, 1]}),
        ("offsets_", [0, 1]),
        ("n_features_out_", 3),
        ("n_features_out_", 10**12),
        ("k", 10**15),
        ("k", 3),
        ("alphabet_", None),
    ],
)
def test_words_that_are_not_those_of_their_parameters_are_refused(attribute, value, tmp_path):
    save(Spectrum(2).fit(["abab"]), tmp_path / "a")
    tree = parse(parts_of(tmp_path / "a")[1])
    assert attribute in tree["object"][1] or attribute == "n_features_out_"  # which follows from others
    tree["object"][1][attribute] = value
    with pytest.raises(UnreadableError):
        loads(forge(tree), codec=Objects())


@pytest.mark.parametrize(
    ("estimator", "attribute", "value"),
    [
        (PositionalSpectrum((1, 2)), "ks_", [1, 5]),
        (PositionalSpectrum((1, 2)), "ks_", [1, -2]),
        (PositionalSpectrum((1, 2)), "ks_", [1, 10**9]),
        (PositionalSpectrum((1, 2)), "length_", 10**9),
        (PositionalSpectrum((1, 2)), "length_", 1),
        (PositionalSpectrum((1, 2)), "n_features_out_", 4),
        (RegionSpectrum((1, 2)), "ks_", [1, 3]),
        (RegionSpectrum((1, 2)), "n_regions", 10**9),
        (RegionSpectrum((1, 2)), "n_regions", 0),
        (EmpiricalMeanMap(1), "_size", 9),
        (EmpiricalMeanMap(1), "order", 60),
        (EmpiricalMeanMap(1), "method_", "sparse"),
        (EmpiricalMeanMap(1), "_sharpness", -5.0),
        (EmpiricalMeanMap(1, method="sparse"), "n_features_out_", 2),
        (EmpiricalMeanMap(1, method="sparse"), "alphabet_", 3),
    ],
)
def test_words_in_places_are_those_of_their_parameters(estimator, attribute, value, tmp_path):
    save(clone(estimator).fit(["abab", "abba"]), tmp_path / "a")
    tree = parse(parts_of(tmp_path / "a")[1])
    assert attribute in tree["object"][1] or attribute == "n_features_out_"  # which follows from others
    tree["object"][1][attribute] = value
    with pytest.raises(UnreadableError):
        loads(forge(tree), codec=Objects())


def test_descriptions_cannot_say_more_than_they_should(tmp_path):
    about = {"format": 9, "bytes": -1, "class": "x", "other": 1}
    (tmp_path / "a").write_bytes(file_of(about, b""))
    found = describe(tmp_path / "a")
    assert (found["format"], found["class"], found["labels"]) == (1, "x", None)
    assert "other" not in found
    assert found["bytes"] == (tmp_path / "a").stat().st_size


def test_words_of_documents_have_columns_of_their_own(tmp_path):
    tree = parse(parts_of(saved("CountVectorizer", tmp_path))[1])
    words = tree["object"][1]["steps"][0]["tuple"][1]["object"][1]["vocabulary_"]["dict"]
    assert type(words[0][1]) is int
    for value in (10**6, -1, words[1][1], 0.5, True):
        words[0][1] = value
        with pytest.raises(UnreadableError):
            loads(forge(tree), codec=Objects())


# --- whole files

FILES = {
    "nothing": b"",
    "a pickle": pickle.dumps(os.getcwd),
    "text": b"genkern",
    "only magic": MAGIC,
    "half a prefix": PREFIX.pack(MAGIC, FORMAT, 5)[:-3],
    "no description": PREFIX.pack(MAGIC, FORMAT, 0),
    "a huge description": PREFIX.pack(MAGIC, FORMAT, 2**60),
    "a description that is a list": PREFIX.pack(MAGIC, FORMAT, len(dumps([1]))) + dumps([1]),
    "a description of nothing": PREFIX.pack(MAGIC, FORMAT, len(dumps({}))) + dumps({}),
    "versions that are none": file_of({"versions": None}, dumps(1)),
    "a number": file_of({"versions": {"scikit-learn": "1"}}, dumps(1)),
    "a format string": file_of({"versions": {"scikit-learn": "{0.__class__}%s"}, "class": "x"}, dumps(1)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FILES)
def test_other_files_raise_one_error_and_take_no_memory(name, tmp_path):
    (tmp_path / "x").write_bytes(FILES[name])
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="x cannot be read") as error:
        load(tmp_path / "x")
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()
    assert error.value.path == str(tmp_path / "x")
    assert error.value.reason


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    folder = tmp_path_factory.mktemp("right")
    return saved("spectrum_svm", folder)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.integers(-40, 0),
)
def test_damaged_files_raise_one_error(right, changes, cut):
    whole = right.read_bytes()
    damaged = bytearray(whole)
    for at, byte in changes:
        damaged[at % len(damaged)] = byte
    damaged = bytes(damaged[: len(damaged) + cut])
    other = right.with_suffix(".damaged")
    other.write_bytes(damaged)
    if damaged != whole:
        with pytest.raises(ModelFileError):
            load(other)
        with contextlib.suppress(ModelFileError):
            describe(other)


@pytest.mark.filterwarnings("ignore")
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4), cut=st.integers(-40, 0))
def test_forged_bytes_raise_one_error_or_are_estimators(right, changes, cut):
    about, payload = parts_of(right)
    body = bytearray(payload[24:])
    for at, byte in changes:
        body[at % len(body)] = byte
    body = bytes(body[: len(body) + cut])
    other = right.with_suffix(".forged")
    other.write_bytes(file_of(about, signed(body)))
    try:
        found = load(other)
    except ModelFileError:
        return
    assert type(found).__name__ == "Recipe"


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(
            st.sampled_from(["genkern.RBF", "genkern.Gram", "sklearn.svm.SVC", "slice", "set", "Bunch", "os.system"]),
            st.dictionaries(st.sampled_from(["gamma", "kernel", "start", "items", "x_", "_x", "__class__"]), inner),
        ).map(lambda pair: {"object": list(pair)})
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=200)
@given(JSONS)
def test_any_json_raises_one_error_or_is_an_object(tree):
    try:
        value = loads(forge(tree), codec=Objects())
    except UnreadableError:
        return
    assert loads(dumps(value, Objects()), codec=Objects()) is not NotImplemented


def test_deep_nests_are_refused(tmp_path):
    kernel = RBF()
    for _ in range(70):
        kernel = kernel + RBF()
    with pytest.raises(TypeError, match="nested more than"):
        save(kernel, tmp_path / "deep")

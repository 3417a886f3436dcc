"""The memo: keys, counters, limits, damage, trouble with folders, races, cloning and pickling."""

import collections
import copy
import errno
import hashlib
import os
import pickle
import stat
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from genkern import FitEach, MarkovChainEstimator
from genkern.data.objects import as_alphabet
from genkern.data.serialize import _classes
from genkern.data.store import Store, make_key
from genkern.models.value import Value

NAN = float("nan")


@pytest.fixture(params=["memory", "disk"])
def store(request, tmp_path):
    return Store(None if request.param == "memory" else tmp_path / "store")


def keys_of(*names):
    return [make_key(name) for name in names]


# --- keys

SAME = [
    ((1,), (np.int64(1),)),
    ((0.0,), (-0.0,)),
    ((NAN,), (-NAN,)),
    (([1, 2],), ((1, 2),)),
    (({"a": 1, "b": 2},), (collections.OrderedDict(b=2, a=1),)),
    (({1, 2, 3},), (frozenset([3, 2, 1]),)),
    ((np.array([1, 2], dtype=np.int32),), (np.array([1, 2], dtype=">i8"),)),
    ((np.array([0.0, NAN]),), (np.array([-0.0, -NAN], dtype=">f8"),)),
    ((np.arange(6.0).reshape(2, 3),), (np.asfortranarray(np.arange(6.0).reshape(2, 3)),)),
    ((np.array(["a", "b"]),), (np.array(["a", "b"], dtype=object),)),
    ((LogisticRegression(C=2.0),), (LogisticRegression(C=2.0, n_jobs=None, verbose=3),)),
    ((as_alphabet("dna"),), (as_alphabet("dna", missing="~"),)),
]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_equal_content_has_equal_keys(left, right):
    assert make_key(*left) == make_key(*right)


DIFFERENT = [
    (),
    (None,),
    (0,),
    (False,),
    (0.0,),
    ("0",),
    (b"0",),
    ("",),
    (1, 2),
    ((1, 2),),
    ([1, [2]],),
    ([[1], 2],),
    ("ab", "c"),
    ("a", "bc"),
    ({"a": 1},),
    ((("a", 1),),),
    ({"a"},),
    (np.array([1, 2]),),
    (np.array([1.0, 2.0]),),
    (np.array([[1, 2]]),),
    (np.array([True, False]),),
    (np.array([2**63], dtype=np.uint64),),
    (np.array([-(2**63)]),),
    (NAN,),
    (LogisticRegression(C=2.0),),
    (LogisticRegression(C=3.0),),
    (StandardScaler(),),
    (make_pipeline(StandardScaler(), LogisticRegression(C=2.0)),),
    (make_pipeline(StandardScaler(), LogisticRegression(C=3.0)),),
    (as_alphabet("dna"),),
    (as_alphabet("rna"),),
    (as_alphabet("dna").digest,),
]


def test_different_content_has_different_keys():
    keys = [make_key(*parts) for parts in DIFFERENT]
    assert len(set(keys)) == len(keys)
    assert all(len(key) == 32 and set(key) <= set("0123456789abcdef") for key in keys)


class A:
    digest = "bc"


class Ab:
    digest = "c"


def test_names_and_digests_do_not_run_together():
    assert make_key(A()) != make_key(Ab())


def test_fitted_attributes_do_not_count():
    scaler = StandardScaler()
    before = make_key(scaler)
    assert make_key(scaler.fit([[1.0], [2.0]])) == before


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=150)
@given(VALUES, VALUES)
def test_keys_are_equal_exactly_for_equal_values(a, b):
    # repr tells 1, 1.0 and True apart, as keys do; the order of a dict does not count.
    def canonical(value):
        if isinstance(value, dict):
            return "{" + ",".join(sorted(f"{key!r}:{canonical(item)}" for key, item in value.items())) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(canonical, value)) + "]"
        return repr(value).replace("-0.0", "0.0") if isinstance(value, float) and value == 0 else repr(value)

    assert (make_key(a) == make_key(b)) == (canonical(a) == canonical(b))


@pytest.mark.parametrize(
    "value",
    [print, lambda x: x, object(), np.random.default_rng(0), np.random.RandomState(0), LogisticRegression, 1j],
)
def test_values_without_fixed_content_raise(value):
    with pytest.raises(TypeError, match=r"is not known to be fixed.*int seed instead of a random generator"):
        make_key("a", [value])


def test_arrays_without_fixed_content_raise():
    with pytest.raises(TypeError, match="dtype complex128 have no fixed content"):
        make_key(np.zeros(2, dtype=complex))


def test_keys_are_the_same_in_another_process():
    code = (
        "import numpy as np\nfrom genkern.data.objects import as_alphabet\nfrom genkern.data.store import make_key\n"
        "parts = {'x': 1, 'y': {1, 2}, 'z': {'p', 'q', 'r'}}, np.arange(3.0), as_alphabet('dna')\n"
        "print(make_key('a', *parts))"
    )
    here = make_key("a", {"z": {"r", "q", "p"}, "y": {2, 1}, "x": 1}, np.arange(3.0), as_alphabet("dna"))
    env = os.environ | {"PYTHONHASHSEED": "7"}
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert there.stdout.strip() == here


# --- entries


def test_get_and_put(store):
    (key,) = keys_of("a")
    assert store.get(key) is None
    store.put(key, {"x": np.arange(3)})
    np.testing.assert_array_equal(store.get(key)["x"], np.arange(3))
    store.put(key, "newer")
    assert store.get(key) == "newer"
    assert (store.hits, store.misses, store.n_entries) == (2, 1, 1)
    assert store.n_bytes > 0
    assert "1 entries" in repr(store)
    assert f"{store.n_bytes} bytes, 2 hits, 1 misses" in repr(store)
    store.clear()
    assert (store.hits, store.misses, store.n_entries, store.n_bytes) == (0, 0, 0, 0)
    assert store.get(key) is None


def test_values_are_copies(store):
    (key,) = keys_of("a")
    value = [1]
    store.put(key, value)
    value.append(2)
    store.get(key).append(3)
    assert store.get(key) == [1]


def test_fetch_many_computes_only_what_is_missing_and_once(store):
    calls = []

    def compute(missing):
        calls.append(list(missing))
        return [f"value {names[i]}" for i in missing]

    names = ["a", "b", "a", "c"]
    assert store.fetch_many(keys_of(*names), compute) == [f"value {name}" for name in names]
    names = ["d", "c", "d", "a"]
    assert store.fetch_many(keys_of(*names), compute) == [f"value {name}" for name in names]
    names = ["a", "d"]
    assert store.fetch_many(keys_of(*names), compute) == ["value a", "value d"]
    assert calls == [[0, 1, 3], [0]]
    assert (store.hits, store.misses, store.n_entries) == (4, 4, 4)
    assert store.fetch_many([], compute) == []


def test_wrong_use_raises(store):
    (key,) = keys_of("a")
    with pytest.raises(ValueError, match="must not be None"):
        store.put(key, None)
    with pytest.raises(ValueError, match=r"expected 1 values. Got 2"):
        store.fetch_many([key], lambda missing: [1, 2])
    for wrong in ("../../etc", "", 5, "ABCDEF0123456789"):
        with pytest.raises(ValueError, match="must be a hex digest"):
            store.get(wrong)
        with pytest.raises(ValueError, match="must be a hex digest"):
            store.put(wrong, 1)
    with pytest.raises(ValueError, match="'max_bytes' parameter of Store must be an int >= 1"):
        Store(max_bytes=0)


@pytest.mark.parametrize("kind", ["memory", "disk"])
def test_least_recently_used_entries_go_first(kind, tmp_path):
    store = Store(None if kind == "memory" else tmp_path, max_bytes=10_000)
    keys = keys_of(*range(30))
    for i, key in enumerate(keys):
        store.put(key, bytes(1000))
        if kind == "disk":  # files' times are too coarse to order writes that follow at once
            file = next(tmp_path.glob(f"??/{key}.entry"), None)
            if file is not None:
                os.utime(file, (i, i))
        if i > 0:
            assert store.get(keys[0]) is not None
        if kind == "disk":
            os.utime(next(tmp_path.glob(f"??/{keys[0]}.entry")), (i + 0.5, i + 0.5))
    assert store.n_bytes <= 10_000
    kept = [i for i, key in enumerate(keys) if store.get(key) is not None]
    assert kept[0] == 0
    assert kept[1:] == list(range(31 - len(kept), 30))
    assert 7 <= len(kept) <= 9


def test_reading_a_file_counts_as_use(tmp_path):
    store, (key,) = Store(tmp_path), keys_of("a")
    store.put(key, 1)
    os.utime(entry_of(tmp_path), (1, 1))
    store.get(key)
    assert entry_of(tmp_path).stat().st_mtime > time.time() - 1000


def test_a_value_beyond_the_limit_is_not_kept_and_says_so(tmp_path):
    for store in (Store(max_bytes=100), Store(tmp_path, max_bytes=100)):
        (key,) = keys_of("a")
        with pytest.warns(UserWarning, match="exceeds max_bytes=100 and is not kept. Raise max_bytes"):
            store.put(key, bytes(200))
        assert store.n_entries == 0
        with pytest.warns(UserWarning, match="exceeds"):
            assert store.fetch_many([key], lambda missing: [bytes(200)]) == [bytes(200)]


# --- on disk


def entry_of(path):
    (file,) = path.glob("??/*.entry")
    return file


def test_another_instance_reads_the_folder(tmp_path):
    (key,) = keys_of("a")
    Store(tmp_path / "deep" / "er").put(key, [1, 2])
    assert Store(str(tmp_path / "deep" / "er")).get(key) == [1, 2]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:10],
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: content[:-1] + bytes([content[-1] ^ 1]),
        lambda content: b"x" + content[1:],
        lambda content: bytes(len(content)),
    ],
)
def test_damaged_files_are_computed_again(tmp_path, damage):
    store, (key,) = Store(tmp_path), keys_of("a")
    store.put(key, [1, 2])
    file = entry_of(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.warns(UserWarning, match="is damaged; its entry is computed again"):
        assert store.fetch_many([key], lambda missing: [[3]]) == [[3]]
    assert Store(tmp_path).get(key) == [3]


class Gone(Value):
    _fields = ("x",)

    def __init__(self, x):
        self._freeze(x=x)


def test_values_of_removed_code_are_computed_again(tmp_path, monkeypatch):
    store, (key,) = Store(tmp_path), keys_of("a")
    store.put(key, Gone(1))
    assert store.get(key) == Gone(1)
    monkeypatch.delitem(_classes, f"{__name__}.Gone")
    with pytest.warns(UserWarning, match=r"cannot be read and is computed again .the class '.*Gone' is not known"):
        assert store.get(key) is None
    assert store.misses == 1


class Trap:
    """Unpickling it makes a folder."""

    def __init__(self, sign):
        self.sign = str(sign)

    def __reduce__(self):
        return os.mkdir, (self.sign,)


@pytest.mark.parametrize("frame", ["genkern1", "genkern2", "plain"])
def test_planted_pickles_are_never_loaded(tmp_path, frame):
    """Also those with the checksum of the format that once held pickles."""
    store, (key,), sign = Store(tmp_path / "store"), keys_of("a"), tmp_path / "sign"
    store.put(key, 1)
    payload = pickle.dumps(Trap(sign), protocol=5)
    header = frame.encode() + hashlib.blake2b(payload, digest_size=16).digest()
    entry_of(tmp_path / "store").write_bytes(payload if frame == "plain" else header + payload)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if frame == "genkern1" else "ignore")  # what was once right is no damage
        assert store.fetch_many([key], lambda missing: [2]) == [2]
    assert not sign.exists()
    assert Store(tmp_path / "store").get(key) == 2
    pickle.loads(payload)
    assert sign.exists()


def test_what_is_no_file_or_too_large_is_not_read(tmp_path):
    store, (key, other) = Store(tmp_path, max_bytes=1000), keys_of("a", "b")
    store.put(key, 1)
    file = entry_of(tmp_path)
    with file.open("wb") as stream:
        stream.truncate(2**40)  # a hole, which takes no room on disk but all memory to read
    with pytest.warns(UserWarning, match="more than max_bytes=1000"):
        assert store.get(key) is None
    if hasattr(os, "mkfifo"):
        file.unlink()
        os.mkfifo(file)  # opened as a file, it would wait forever
        with pytest.warns(UserWarning, match="it is not a file"):
            assert Store(tmp_path).get(key) is None
    assert store.get(other) is None


def test_remains_of_dead_writers_are_removed(tmp_path):
    store, (key,) = Store(tmp_path), keys_of("a")
    store.put(key, 1)
    old, fresh = entry_of(tmp_path).with_name("x.tmp"), entry_of(tmp_path).with_name("y.tmp")
    for file in (old, fresh):
        file.write_bytes(b"half")
    os.utime(old, (time.time() - 10_000,) * 2)
    assert store.n_entries == 1
    assert not old.exists()
    assert fresh.exists()


def failing(number):
    def fail(*args, **options):
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("function", ["os.replace", "os.mkdir", "tempfile.mkstemp", "os.fdopen", "os.chmod"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO])
def test_what_cannot_be_written_is_computed_and_not_kept(tmp_path, monkeypatch, function, number):
    store, keys = Store(tmp_path / "store"), keys_of("a", "b", "c")
    store.put(keys[0], "kept")
    with monkeypatch.context() as patch:
        patch.setattr(function, failing(number))
        with pytest.warns(UserWarning, match=rf"cannot be written.*{os.strerror(number)}.*give another path") as told:
            assert store.fetch_many(keys, lambda missing: [f"fit {i}" for i in missing]) == ["kept", "fit 1", "fit 2"]
        assert len(told) == 1
        assert store.fetch_many(keys, lambda missing: [f"fit {i}" for i in missing]) == ["kept", "fit 1", "fit 2"]
    assert not list(tmp_path.rglob("*.tmp"))
    store.put(keys[1], "later")  # there may be room again
    assert store.get(keys[1]) == "later"


def test_an_interrupted_write_leaves_nothing(tmp_path, monkeypatch):
    store, (key,) = Store(tmp_path), keys_of("a")

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.put(key, 1)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


@pytest.mark.parametrize("below", ["", "deep/er"])
def test_a_path_that_cannot_be_a_folder_warns_once_and_loses_nothing(tmp_path, below):
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(UserWarning, match="cannot be written, so that results are not kept"):
        store = Store(tmp_path / "file" / below)
    models = FitEach(MarkovChainEstimator(1), store=store).fit_transform(["abab", "aab"])  # told once
    assert models == FitEach(MarkovChainEstimator(1)).fit_transform(["abab", "aab"])
    assert (store.n_entries, store.n_bytes) == (0, 0)
    store.clear()
    assert (tmp_path / "file").read_text() == "not a folder"


def test_what_cannot_be_read_is_computed_again(tmp_path, monkeypatch):
    store, keys = Store(tmp_path), keys_of("a", "b")
    for key in keys:
        store.put(key, 1)
    monkeypatch.setattr(os, "open", failing(errno.EIO))
    with pytest.warns(UserWarning, match=r"cannot be read and is computed again .*Input/output") as told:
        assert [store.get(key) for key in keys] == [None, None]
    assert len(told) == 1


def test_a_foreign_value_is_returned_and_not_kept(store):
    keys = keys_of("a", "b")
    foreign = [object(), object()]
    with pytest.warns(UserWarning, match=r"results are not kept: a builtins\.object is not a value") as told:
        assert store.fetch_many(keys, lambda missing: foreign) == foreign
    assert len(told) == 1
    assert store.n_entries == 0


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077, 0o177, 0o777])
def test_folders_and_files_are_private_whatever_the_umask(tmp_path, umask):
    (key,) = keys_of("a")
    before = os.umask(umask)
    try:
        Store(tmp_path / "deep" / "store").put(key, [1])
        assert Store(tmp_path / "deep" / "store").get(key) == [1]
    finally:
        os.umask(before)
    file = entry_of(tmp_path / "deep" / "store")
    assert mode_of(file) == 0o600
    assert [mode_of(folder) for folder in (file.parent, *file.parents[1:3])] == [0o700] * 3


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_a_folder_that_others_can_write_is_left_and_told(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.warns(UserWarning, match=r"others can write into .*shared .mode 777.*Use a folder of mode 700"):
        store = Store(shared)
    (key,) = keys_of("a")
    store.put(key, 1)
    assert store.get(key) == 1
    assert mode_of(shared) == 0o777
    assert mode_of(entry_of(shared).parent) == 0o700


HAMMER = """
import sys, time
from pathlib import Path
from genkern.data.store import Store, make_key

path, go = map(Path, sys.argv[1:])
store, keys = Store(path, max_bytes=60_000), [make_key(i) for i in range(40)]
go.with_suffix(f".ready{time.time_ns()}").touch()
while not go.exists():
    time.sleep(0.001)
for turn in range(6):
    for i, key in enumerate(keys):
        store.put(key, [i] * 500)
        other = (i * 7 + turn) % len(keys)
        value = store.get(keys[other])
        if value is not None and value != [other] * 500:
            sys.exit(f"key {other} has a wrong value")
"""


def test_processes_race_for_the_same_keys(tmp_path):
    folder, go = tmp_path / "store", tmp_path / "go"
    command = [sys.executable, "-W", "error", "-c", HAMMER, str(folder), str(go)]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    while len(list(tmp_path.glob("go.ready*"))) < 2 and all(worker.poll() is None for worker in workers):
        time.sleep(0.005)
    go.touch()
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert (worker.returncode, errors) == (0, "")
    store, keys = Store(folder), keys_of(*range(40))
    assert 20 < store.n_entries <= 40
    values = store.fetch_many(keys, lambda missing: [[i] * 500 for i in missing])
    assert [value[0] for value in values] == list(range(40))
    assert not list(folder.rglob("*.tmp"))


def test_threads_share_a_store(store):
    keys, wrong = keys_of(*range(40)), []

    def work():
        for _ in range(5):
            values = store.fetch_many(keys, lambda missing: list(missing and [i + 1 for i in missing]))
            wrong.extend(value for i, value in enumerate(values) if value != i + 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert store.hits + store.misses == 4 * 5 * 40
    assert store.n_entries == 40


# --- identity


class Holder(BaseEstimator):
    def __init__(self, store=None, n_states=3):
        self.store = store
        self.n_states = n_states


def test_clones_and_copies_share_the_store(store):
    holder = Holder(store)
    assert clone(holder).store is copy.deepcopy(holder).store is copy.copy(store) is store
    assert make_key(holder) == make_key(Holder(None))
    assert make_key(holder) != make_key(Holder(store, n_states=4))


def test_pickling_inside_a_process_finds_the_same_store(store):
    assert pickle.loads(pickle.dumps(store)) is store


def test_pickles_are_handles(tmp_path):
    (key,) = keys_of("a")
    for path in (None, tmp_path):
        store = Store(path, max_bytes=12345)
        store.put(key, [1, 2])
        handle = pickle.dumps(store)
        assert len(handle) < 500
        del store
        other = pickle.loads(handle)
        assert other.max_bytes == 12345
        assert other.path == path
        assert other.get(key) == (None if path is None else [1, 2])
        assert pickle.loads(handle) is other


def test_relative_paths_are_fixed_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store("entries")
    monkeypatch.chdir("/")
    (key,) = keys_of("a")
    store.put(key, 1)
    assert entry_of(tmp_path / "entries").exists()


def test_keys_do_not_move_with_modules(monkeypatch):
    from genkern import Categorical, HMMEstimator

    before = make_key(HMMEstimator(2)), make_key(Categorical([0.5, 0.5]))
    for kind in (HMMEstimator, Categorical):
        monkeypatch.setattr(kind, "__module__", "genkern.somewhere.else")
    assert before == (make_key(HMMEstimator(2)), make_key(Categorical([0.5, 0.5])))
    monkeypatch.setattr(HMMEstimator, "__module__", "another.package")
    assert make_key(HMMEstimator(2)) != before[0]

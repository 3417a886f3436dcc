"""Values as bytes: exact round trips, what is refused, and bytes that were made to do harm."""

import json
import math
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genkern import (
    GaussianEstimator,
    HMMEstimator,
    KDEEstimator,
    LDSEstimator,
    MarkovChain,
    MarkovChainEstimator,
    MixtureEstimator,
    Posterior,
    Sampled,
    SiteEstimator,
    as_alphabet,
)
from genkern.data.serialize import DEEPEST, MAGIC, UnknownClassError, UnreadableError, _checksum, dumps, loads
from genkern.models.value import Value
from tests.cases_zoo import ZOO

VALUES = {
    **ZOO,
    "Posterior": Posterior([[0.0], [1.0]], [[0.5, 0.0], [0.1, 0.4]], np.full((2, 2), 0.25)),
    "Posterior of symbols": Posterior([0, 3], [[0.5, 0.0], [0.1, 0.4]]),
    "Sampled": Sampled(ZOO["Gamma"], 50, seed=3),
    "dna": as_alphabet("dna"),
    "alphabet": as_alphabet([("a", 1), "b", 2.5, True, b"x"], missing=-1),
}


def same(one, other):
    """Whether two values are equal bit by bit, and of the same types."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | np.generic):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, Value):
        return one == other and all(same(getattr(one, name), getattr(other, name)) for name in one._fields)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other) or (math.isnan(one) and math.isnan(other))
    return one == other


def arrays_of(value):
    if isinstance(value, np.ndarray):
        yield value
    parts = [getattr(value, name) for name in value._fields] if isinstance(value, Value) else value
    if isinstance(value, Value | tuple):
        for part in parts:
            yield from arrays_of(part)


# --- round trips


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("trusted", [False, True])
def test_every_model_comes_back_bit_by_bit(name, trusted):
    value = VALUES[name]
    again = loads(dumps(value), trusted)
    assert dumps(again) == dumps(value)
    assert again == value
    assert name.startswith("Sampled") or same(again, value)
    assert hash(again) == hash(value)
    assert not any(array.flags.writeable for array in arrays_of(again))


@pytest.mark.parametrize(
    "name", [name for name in VALUES if not name.startswith(("ClassMixture", "Posterior", "dna", "al"))]
)
def test_stacks_and_their_members_come_back(name):
    stack = type(VALUES[name]).stack([VALUES[name]] * 3)
    assert loads(dumps(stack)) == stack
    assert [loads(dumps(member)) for member in stack.unstack()] == [VALUES[name]] * 3


SERIES = [np.sin(np.arange(30.0) + shift)[:, None] * scale for shift, scale in ((0, 1.0), (1, 1e-9), (2, 1e9))]
CONSTANT = [np.ones((12, 1)), np.zeros((5, 1))]
FITS = [
    (HMMEstimator(2, max_iter=5), ["abab", "aab", "bbbb"]),
    (HMMEstimator(2, emission="gaussian", max_iter=5), SERIES[:1] + CONSTANT),
    (LDSEstimator(1, max_iter=3), SERIES[:1]),
    (MarkovChainEstimator(1), ["abab", "aab", "bbbb"]),
    (SiteEstimator(), ["abab", "aabb", "bbbb"]),
    (MixtureEstimator(2, GaussianEstimator("full"), max_iter=5), SERIES[:1]),
    (GaussianEstimator("full"), SERIES + CONSTANT),
    (KDEEstimator(), SERIES[:1]),
]


@pytest.mark.filterwarnings("ignore")  # of fits that do not converge, which do not matter here
@pytest.mark.parametrize(("estimator", "X"), FITS, ids=lambda part: type(part).__name__)
def test_fitted_models_pass_their_constructors(estimator, X):
    for model in estimator.fit_each(X):
        assert same(loads(dumps(model)), model)


DTYPES = ["?", "i1", "u1", "<i2", ">i4", "<i8", "<u2", ">u8", "<f2", ">f4", "<f8", "<U3"]
ARRAYS = st.tuples(
    st.sampled_from(DTYPES), st.sampled_from([(), (0,), (3,), (2, 0, 3), (2, 3)]), st.binary(max_size=24)
)


def array_of(parts):
    dtype, shape, noise = parts
    kind, size = np.dtype(dtype), math.prod(shape)
    codes = np.resize(np.frombuffer(noise or b"\0", np.uint8), size * kind.itemsize)
    if kind.kind == "U":
        return np.array([chr(97 + code % 26) * (code % 4) for code in codes[:size]], dtype).reshape(shape)
    return (codes[:size] % 2 == 1).reshape(shape) if kind.kind == "b" else np.ndarray(shape, kind, codes).copy()


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**900), 2**900)
    | st.floats()
    | st.text(st.characters(), max_size=5)
    | st.binary(max_size=9)
    | st.sampled_from([np.float64(-0.0), np.int32(-5), np.bool_(True), np.float32("nan"), "\ud800", as_alphabet("dna")])
    | ARRAYS.map(array_of)
)
KEYS = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.tuples(st.text(max_size=2), st.integers())
NESTED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=300)
@given(NESTED)
def test_plain_values_come_back_bit_by_bit(value):
    def native(item):
        if isinstance(item, np.ndarray):
            return item.astype(item.dtype.newbyteorder("="))
        if isinstance(item, list | tuple):
            return type(item)(map(native, item))
        return {key: native(part) for key, part in item.items()} if isinstance(item, dict) else item

    assert same(loads(dumps(value)), native(value))


def test_arrays_are_new_and_writable():
    payload = dumps(np.arange(3.0))
    one, other = loads(payload), loads(payload)
    one[0] = 9.0
    assert other[0] == 0.0
    assert loads(dumps(np.arange(6).reshape(2, 3).T[::-1]))[0, 0] == 2


def test_nan_payloads_and_signs_survive_in_arrays():
    bits = np.array([0x7FF8000000000001, 0xFFF8000000000000, 0x8000000000000000, 1], np.uint64)
    assert (loads(dumps(bits.view(np.float64))).view(np.uint64) == bits).all()


def test_bytes_are_the_same_in_another_process_that_has_imported_nothing():
    payload = dumps(ZOO["HMM of mixtures"])
    code = (
        "import sys; from genkern.data.serialize import dumps, loads\n"
        "assert 'genkern.models.hmm.model' not in sys.modules\n"
        "payload = sys.stdin.buffer.read()\n"
        "value = loads(payload); assert dumps(value) == payload; print(value.digest)"
    )
    run = subprocess.run([sys.executable, "-c", code], input=payload, capture_output=True, check=True)
    assert run.stdout.decode().strip() == ZOO["HMM of mixtures"].digest


# --- what is not a value


class Foreign:
    pass


class Coin(Value):
    """A user's own model."""

    _fields = ("side",)

    def __init__(self, side):
        if side not in (0.25, 0.75):
            raise ValueError("no such side")
        self._freeze(side=float(side))


def cycle():
    endless = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Foreign(), r"test_serialize\.Foreign is not a value"),
        ([1, (2, {"a": Foreign()})], r"Foreign"),
        (print, "builtin_function_or_method"),
        (lambda: 0, "function"),
        ({1, 2}, "set"),
        (1j, "complex"),
        (np.array([None, 1]), "dtype object"),
        (np.zeros(2, complex), "dtype complex128"),
        (np.zeros(2, [("a", "f8")]), "dtype"),
        (np.array(["2020-01-01"], "M8[D]"), "dtype datetime64"),
        (np.ma.masked_array([1.0]), "MaskedArray"),
        (np.zeros(2, np.longdouble), "dtype"),
        (2**2000, "int"),
        (Sampled(type("Other", (), {"log_prob": len, "sample": len, "digest": "x"})()), "Other"),
        (cycle(), f"more than {DEEPEST} deep"),
        ((HMMEstimator(2)), "HMMEstimator"),
    ],
)
def test_other_things_are_refused_by_name(value, named):
    with pytest.raises(TypeError, match=named):
        dumps(value)


def test_models_of_users_are_values():
    assert loads(dumps([Coin(0.25)])) == [Coin(0.25)]
    with pytest.raises(UnreadableError, match="no such side"):
        loads(dumps(Coin._restore(0.5)))


def test_a_class_of_the_same_name_takes_no_place():
    chain = ZOO["MarkovChain"]
    for module in ("genkern.features.positions", "elsewhere"):
        twin = type("MarkovChain", (MarkovChain,), {"__module__": module})
        assert type(loads(dumps(chain))) is MarkovChain
        assert type(loads(dumps(twin(chain.start, chain.transitions)))) is twin


def test_a_class_that_is_gone_is_named():
    class Lost(Value):
        _fields = ("x",)

        def __init__(self, x):
            self._freeze(x=x)

    payload = dumps(Lost(1)).replace(b"Lost", b"Last")
    with pytest.raises(UnknownClassError, match=r"Last' is not known; import the module"):
        loads(signed(payload[len(MAGIC) + 16 :]))


# --- bytes that were made to do harm


def signed(body):
    """Return bytes with a right checksum, as an attacker can make them."""
    return MAGIC + _checksum(body) + body


def forged(header, *buffers):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return signed(struct.pack("<Q", len(text)) + text + b"".join(buffers))


def array(*numbers, dtype="<f8"):
    return {"array": [dtype, [len(numbers)]]}, np.array(numbers, dtype).tobytes()


def categorical(*numbers, alphabet="ab"):
    node, data = array(*numbers)
    symbols = {"tuple": list(alphabet)}
    letters = {"symbols": symbols, "ambiguities": {"tuple": []}, "aliases": {"tuple": []}, "name": None}
    return forged({"value": ["Categorical", {"probs": node, "alphabet": {"value": ["Alphabet", letters]}}]}, data)


def test_forgeries_can_be_right():
    assert loads(categorical(0.5, 0.5)).alphabet == as_alphabet("ab")


HOSTILE = {
    "nothing": b"",
    "a pickle": pickle.dumps(os.getcwd),
    "only magic": MAGIC,
    "no header": signed(b""),
    "half a size": signed(b"\1\0"),
    "a huge header": signed(struct.pack("<Q", 2**62)),
    "a header beyond the end": signed(struct.pack("<Q", 100) + b"null"),
    "left over": forged(None, b"x"),
    "no JSON": forged(b"{"),
    "no UTF-8": forged(b'"\xff"'),
    "deep lists": forged(b"[" * 500_000),
    "deep objects": forged(b'{"tuple":[' * 100_000 + b"]}" * 100_000),
    "too deep by one": forged(b"[" * (DEEPEST + 2) + b"]" * (DEEPEST + 2)),
    "a long number": forged(b"9" * 100_000),
    "NaN": forged(b"NaN"),
    "Infinity": forged(b"[-Infinity]"),
    "overflow": forged(b"1e999"),
    "double keys": forged(b'{"tuple":[],"tuple":[]}'),
    "two keys": forged({"tuple": [], "bytes": 0}),
    "no key": forged({}),
    "an unknown key": forged({"eval": "1"}),
    "a private key": forged({"_take": 3}),
    "a float of no number": forged({"float": "1e5"}),
    "a float of a list": forged({"float": [1]}),
    "a tuple of a string": forged({"tuple": "abc"}),
    "keys that are lists": forged({"dict": [[[], 1]]}),
    "keys that are equal": forged({"dict": [[1, 1], [1, 2]]}),
    "triples": forged({"dict": [[1, 1, 1]]}),
    "bytes beyond the end": forged({"bytes": 5}, b"1234"),
    "negative bytes": forged({"bytes": -1}),
    "true bytes": forged({"bytes": True}, b"1"),
    "objects": forged({"array": ["|O", [1]]}, bytes(8)),
    "objects by letter": forged({"array": ["O", [1]]}, bytes(8)),
    "voids": forged({"array": ["|V8", [1]]}, bytes(8)),
    "records": forged({"array": ["f8,f8", [1]]}, bytes(16)),
    "a list for a type": forged({"array": [[["a", "<f8"]], [1]]}, bytes(8)),
    "an alias of a type": forged({"array": ["float", [1]]}, bytes(8)),
    "big endian": forged({"array": [">f8", [1]]}, bytes(8)),
    "negative sizes": forged({"array": ["<f8", [-1, -1]]}, bytes(8)),
    "sizes that are floats": forged({"array": ["<f8", [1.0]]}, bytes(8)),
    "huge sizes": forged({"array": ["<f8", [2**40]]}, bytes(8)),
    "sizes that overflow": forged({"array": ["<f8", [2**32, 2**32, 2**32]]}, bytes(8)),
    "no rows of endless columns": forged({"array": ["<f8", [0, 2**62, 2**62]]}),
    "too many axes": forged({"array": ["<f8", [1] * 100]}, bytes(8)),
    "half a number": forged({"array": ["<f8", [1]]}, bytes(7)),
    "a bool of two": forged({"array": ["|b1", [1]]}, b"\2"),
    "no such character": forged({"array": ["<U1", [1]]}, b"\xff\xff\xff\x7f"),
    "long strings": forged({"array": ["<U999999999", [1]]}, bytes(8)),
    "a function": forged({"value": ["os.system", {"command": "true"}]}),
    "a builtin": forged({"value": ["builtins.eval", {"source": "1"}]}),
    "a module": forged({"value": ["recipes", {}]}),
    "a public function": forged({"value": ["explain", {}]}),
    "an estimator": forged({"value": ["HMMEstimator", {"n_states": 2}]}),
    "an abstract class": forged({"value": ["Leaf", {}]}),
    "the base": forged({"value": ["Value", {}]}),
    "a class by a number": forged({"value": [3, {}]}),
    "fields as a list": forged({"value": ["Gaussian", []]}),
    "no fields": forged({"value": ["Gaussian", {}]}),
    "a field more": forged({"value": ["Poisson", {"rate": array(1.0)[0], "x": 1}]}, array(1.0)[1]),
    "a field that is a number": forged({"value": ["Poisson", {"rate": 1.0}]}),
    "a field of ints": forged({"value": ["Poisson", {"rate": {"array": ["<i8", [1]]}}]}, b"\1" + bytes(7)),
    "a field that is a list": forged({"value": ["Poisson", {"rate": [1.0]}]}),
    "NaN rates": forged({"value": ["Poisson", {"rate": array(math.nan)[0]}]}, array(math.nan)[1]),
    "negative rates": forged({"value": ["Poisson", {"rate": array(-1.0)[0]}]}, array(-1.0)[1]),
    "NaN probabilities": categorical(math.nan, 0.5),
    "negative probabilities": categorical(-0.5, 1.5),
    "probabilities that do not sum to one": categorical(0.5, 0.6),
    "too many symbols": categorical(0.5, 0.5, alphabet="abc"),
    "symbols twice": categorical(0.5, 0.5, alphabet="aa"),
    "symbols that are lists": categorical(0.5, 0.5, alphabet=[[], "a"]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_raise_one_error_and_take_no_memory(name):
    payload = HOSTILE[name]
    before = set(sys.modules)
    tracemalloc.start()
    with pytest.raises(UnreadableError):
        loads(payload)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23 + 100 * len(payload)
    assert {module for module in set(sys.modules) - before if not module.startswith("genkern")} <= set()


def test_names_in_bytes_are_never_imported(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("planted", "planted.Thing", "genkern.planted", "..planted"):
        with pytest.raises(UnknownClassError, match="is not known"):
            loads(forged({"value": [name, {}]}))


def test_graphs_must_hold_together():
    body = dumps(ZOO["BayesNet"])[len(MAGIC) + 16 :]
    size = struct.unpack_from("<Q", body)[0]
    header, values = json.loads(body[8 : 8 + size]), body[8 + size :]
    assert loads(forged(header, values)) == ZOO["BayesNet"]
    for fields in (
        {"order": {"tuple": [2, 1, 0]}},
        {"parents": {"tuple": [{"tuple": [1]}, {"tuple": [0]}, {"tuple": []}]}},
        {"parents": {"tuple": [{"tuple": [-1]}, {"tuple": [0]}, {"tuple": []}]}},
        {"sizes": {"tuple": [2, 2, 2]}},
        {"sizes": {"tuple": [10**9, 10**9, 10**9]}},
        {"sizes": {"tuple": [2.0, 2, 3]}},
        {"observed": {"tuple": [7]}},
        {"names": {"tuple": ["h", "h", "c"]}},
    ):
        graph = {**header["value"][1]["graph"]["value"][1], **fields}
        with pytest.raises(UnreadableError):
            loads(forged({"value": ["BayesNet", {**header["value"][1], "graph": {"value": ["Graph", graph]}}]}, values))


PAYLOADS = [
    dumps(VALUES[name]) for name in ("HMM of symbols", "LDS", "BayesNet", "LinearGaussianNet", "Posterior", "Sampled")
]


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(PAYLOADS), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4)
)
def test_damaged_bytes_raise_one_error(payload, changes):
    damaged = bytearray(payload)
    for at, byte in changes:
        damaged[at % len(damaged)] = byte
    if bytes(damaged) != payload:
        with pytest.raises(UnreadableError):
            loads(bytes(damaged))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(deadline=None, max_examples=400)
@given(
    st.sampled_from(PAYLOADS),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4),
    st.integers(-40, 0),
)
def test_forged_bytes_raise_one_error_or_are_values(payload, changes, cut):
    """With the checksum made right again, what is read has passed its constructor."""
    body = bytearray(payload[len(MAGIC) + 16 :])
    for at, byte in changes:
        body[at % len(body)] = byte
    body = body[: len(body) + cut]
    try:
        value = loads(signed(bytes(body)))
    except UnreadableError:
        return
    for found in arrays_of(value):
        assert found.dtype.kind != "f" or np.isfinite(found).all()


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tuple", "dict", "bytes", "array", "scalar", "float", "x"]), inner, max_size=2
        )
        | st.tuples(st.sampled_from(["HMM", "Gaussian", "Alphabet", "Graph", "Sampled", "Leaf", "x"]), inner).map(
            lambda pair: {"value": list(pair)}
        )
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=300)
@given(JSONS, st.binary(max_size=32))
def test_any_json_raises_one_error_or_is_a_value(header, data):
    try:
        value = loads(forged(header, data))
    except UnreadableError:
        return
    assert same(loads(dumps(value)), value)

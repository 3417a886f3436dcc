"""Argument checks with one form of error messages: the caller, what was expected, what was given, the remedy."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Code = TypeVar("Code")
Made = TypeVar("Made")

RENORMALISE = 1e-12  # rows of probabilities closer to one than this are kept to the last bit
REFUSE = 1e-6  # rows further from one than this are an error, not a rounding
LARGEST = (
    1e75  # of numbers in data: fourth powers, as in the information about a variance, stay in the range of float64
)

MEANS = 1e76  # largest size of means of such data
SPREADS = (1e-156, 1e154)  # of their variances that are not zero: the square of a mean over a variance is finite

_said: ContextVar[set[Hashable] | None] = ContextVar("_said", default=None)  # warnings of the current call
_saying = Lock()
_encoded: ContextVar[list[Any] | None] = ContextVar("_encoded", default=None)  # the last objects that it has encoded
ENCODED = 3  # lists of objects that are remembered: what came in, and the last two that were asked for
_made: ContextVar[list[Any] | None] = ContextVar("_made", default=None)  # what steps have made of objects, with sizes
MADE = 1 << 28  # bytes of it that are remembered


@contextmanager
def one_warning_each() -> Iterator[None]:
    """Make `warn` give each warning once inside, also in threads of `carried` work; see also `encoded_once`.

    scikit-learn's loops make Python forget its own list. See `made_once`, too.
    """
    tokens = (_said.set(set()), _encoded.set([]), _made.set([])) if _said.get() is None else None
    try:
        yield
    finally:
        if tokens is not None:
            _said.reset(tokens[0])
            _encoded.reset(tokens[1])
            _made.reset(tokens[2])


def encoded_once(X: Any, setting: Hashable, encode: Callable[[], Code], spelt: Callable[[Any], Hashable]) -> Code:
    """Return the encoded objects, computed once for the same X within a call (`one_warning_each`).

    ``spelt`` returns the setting, with all that was left open, that gives the same.
    """
    known = _encoded.get()
    if known is None:
        return encode()
    for entry in list(known):
        if entry[0] is X and setting in entry[1]:
            if entry is not known[0]:
                known[:] = [*(other for other in known if other is not entry), entry]
            packed: Code = entry[2]
            return packed
    packed = encode()
    remember_encoded(X, (setting, spelt(packed)), packed)
    return packed


def remember_encoded(X: Any, settings: Iterable[Hashable], packed: Any) -> None:
    """Store the encoding of objects for `encoded_once` within the current call."""
    known = _encoded.get()
    if known is not None:
        known[:] = [*known[:1], *known[1:][2 - ENCODED :], (X, tuple(settings), packed)]


def encodings_of(X: Any) -> list[tuple[Any, Any]]:
    """Return the settings and the outcome of every encoding of X itself that `encoded_once` remembers."""
    return [(settings, packed) for given, settings, packed in list(_encoded.get() or ()) if given is X]


def made_once(X: Any, setting: Hashable, make: Callable[[], Made], size: Callable[[Made], int]) -> Made:
    """Return what a step makes of objects, which the call under way does once for X itself and a setting.

    What is above the limit, by its size in bytes, is made again whenever it is asked for.
    """
    known, found = _made.get(), made_of(X, setting)
    if known is None or found is not None:
        return make() if found is None else cast(Made, found)
    made = make()
    held = size(made)
    if held + sum(entry[3] for entry in list(known)) <= MADE:
        known.append((X, setting, made, held))
    return made


def made_of(X: Any, setting: Hashable) -> Any:
    """Return what `made_once` remembers, else None."""
    return next((made for given, own, made, _ in list(_made.get() or ()) if given is X and own == setting), None)


def carried(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return work for another thread as part of the current call."""
    context = copy_context()
    return lambda *args: context.run(work, *args)


def warn(text: str, category: type[Warning], things: Iterable[Hashable], stacklevel: int = 2) -> None:
    """Warn, unless the current call (`one_warning_each`) has given all these warnings before."""
    said, new = _said.get(), set(things)
    if said is not None:
        with _saying:
            if new <= said:
                return
            said |= new
    warnings.warn(text, category, stacklevel=stacklevel + 1)


def check_array(
    value: ArrayLike, name: str, who: str, ndim: int | None = None, shape: tuple[int, ...] | None = None
) -> Floats:
    """Return a finite float64 array of the demanded dimension or shape."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{who}: '{name}' must be an array of numbers. Got {type(value).__name__}: {error}") from None
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{who}: '{name}' must have {ndim} dimensions. Got shape {array.shape} instead.")
    if shape is not None and array.shape != shape:
        raise ValueError(f"{who}: '{name}' must have shape {shape}. Got shape {array.shape} instead.")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{who}: '{name}' must be finite. Got {array[where]} at index {where}.")
    return array


def check_sizes(table: Any, who: str) -> Any:
    """Return a matrix of features, dense or sparse, refusing numbers whose squares, or those of variances, overflow."""
    values = table if isinstance(table, np.ndarray) else table.data
    if values.size and max(float(values.max()), -float(values.min())) > LARGEST:
        row, column = (int(places[0]) for places in (abs(table) > LARGEST).nonzero())
        raise ValueError(f"{who}: row {row}, column {column} {too_large(float(table[row, column]), column)}")
    return table


def too_large(value: float, column: int, largest: float = LARGEST) -> str:
    """Return the error message for a number in data that is infinite, or too large."""
    if np.isinf(value):
        return f"is {value}; expected finite numbers, not inf. Replace it by NaN if it is missing."
    return (
        f"is {value}; expected numbers up to {largest:g}, whose squares do not overflow. Divide column {column} by its "
        "scale."
    )


def check_range(array: Floats, name: str, who: str, lowest: float, highest: float) -> Floats:
    """Return numbers that are zero, or between two positive numbers but for the sign; inverses and squares are finite.

    Parameters
    ----------
    array : ndarray
    name, who : str
        Of the numbers and the caller, for the error message.
    lowest, highest : float
        Bounds of what is not zero.
    """
    sizes = np.abs(array)
    wrong = (sizes > highest) | (sizes < lowest) & (sizes > 0)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        least = f" and at least {lowest:g} unless they are zero" if lowest else ""
        raise ValueError(
            f"{who}: '{name}' must be numbers up to {highest:g}{least}, so that densities are within the range of "
            f"floating point. Got {array[where]:g} at index {where}. Take other units of the data."
        )
    return array


def check_probabilities(value: ArrayLike, name: str, who: str, shape: tuple[int, ...] | None = None) -> Floats:
    """Return an array whose last axis holds distributions; rounding errors are corrected, anything else is refused."""
    array = check_array(value, name, who, shape=shape)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{who}: '{name}' must end in an axis of probabilities. Got shape {array.shape}.")
    if (array < 0).any():
        where = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise ValueError(f"{who}: '{name}' must not be negative. Got {array[where]} at index {where}.")
    return normalise_rows(array, name, who)


def normalise_rows(array: Floats, name: str, who: str) -> Floats:
    """Return rows that sum to one: kept where exact, renormalised where rounded, refused where wrong."""
    total = array.sum(axis=-1, keepdims=True)
    off = np.abs(total - 1.0)
    if (off > REFUSE).any():
        where = tuple(int(i) for i in np.argwhere(off[..., 0] > REFUSE)[0])
        raise ValueError(
            f"{who}: '{name}' must sum to 1 along its last axis. Row {where} sums to "
            f"{total[..., 0][where]:.9g}; divide it by its sum."
        )
    return np.where(off > RENORMALISE, array / total, array)


def check_option(value: Any, options: Iterable[str], name: str, who: str) -> str:
    """Return value if it is one of the named options."""
    choices = list(options)
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"The '{name}' parameter of {who} must be one of {listed}. Got {value!r} instead.")
    return value


def check_int(value: Any, name: str, who: str, minimum: int = 0) -> int:
    """Return value as an int not below minimum."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"The '{name}' parameter of {who} must be an int >= {minimum}. Got {value!r} instead.")
    return int(value)


def check_bool(value: Any, name: str, who: str) -> bool:
    """Return value if it is True or False; other values would silently be read as one of them."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"The '{name}' parameter of {who} must be True or False. Got {value!r} instead.")
    return bool(value)


def check_number(
    value: Any, name: str, who: str, minimum: float = 0.0, exclusive: bool = False, infinite: bool = False
) -> float:
    """Return value as a float not below minimum (above it, if exclusive), finite unless infinity has a meaning."""
    sign = ">" if exclusive else ">="
    right = isinstance(value, numbers.Real) and not isinstance(value, bool)
    right = right and (np.isfinite(float(value)) or (infinite and float(value) == np.inf))
    if not right or float(value) < minimum or (exclusive and float(value) == minimum):
        kind = "number" if infinite else "finite number"
        raise ValueError(f"The '{name}' parameter of {who} must be a {kind} {sign} {minimum:g}. Got {value!r} instead.")
    return float(value)


def check_lengths(lengths: Any, size: int, who: str) -> NDArray[np.int64]:
    """Return the (n,) lengths of objects that are concatenated in X of that size."""
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or len(sizes) == 0:
        raise ValueError(
            f"{who}: 'lengths' must be a 1-D list of ints, one per object. Got {lengths!r:.80}; count the elements of "
            "each object, e.g. [len(x) for x in objects]."
        )
    if sizes.min() < 1:
        index = int(np.argmax(sizes < 1))
        raise ValueError(
            f"{who}: object {index} has length {sizes[index]}; expected at least 1. Drop it, with its label; if these "
            "are offsets, pass np.diff(offsets)."
        )
    ends = np.cumsum(sizes, dtype=np.int64)
    if ends[-1] != size:
        index = int(np.searchsorted(ends, size, side="right"))
        remedy = f"Object {index} would end at {ends[min(index, len(ends) - 1)]}; correct its length, or pass all of X"
        if ends[-1] < size:
            remedy = f"Add the lengths of the last {size - ends[-1]} elements, or leave them out by X[:{ends[-1]}]"
        raise ValueError(f"{who}: the lengths sum to {ends[-1]}, but X has {size} elements; expected equal. {remedy}.")
    return sizes.astype(np.int64)


def begin_fit(estimator: Any, X: Any, y: Any) -> None:
    """Begin a fit that uses no y: store the width of 2-D input, and refuse a y that looks like lengths or paths."""
    remember_width(estimator, X, reset=True)
    refuse_unused(y, X, type(estimator).__name__)


def refuse_unused(y: Any, X: Any, who: str) -> None:
    """Raise for a y that nothing uses unless it may be labels, one per object: lengths, paths, or of another size."""
    n, count = n_objects(X), n_objects(y)
    if y is None or n is None or count is None or isinstance(X, str):  # one string is no list, as is said later
        return
    if count == n:
        if _are_paths(X, y):
            raise ValueError(
                f"{who}: y holds one sequence per object, as long as the object, as paths of states do, but nothing "
                "here uses y: hidden states are found by the fit. Leave y out, or pass one label per object; "
                "HMMEstimator takes known states as fit(X, states=...)."
            )
        return
    given = np.asarray(y) if np.ndim(y[0] if isinstance(y, list | tuple) and count else y) <= 1 else np.empty(0)
    if given.ndim == 1 and given.dtype.kind in "iu" and given.min(initial=1) >= 1 and given.sum() == n:
        raise ValueError(
            f"{who}: y holds {count} integers that sum to {n}, the number of objects in X: lengths of sequences that "
            f"lie one after the other? X is a list of objects here, and nothing uses y. Cut X up: "
            f"{who}(...).fit(from_concatenated(X, lengths)), with from genkern import from_concatenated."
        )
    what = "one entry per object is expected"
    if count == _n_positions(X):
        what = (
            "it has one entry per position, as paths of states have, but hidden states are found by the fit "
            "(HMMEstimator takes known ones as fit(X, states=[...]), one array per object)"
        )
    raise ValueError(
        f"{who}: Found input variables with inconsistent numbers of samples: {[n, count]}. Nothing here uses y, and "
        f"{what}. Leave y out, or pass one label per object."
    )


def n_objects(X: Any) -> int | None:
    """Return the number of objects in X, None if it does not tell."""
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple):
        return int(shape[0]) if shape else None
    return getattr(X, "n_objects", None) or (len(X) if hasattr(X, "__len__") else None)


def _n_positions(X: Any) -> int | None:
    """Return the number of positions of all objects, None if it is not known."""
    if hasattr(X, "n_points"):
        return int(X.n_points)
    shape: Any = getattr(X, "shape", ())
    if len(shape) > 1:
        return int(shape[0] * shape[1])
    return sum(map(len, X)) if all(hasattr(x, "__len__") for x in X) else None


def _are_paths(X: Any, y: Any) -> bool:
    """Return whether y is a list of sequences, each as long as the object of the same index, some longer than one."""
    if not isinstance(y, list | tuple) or not all(isinstance(path, list | tuple | np.ndarray) for path in y):
        return False
    objects = X.pieces() if hasattr(X, "pieces") else X
    sizes = [len(x) if hasattr(x, "__len__") else 1 for x in objects]
    return [len(path) for path in y] == sizes and max(sizes, default=0) > 1


def remember_width(estimator: Any, X: Any, reset: bool) -> None:
    """Record (reset) or compare the width of 2-D input as scikit-learn does; lists are always legal.

    A 2-D array or data frame sets `n_features_in_` and `feature_names_in_`, and another width or other names
    then raise or warn with scikit-learn's messages. A list deletes both on reset and is not compared.
    """
    shape = getattr(X, "shape", None)
    if shape is None and not hasattr(X, "__len__") and hasattr(X, "__array__"):
        shape = np.asarray(X).shape
    if isinstance(shape, tuple) and len(shape) == 2:
        # The public validate_data would convert X, which must not happen here.
        from sklearn.utils.validation import _check_feature_names, _check_n_features

        if reset or hasattr(estimator, "n_features_in_"):
            _check_feature_names(estimator, X, reset=reset)
            _check_n_features(estimator, X, reset=reset)
    elif reset:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                delattr(estimator, name)


def refuse_odd_labels(y: Any, who: str) -> None:
    """Raise for labels that are missing, and for strings beside numbers, which as an array would all be strings."""
    labels = np.asarray(y, dtype=object).ravel().tolist()
    lost = [i for i, label in enumerate(labels) if label is None or type(label).__name__ == "NAType" or label != label]
    if lost:
        came = f"{'None' if labels[lost[0]] is None else 'NaN'} at index {lost[0]} ({len(lost)} such in all)"
        remedy = "Leave these objects out, or name them a class."
        raise ValueError(f"{who}: Input y contains {came}; expected a label for every object. {remedy}")
    odd = next((i for i, label in enumerate(labels) if isinstance(label, str) != isinstance(labels[0], str)), None)
    if odd is not None:
        raise TypeError(
            f"{who}: Input y has labels of several types, {labels[0]!r} at index 0 and {labels[odd]!r} at index {odd}; "
            "expected strings alone, or numbers alone. Make all strings: [str(label) for label in y]."
        )


OTHER_NAMES = {  # what the field, or another library, calls things
    "FisherKernel": "FisherScore", "FisherVector": "FisherScore", "TOPKernel": "TopScore", "TOP": "TopScore",
    "GMM": "MixtureEstimator", "GaussianMixture": "MixtureEstimator", "MixtureModel": "Mixture",
    "HiddenMarkovModel": "HMM", "GaussianHMM": "HMMEstimator", "CategoricalHMM": "HMMEstimator",
    "KalmanFilter": "LDS", "BayesianNetwork": "BayesNet", "MarkovModel": "MarkovChain", "Normal": "Gaussian",
    "ProductKernel": "ProbabilityProduct", "BhattacharyyaKernel": "ProbabilityProduct", "PPK": "ProbabilityProduct",
    "MeanMapKernel": "MeanMap", "MarginalizedKernel": "Marginalized", "SpectrumKernel": "Spectrum", "Kmers": "Spectrum",
    "KernelMatrix": "Gram", "GramMatrix": "Gram", "mmd": "two_sample_test", "cross_validate": "evaluate",
    "timeseries": "series", "time_series": "series", "sequences": "symbols", "dna": "symbols", "protein": "symbols",
    "strings": "symbols", "aligned": "aligned_symbols", "alignment": "aligned_symbols", "shapes": "contours",
    "documents": "text", "texts": "text", "fisher": "fisher_svm", "product": "product_svm", "meanmap": "meanmap_svm",
    "spectrum": "spectrum_svm",
}  # fmt: skip


def unknown_name(name: str, module: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a module does not have, with the one that may have been meant."""
    from difflib import get_close_matches

    names = list(known)
    meant = {other.lower(): ours for other, ours in OTHER_NAMES.items()}.get(name.lower())
    lower = {each.lower(): each for each in names}
    near = [meant] if meant in names else [lower[found] for found in get_close_matches(name.lower(), lower, 2)]
    hint = (
        f"did you mean {' or '.join(near)}?"
        if near
        else f"there are {', '.join(names[:20])}{', ...' * (len(names) > 20)}"
    )
    return AttributeError(f"module {module!r} has no attribute {name!r}; {hint}", name=name)

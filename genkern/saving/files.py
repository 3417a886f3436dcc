"""Files of estimators: written beside and renamed, and read without running anything that is in them.

::

    magic (8 bytes) | format number (4, little-endian) | length of the description (8) | description | estimator

Description and estimator are values as bytes (``genkern.data.serialize``), each with its own checksum; the description
holds that of the estimator, too. Magic and format number stand at the same place in every format.
"""

from __future__ import annotations

import contextlib
import os
import platform
import stat
import struct
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from sklearn.base import BaseEstimator

import genkern
from genkern.data.coding import Alphabet
from genkern.data.digests import make_key
from genkern.data.representations import Representations
from genkern.data.serialize import RefusedError, UnreadableError, dumps, loads
from genkern.data.whole_files import whole_file
from genkern.models.value import Value
from genkern.saving.codec import Objects
from genkern.saving.registry import name_of

MAGIC = b"\x89genkern"
FORMAT = 1  # a file of every format that was ever written is kept in the tests
PREFIX = struct.Struct("<8sIQ")
DESCRIBED = ("class", "labels", "alphabet", "versions", "saved", "summary")
PACKAGES = ("genkern", "numpy", "scikit-learn", "scipy")


class ModelFileError(UnreadableError):
    """A file that is not that of an estimator: damaged, hostile, or of what is not known here.

    Attributes
    ----------
    path : str
        The file.
    reason : str
        Why it cannot be read.
    """

    def __init__(self, path: Any, reason: str):
        self.path, self.reason = str(path), reason
        super().__init__(f"genkern.load: {path} cannot be read: {reason}")


class FormatError(ModelFileError):
    """A file in a format that this version does not know.

    Attributes
    ----------
    path : str
        The file.
    reason : str
        Which format it is of.
    """


def save(estimator: Any, path: Any, *, summary: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator, a kernel or a model to a file that ``load`` reads without running anything in it.

    The file is written beside its place and renamed, so that an old one stays whole until the new one is.

    Parameters
    ----------
    estimator : estimator, Kernel, Model or Representations
        One of this package, of scikit-learn (those that recipes use; see the documentation), or of a class given to
        ``genkern.saving.register``; with whatever of these it holds.
    path : path-like
        The file, commonly with the ending ``.gk``. An existing one is replaced.
    summary : dict, optional
        What is to be known of the training, such as numbers of objects, lengths, date, seconds and errors; by names,
        with values that are numbers, strings, None, arrays, lists, tuples or dicts. ``describe`` returns it.

    Raises
    ------
    TypeError
        For what cannot be saved, such as an own function; it is named by its place in the estimator.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from genkern import load, recipes, save
    >>> X, y = ["aaab", "aabaa", "abaa", "bbab", "bbb", "babb"], [0, 0, 0, 1, 1, 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(recipes.spectrum_svm(k=1).fit(X, y), Path(folder) / "words.gk")
    ...     load(Path(folder) / "words.gk").predict(["aaa", "abbb"])
    array([0, 1])
    """
    if not isinstance(estimator, BaseEstimator | Value | Representations):
        raise TypeError(f"genkern.save: expected an estimator, a kernel or a model. Got a {type(estimator).__name__}.")
    if summary is not None and not (type(summary) is dict and all(type(key) is str for key in summary)):
        raise TypeError(f"genkern.save: 'summary' must be a dict with names for keys. Got {summary!r:.80}.")
    payload = _dumped(estimator, type(estimator).__name__)
    about = {
        **_about(estimator),
        "versions": _versions(),
        "saved": datetime.now(UTC).isoformat(timespec="seconds"),
        "summary": summary,
        "checksum": make_key(payload),
    }
    description = _dumped(about, "summary")
    with whole_file(path, "genkern.save") as stream:
        stream.write(PREFIX.pack(MAGIC, FORMAT, len(description)) + description + payload)


def load(path: Any) -> Any:
    """Return the estimator of a file that ``save`` has written. Nothing that is in the file is run or imported.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator : estimator, Kernel, Model or Representations
        It gives the same results, bit by bit, as the one that was saved, with the same versions of packages and as many
        threads of BLAS on the same machine. A file of another version of scikit-learn draws a warning.

    Raises
    ------
    genkern.saving.ModelFileError
        For all other files, whatever they hold; a ``FormatError`` for those of a later format.
    OSError
        If the file cannot be opened.
    """
    about, payload = _open(path)
    try:
        if type(about) is not dict or make_key(payload) != about.get("checksum"):
            raise UnreadableError("its description is that of another file.")
        _warn_versions(path, about["versions"])
        estimator = loads(payload, codec=Objects())
        if not isinstance(estimator, BaseEstimator | Value | Representations):
            raise UnreadableError(f"it holds a {type(estimator).__name__}, not an estimator, kernel or model.")
        if any(about.get(name) != value for name, value in _about(estimator).items()):
            raise UnreadableError("its description does not fit what it holds.")
    except UnreadableError as error:
        raise ModelFileError(path, f"{error}{_written_by(about)}") from error
    except Exception as error:  # a description of unknown origin may be anything
        raise ModelFileError(path, f"its description is not one ({type(error).__name__}: {error!s:.300}).") from error
    return estimator


def describe(path: Any) -> dict[str, Any]:
    """Return what a file of ``save`` holds, from its description alone.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    description : dict
        With the keys "format" (a number), "class", "labels" (a list; None without classes), "alphabet" (its "name" and
        "symbols"; None without one), "versions" (of packages, by name), "saved" (date and time), "summary" (as given to
        ``save``) and "bytes" (the size of the file).

    Raises
    ------
    genkern.saving.ModelFileError
        For all other files.
    OSError
        If the file cannot be opened.
    """
    about, rest = _open(path, whole=False)
    if type(about) is not dict:
        raise ModelFileError(path, "its description is not one.")
    return {"format": FORMAT, **{name: about.get(name) for name in DESCRIBED}, "bytes": rest}


# --- what a description says


def _about(estimator: Any) -> dict[str, Any]:
    """Return what can be seen of an estimator: its class, its labels and the alphabet it reads."""
    labels: Any = None
    with contextlib.suppress(AttributeError):  # of one that is not fitted, or no classifier
        labels = estimator.classes_
    return {
        "class": name_of(type(estimator)) or type(estimator).__name__,
        "labels": labels.tolist() if hasattr(labels, "tolist") else None,
        "alphabet": _alphabet(estimator),
    }


def _alphabet(value: Any) -> dict[str, Any] | None:
    """Return name and symbols of the first alphabet in an estimator."""
    if isinstance(value, Alphabet):
        return {"name": value.name, "symbols": list(value.symbols)}
    parts: Any = ()
    if isinstance(value, list | tuple):
        parts = value
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, BaseEstimator | Value):
        parts = vars(value).values()
    found = (_alphabet(part) for part in parts if isinstance(part, _HOLDERS))
    return next((alphabet for alphabet in found if alphabet is not None), None)


_HOLDERS = (Alphabet, list, tuple, dict, BaseEstimator, Value)


def _versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        **{name: genkern.__version__ if name == "genkern" else version(name) for name in PACKAGES},
    }


def _warn_versions(path: Any, versions: dict[str, str]) -> None:
    """Warn, once per file, of a version of scikit-learn that is not the one here."""
    here, there = version("scikit-learn"), versions["scikit-learn"]
    if here != there:
        warnings.warn(
            f"genkern.load: {path} was saved with scikit-learn {there!s:.40}; here is {here}, whose results may "
            f"differ. Install scikit-learn=={there!s:.40}, or fit and save again.",
            UserWarning,
            stacklevel=3,
        )


def _written_by(about: Any) -> str:
    """Return by which versions a file was written, where they are not those that are here."""
    versions = about.get("versions") if type(about) is dict else None
    if type(versions) is not dict or versions == _versions():
        return ""
    return f" It was written with {', '.join(f'{name} {number}' for name, number in versions.items())!s:.200}."


# --- bytes


def _dumped(value: Any, root: str) -> bytes:
    """Return the bytes of an estimator, which can be loaded."""
    try:
        payload = dumps(value, Objects())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loads(payload, codec=Objects())
    except RefusedError as error:
        raise TypeError(f"genkern.save: {root}{error.path} cannot be saved: {error}") from error
    except UnreadableError as error:
        raise TypeError(f"genkern.save: {root} cannot be saved, as it could not be loaded: {error}") from error
    return payload


def _open(path: Any, whole: bool = True) -> tuple[Any, Any]:
    """Return the description of a file, and the bytes of its estimator, or only how many bytes the file has."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):  # a pipe would never end
        raise ModelFileError(path, "it is not a file.")
    with open(path, "rb") as stream:
        prefix = stream.read(PREFIX.size)
        if prefix[: len(MAGIC)] != MAGIC or len(prefix) < PREFIX.size:
            raise ModelFileError(path, "it is not a file of genkern.save, or of genkern train.")
        _, number, size = PREFIX.unpack(prefix)
        if number != FORMAT:
            raise FormatError(
                path,
                f"it is of format {number}, and genkern {genkern.__version__} reads format {FORMAT}. Install a later "
                "version of genkern, or save it again with this one.",
            )
        if size > status.st_size - PREFIX.size:
            raise ModelFileError(path, "it ends too early.")
        try:
            about = loads(stream.read(size))
        except UnreadableError as error:
            raise ModelFileError(path, f"of its description, {error}") from error
        return about, stream.read() if whole else status.st_size

"""Which kind of objects a list holds: series, symbols, chain codes, documents or point sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.data.coding import code_points
from genkern.data.flatten import Flat, flatten_symbols
from genkern.data.inspection import FEW, SMALL, flatten_integers, form_kind
from genkern.data.intake import collect, form_of
from genkern.data.objects import pack_series
from genkern.data.packed import Packed

KINDS = ("series", "symbols", "codes", "documents", "points")
SPACED = 0.9  # of strings that have several words: documents
CONTOURS = 5  # closed paths from which on all being closed is no accident
LOOKED_AT = 1000  # objects whose order of rows is looked at
ORDERED = 4.0  # standard errors of the serial correlation under any order of the rows: the order means something
IUPAC = frozenset("ACGTURYSWKMBDHVNX-?.")
PLAIN = {"dna": frozenset("ACGT"), "rna": frozenset("ACGU"), "protein": frozenset("ACDEFGHIKLMNPQRSTVWY")}
# Steps of Freeman's eight codes: 0 is east, 2 north, counter-clockwise.
STEPS = np.array([[1, 0], [1, 1], [0, 1], [-1, 1], [-1, 0], [-1, -1], [0, -1], [1, -1]])


def detect_kind(X: Any, who: str = "detect_kind") -> str:
    """Return which kind of objects a list holds, or raise where it may be two.

    Parameters
    ----------
    X : list of n objects, array, data frame or Packed
    who : str
        The caller's name, for error messages.

    Returns
    -------
    kind : {"series", "symbols", "codes", "documents"}
        "documents": strings of several words. "codes": digits or integers from 0 to 7 (or 3) that, taken as steps in
        eight (or four) directions, lead back to where they began, in all of five or more objects. "symbols": other
        strings, token lists and integers, the latter two of at most 64 different values. "series": rows of numbers
        whose order means something, by the serial correlation of neighbours against that of any order
        (Wald and Wolfowitz), and 2-D arrays, whose rows are series.

    Raises
    ------
    ValueError
        Where the objects may be of two kinds: point sets and series without order, integers that are not few and
        small, many different tokens, some strings with several words, some closed paths. Say which by ``kind=``.

    References
    ----------
    Wald & Wolfowitz (1943), An exact test for randomness in the non-parametric case based on serial correlation.

    Examples
    --------
    >>> detect_kind(["ACGT", "GA"]), detect_kind(["my thesis advisor", "professor of computing"])
    ('symbols', 'documents')
    """
    X = X.objects() if isinstance(X, Packed) else X
    form = form_kind(X, who)
    if form == "series":
        objects = collect(X, who)
        return "series" if isinstance(objects, np.ndarray) and objects.ndim == 2 else _of_numbers(objects, who)
    if form == "integers":
        flat = flatten_integers(X, who)
        few = len(np.unique(flat.symbols)) <= FEW and flat.symbols.min() >= 0 and flat.symbols.max() < SMALL
        return _of_symbols(flat, who) if few else _ask(who, "integers that are not few and small", "series", "symbols")
    objects = collect(X, who)
    if not isinstance(objects, np.ndarray) and all(isinstance(obj, str | bytes) for obj in objects):
        texts = [obj if isinstance(obj, str) else form_of(obj, 0, who)[1] for obj in objects if obj]
        if any(len(text.split()) > 1 for text in texts):
            return _of_texts(texts, who)
    return _of_symbols(flatten_symbols(X, who), who)


def biological(flat: Flat) -> str | None:
    """Return "dna", "rna" or "protein" where letters are surely of these, else None.

    At least 95 % of them must be the plain ones of the alphabet, all others its codes for several; all nucleotides and
    fifteen amino acids must occur, in one case.
    """
    if not isinstance(flat.symbols, str):
        return None
    points, counts = np.unique(code_points(flat.symbols), return_counts=True)
    letters = [chr(point) for point in points]
    if any(map(str.isupper, letters)) and any(map(str.islower, letters)):
        return None
    total = dict(zip([letter.upper() for letter in letters], (counts / counts.sum()).tolist()))
    for name, plain in PLAIN.items():
        allowed = frozenset(map(chr, range(65, 91))) | set("-?*.") if name == "protein" else IUPAC
        needed = 15 if name == "protein" else 4
        share = sum(total.get(letter, 0.0) for letter in plain)
        if set(total) <= allowed and share >= 0.95 and len(plain & set(total)) >= needed:
            return name
    return None


def n_directions(flat: Flat) -> int:
    """Return in how many directions, 8 or 4, the steps of chain codes go: 4 where no code is above 3."""
    return 4 if int(_digits(flat).max()) < 4 else 8


def _of_numbers(X: Any, who: str) -> str:
    """Return "series", or raise where rows of numbers might as well be in any other order."""
    packed = pack_series(X, who)
    some = np.unique(np.linspace(0, packed.n_objects - 1, LOOKED_AT).astype(int))
    if _order(packed.take(some).pieces()) >= ORDERED:
        return "series"
    what = "rows of numbers whose order tells nothing (neighbours are no more alike than others)"
    return _ask(who, what, "series", "points")


def _order(objects: list[NDArray[np.float64]]) -> float:
    """Return the largest standardised serial correlation of all channels, pooled over objects, or 0."""
    excess: Any = 0.0
    variance: Any = 0.0
    for rows in objects:
        n = len(rows)
        if n < 4:
            continue
        present = ~np.isnan(rows)
        x = np.where(present, rows, 0.0)
        x = np.where(present, x - x.sum(axis=0) / np.maximum(present.sum(axis=0), 1), 0.0)
        scale = np.abs(x).max(axis=0)
        x = x / np.where(scale > 0, scale, 1.0)
        squares = (x**2).sum(axis=0)
        x = x / np.sqrt(np.where(squares > 0, squares, 1.0))
        second, fourth = (x**2).sum(axis=0), (x**4).sum(axis=0)
        mean = -second / (n - 1)
        excess = excess + (x * np.roll(x, 1, axis=0)).sum(axis=0) - mean
        variance = variance + (second - fourth) / (n - 1) + (second - 2 * fourth) / ((n - 1) * (n - 2)) - mean**2
    return float(np.max(np.abs(excess) / np.sqrt(np.maximum(variance, 1e-12))))


def are_documents(share: float, letters: Iterable[str]) -> bool:
    """Return whether strings of these letters, a share of which have several words, are texts and no blocks."""
    used = {letter for letter in letters if letter.isalpha()}
    blocks = not any(map(str.islower, used)) or {letter.upper() for letter in used} <= IUPAC
    return share >= SPACED and not blocks


def _of_texts(texts: list[str], who: str) -> str:
    """Return "documents" for strings of which some have several words, or raise."""
    share = float(np.mean([len(text.split()) > 1 for text in texts]))
    if are_documents(share, {letter for text in texts for letter in set(text)}):
        return "documents"
    what = "sequences in blocks" if share >= SPACED else f"strings of which {share:.0%} have several words"
    example = next(text for text in texts if len(text.split()) > 1)
    return _ask(who, f"{what}, such as {example[:30]!r}", "symbols", "documents")


def _of_symbols(flat: Flat, who: str) -> str:
    """Return "codes" for chain codes of closed contours, "symbols" for others, or raise."""
    if isinstance(flat.symbols, list) and len(set(flat.symbols)) > FEW:
        remedy = " For documents, join the words of each: ' '.join(words)."
        what = f"token lists of {len(set(flat.symbols))} different tokens"
        return _ask(who, what, "symbols", "documents", remedy=remedy)
    codes = _digits(flat)
    if len(codes) == 0:
        return "symbols"
    steps = STEPS[:: 2 if codes.max() < 4 else 1][codes]
    closed = (np.add.reduceat(steps, flat.offsets[:-1], axis=0) == 0).all(axis=1)
    if closed.all() and len(closed) >= CONTOURS:
        return "codes"
    if closed.mean() >= 0.5:
        return _ask(who, f"codes of which {closed.sum()} of {len(closed)} are closed paths", "symbols", "codes")
    return "symbols"


def _digits(flat: Flat) -> NDArray[np.int64]:
    """Return codes 0 to 7, or none where other symbols occur."""
    symbols = flat.symbols
    if isinstance(symbols, list):
        symbols = "".join(symbols) if all(isinstance(s, str) and len(s) == 1 for s in symbols) else np.zeros(0)
    codes = code_points(symbols).astype(np.int64) - ord("0") if isinstance(symbols, str) else np.asarray(symbols)
    right = codes.dtype.kind in "iu" and len(codes) and codes.min() >= 0 and codes.max() < len(STEPS)
    return codes.astype(np.int64) if right else np.zeros(0, np.int64)


def _ask(who: str, what: str, *kinds: str, remedy: str = "") -> str:
    """Raise about objects that may be of two kinds."""
    raise ValueError(
        f"{who}: the objects are {what}: {' or '.join(kinds)}? Say which, "
        f"{' or '.join(f'kind={kind!r}' for kind in kinds)}.{remedy}"
    )

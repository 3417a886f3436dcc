"""Which alphabet is meant: the named ones, short descriptions, and inference from a list of objects."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from genkern.data.coding import Alphabet, code_points, is_gap, spelled
from genkern.data.flatten import Flat, flatten_symbols
from genkern.data.inspection import FLOATS, ask_about_integers

__all__ = ["NAMED", "Alphabet", "as_alphabet", "infer_alphabet"]


def _biological(name: str, symbols: str, extras: str, missing: str) -> Alphabet:
    """Return a named alphabet: extras like "R=AG Y=CT", each letter of `missing` meaning any symbol."""
    table = [(item[0], tuple(sorted(map(symbols.index, item[2:])))) for item in extras.split()]
    table.append((missing[0], tuple(range(len(symbols)))))
    codes = {letter: code for code, letter in enumerate([*symbols, *(letter for letter, _ in table)])}
    canonical = set(codes)
    codes |= dict.fromkeys(missing, codes[missing[0]])
    codes |= {letter.lower(): code for letter, code in codes.items()}
    aliases = tuple((letter, code) for letter, code in codes.items() if letter not in canonical)
    aliases = (*aliases, (None, codes[missing[0]]))  # None also means NaN
    return Alphabet(tuple(symbols), tuple(table), aliases, name)


_IUPAC = "R=AG Y=CT S=CG W=AT K=GT M=AC B=CGT D=AGT H=ACT V=ACG"

OTHER_NAMES = {"protein": ("amino", "prot", "pept", "aa"), "rna": ("rna", "ribo"), "dna": ("dna", "nucl", "base")}
NAMED = {
    "dna": _biological("dna", "ACGT", _IUPAC, "NX-?."),
    "rna": _biological("rna", "ACGU", _IUPAC.replace("T", "U"), "NX-?."),
    "protein": _biological("protein", "ACDEFGHIKLMNPQRSTVWY", "B=DN Z=EQ J=IL", "X-?*.UO"),
}


def as_alphabet(spec: Any, missing: Any = None, unknown: str | None = None) -> Alphabet:
    """Return the alphabet that a short description means.

    Parameters
    ----------
    spec : "dna", "rna", "protein", str, iterable of hashables, int or Alphabet
        A name (in any case), the characters of a string, the symbols of an iterable, or m for the integers
        0..m-1. The named ones know lower case, the IUPAC codes (``R`` is A or G, ...; in proteins ``B``,
        ``Z``, ``J``) and fully missing symbols: ``N X - ? .`` in DNA and RNA, ``X - ? * .`` in proteins,
        where also the rare ``U`` and ``O``, which are none of the twenty letters, are treated as missing. In token
        lists of the named ones NaN and None are missing, too.
    missing : hashable, default=None
        One more symbol that means a fully missing one, e.g. ``"?"`` or ``-1``; ``float("nan")`` declares
        that NaN and None do. None: only the missing symbols of a named alphabet.
    unknown : {"error", "missing"}, optional
        Treatment of other symbols: an error, or a missing symbol, with a warning that counts them. The default is an
        error, or that of a given Alphabet.

    Returns
    -------
    alphabet : Alphabet

    Examples
    --------
    >>> from genkern import as_alphabet
    >>> as_alphabet("ab", missing="?").members
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    """
    if isinstance(spec, Alphabet):
        alphabet = spec
    elif isinstance(spec, str) and spec.lower() in NAMED:
        alphabet = NAMED[spec.lower()]
    elif isinstance(spec, numbers.Integral) and not isinstance(spec, bool):
        if spec < 1:
            raise ValueError(f"as_alphabet: expected at least 1 symbol. Got {spec}; give their number.")
        alphabet = Alphabet(tuple(range(int(spec))))
    elif isinstance(spec, Iterable) and not isinstance(spec, bytes):
        if isinstance(spec, str):
            _refuse_words(spec)
        alphabet = Alphabet(tuple(_plain(symbol) for symbol in spec))
    else:
        raise TypeError(f'as_alphabet: expected "dna", "rna", "protein", the symbols or their number. Got {spec!r}.')
    alphabet = alphabet.with_unknown(unknown)
    return alphabet if missing is None else _with_missing(alphabet, missing)


def _refuse_words(spec: str) -> None:
    """Raise for a word that is no name of an alphabet; a string of symbols has each of them once."""
    twice = next((symbol for symbol in spec if spec.count(symbol) > 1), None)
    if twice is not None:
        near = [ours for ours, words in OTHER_NAMES.items() if any(word in spec.lower() for word in words)]
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"as_alphabet: {spec!r:.60} is no name of an alphabet ('dna', 'rna', 'protein'), and no list of symbols: "
            f"{twice!r} occurs twice.{hint} Otherwise give every symbol once."
        )


def _plain(symbol: Any) -> Any:
    """Return a symbol as a Python value, refusing other types."""
    symbol = symbol.item() if isinstance(symbol, np.generic) else symbol
    if type(symbol).__hash__ is None or is_gap(symbol):
        raise TypeError(f"as_alphabet: a symbol must be hashable and not missing. Got {symbol!r}.")
    return symbol


def _with_missing(alphabet: Alphabet, missing: Any) -> Alphabet:
    """Return an alphabet in which one more symbol is fully missing."""
    symbol = None if is_gap(missing) else _plain(missing)
    everything = tuple(range(alphabet.size))
    full = [alphabet.size + i for i, (_, members) in enumerate(alphabet.ambiguities) if members == everything]
    known = alphabet._lookup.get(symbol)
    if known is not None and known in full:
        return alphabet
    if known is not None:
        raise ValueError(
            f"as_alphabet: missing={missing!r} already has a meaning in {alphabet!r}; leave it out of the "
            "symbols, or use another one."
        )
    if full:
        aliases = (*alphabet.aliases, (symbol, full[0]))
        return replace(alphabet, aliases=aliases)
    return replace(alphabet, ambiguities=(*alphabet.ambiguities, (symbol, everything)))


def infer_alphabet(X: Any, missing: Any = None, who: str = "infer_alphabet") -> Alphabet:
    """Return the alphabet of a whole list of objects: its distinct symbols, sorted.

    Integers are codes where they are few and small, at most 64 different ones from 0 to 255. Others are refused, since
    they may be measurements, and so are negative ones unless declared missing. A symbol that is absent from the list is
    unknown: where the alphabet is used later, it is treated as missing, with a warning. To avoid any of this, give the
    alphabet.

    Parameters
    ----------
    X : list of strings, token lists or 1-D integer arrays, or a 2-D array of integers
    missing : hashable, default=None
        The symbol of a missing observation, as in `as_alphabet`. ``"-"`` or ``"?"`` are ordinary symbols
        unless declared here.
    who : str
        The caller's name, for error messages.

    Returns
    -------
    alphabet : Alphabet
        With ``unknown="missing"``.
    """
    return infer_flat(flatten_symbols(X, who), missing, who)


def infer_flat(flat: Flat, missing: Any, who: str) -> Alphabet:
    """Return the alphabet of a flat list of objects."""
    if isinstance(flat.symbols, str):
        distinct: list[Any] = [chr(point) for point in np.unique(code_points(flat.symbols))]
    elif isinstance(flat.symbols, np.ndarray):
        distinct = np.unique(flat.symbols).tolist()
    else:
        distinct = list(set(flat.symbols))
    if missing is not None:
        gap = is_gap(missing)
        distinct = [symbol for symbol in distinct if not (is_gap(symbol) if gap else symbol == missing)]
    for wrong in filter(is_gap, distinct):
        at = next(at for at, symbol in enumerate(flat.symbols) if is_gap(symbol))
        raise ValueError(f"{who}: {flat.where(at)} is {wrong!r}; expected a symbol. Remove it, or {_declare(wrong)}.")
    if not distinct:
        raise ValueError(f"{who}: every symbol is missing, so none can be inferred; give the alphabet=.")
    if all(isinstance(symbol, numbers.Real) for symbol in distinct):
        distinct = _codes(distinct, flat, who)
    try:
        return as_alphabet(sorted(distinct), missing, unknown="missing")
    except TypeError:
        other = next(at for at, s in enumerate(flat.symbols) if type(s) is not type(flat.symbols[0]))
        raise TypeError(
            f"{who}: symbols of different types cannot be sorted: {flat.symbols[0]!r} (object 0, position 0) "
            f"and {flat.symbols[other]!r} ({flat.where(other)}). Give the symbols by alphabet=[...]."
        ) from None


def _declare(missing: Any) -> str:
    """Return how a symbol is declared missing where the alphabet is inferred."""
    value = spelled(missing)
    return (
        f"declare it by missing={value} (in check_objects, or emission=CategoricalEstimator(missing={value})); where "
        f"there is no such parameter, by alphabet=as_alphabet(symbols, missing={value})"
    )


def _codes(symbols: list[Any], flat: Flat, who: str) -> list[int]:
    """Return numbers as integer codes, refusing fractions, negatives, and codes that are not few and small."""
    refused = {symbol: symbol for symbol in symbols if not np.isfinite(symbol) or symbol != int(symbol) or symbol < 0}
    if refused:
        at, symbol = next((at, refused[symbol]) for at, symbol in enumerate(flat.symbols) if symbol in refused)
        why = "is not a symbol; expected integer codes. Use a continuous emission (recipes.series) for measurements"
        if np.isfinite(symbol) and symbol == int(symbol):
            why = (
                f"is negative; expected codes 0, 1, ... If it means a missing one, {_declare(int(symbol))}. If the "
                f"numbers are measurements, {FLOATS}"
            )
        raise ValueError(f"{who}: {flat.where(at)}: {symbol!r} {why}.")
    codes = [int(symbol) for symbol in symbols]
    ask_about_integers(codes, flat, who)
    return codes

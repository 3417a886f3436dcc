"""Alphabets as values: symbols to codes and back, and the members of ambiguous symbols."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from genkern.data.digests import make_key
from genkern.data.flatten import Flat, flatten_symbols
from genkern.data.serialize import register
from genkern.validation import check_option, warn

Codes = NDArray[np.int32]

SHOWN = 30  # symbols of larger alphabets are not listed in messages
NAMED_UNKNOWN = 5  # unknown symbols that a warning names
UNKNOWN = ("missing", "error")  # treatments of symbols outside an alphabet
STAND_IN = "\N{REPLACEMENT CHARACTER}"  # spelling of an unknown symbol among single characters

# The plain letters of the named alphabets.
LETTERS = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}


@register
@dataclass(frozen=True, repr=False)
class Alphabet:
    r"""A finite set of symbols with codes 0..m-1, and extra codes for symbols that are only partly known.

    An extra code means "one of these symbols": its probability is the sum of its members',

    .. math:: b_k(s) = \sum_j \mathrm{members}_{sj}\, b_k(j),

    so a fully missing symbol (every symbol is a member) has the factor one. An alphabet is a frozen value,
    hashable and compared by content. `as_alphabet` and `infer_alphabet` are the usual ways to make one.

    Parameters
    ----------
    symbols : tuple of hashables
        The m plain symbols; their position is their code.
    ambiguities : tuple of (symbol, tuple of member codes), default=()
        Extra symbols, with codes m, m + 1, ...
    aliases : tuple of (symbol, code), default=()
        Further spellings of a code, e.g. lower case; used by ``encode`` only.
    name : str, default=None
        "dna", "rna", "protein" or None.
    unknown : {"error", "missing"}, default="error"
        Treatment of symbols outside the alphabet: an error, or a fully missing symbol, with a warning that counts them.
        It affects how data are read, not the meaning of codes, and is ignored in comparisons and digests.

    Examples
    --------
    >>> from genkern import as_alphabet
    >>> dna = as_alphabet("dna")
    >>> dna.encode("ACGTn")
    array([ 0,  1,  2,  3, 14], dtype=int32)
    >>> dna.decode([0, 1, 14])
    'ACN'
    """

    symbols: tuple[Any, ...]
    ambiguities: tuple[tuple[Any, tuple[int, ...]], ...] = ()
    aliases: tuple[tuple[Any, int], ...] = ()
    name: str | None = None
    unknown: str = field(default="error", compare=False)

    def __post_init__(self) -> None:
        check_option(self.unknown, UNKNOWN, "unknown", "Alphabet")
        if not self.symbols:
            raise ValueError("Alphabet: expected at least one symbol. Got none; give the symbols.")
        seen: set[Any] = set()
        for symbol in [*self.symbols, *(extra for extra, _ in self.ambiguities), *(alias for alias, _ in self.aliases)]:
            if symbol in seen:
                raise ValueError(f"Alphabet: the symbol {symbol!r} occurs twice; remove one of them.")
            seen.add(symbol)
        for symbol, members in self.ambiguities:
            if not members or not set(members) <= set(range(self.size)) or len(set(members)) < len(members):
                raise ValueError(
                    f"Alphabet: the members of {symbol!r} must be distinct codes below {self.size}. Got {members}."
                )
        for alias, code in self.aliases:
            if not 0 <= code < self.n_codes:
                raise ValueError(f"Alphabet: the alias {alias!r} must be below {self.n_codes}. Got {code}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Alphabet, (self.symbols, self.ambiguities, self.aliases, self.name, self.unknown)

    def _to_fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def _from_fields(cls, given: dict[str, Any], trusted: bool = False) -> Alphabet:
        """Build an alphabet from fields of unknown origin."""
        made = cls(**given)
        tables = made.symbols, made.ambiguities, made.aliases
        if any(type(table) is not tuple for table in tables) or not isinstance(made.name, str | None):
            raise TypeError("Alphabet: expected tuples of symbols, ambiguities and aliases, and a name.")
        return made

    def __repr__(self) -> str:
        if self.name is not None:
            return f"Alphabet({self.name!r})"
        shown: Any = "".join(self.symbols) if is_text(self.symbols) else list(self.symbols)
        text = repr(shown) if self.size <= SHOWN else f"{shown[:10]!r}... {self.size} symbols"
        return f"Alphabet({text}, missing={self.ambiguities[0][0]!r})" if self.ambiguities else f"Alphabet({text})"

    @property
    def size(self) -> int:
        """The number m of plain symbols."""
        return len(self.symbols)

    @property
    def n_codes(self) -> int:
        """The number M of codes: plain symbols and extras."""
        return len(self.symbols) + len(self.extra_codes)

    @cached_property
    def missing_code(self) -> int | None:
        """The code of a fully missing symbol, None if there is none."""
        full = [code for code, (_, members) in enumerate(self.extra_codes) if len(members) == self.size]
        return self.size + full[0] if full else None

    @cached_property
    def extra_codes(self) -> tuple[tuple[Any, tuple[int, ...]], ...]:
        """Spelling and members of the codes m, m + 1, ...: the ambiguities, then unknown symbols if they need one."""
        if self.unknown == "error" or any(len(members) == self.size for _, members in self.ambiguities):
            return self.ambiguities
        known = [*self.symbols, *(symbol for symbol, _ in self.ambiguities)]
        spelling = STAND_IN if is_text(known) and STAND_IN not in known else None
        return (*self.ambiguities, (spelling, tuple(range(self.size))))

    @cached_property
    def extras(self) -> NDArray[np.float64]:
        """The (M - m, m) 0/1 membership of the extra codes."""
        table = np.zeros((len(self.extra_codes), self.size))
        for row, (_, members) in enumerate(self.extra_codes):
            table[row, list(members)] = 1.0
        table.flags.writeable = False
        return table

    @cached_property
    def members(self) -> NDArray[np.float64]:
        """The (M, m) 0/1 membership of all codes, the identity first; `sparse_members` takes O(m) numbers instead."""
        table = np.vstack([np.eye(self.size), self.extras])
        table.flags.writeable = False
        return table

    @cached_property
    def sparse_members(self) -> sparse.csr_array:
        """The same as a CSR array, with as many entries as codes have members."""
        known = [np.array(sorted(members), dtype=np.int64) for _, members in self.extra_codes]
        counts = [1] * self.size + [len(members) for members in known]
        starts = np.concatenate([[0], np.cumsum(counts)])
        symbols = np.concatenate([np.arange(self.size), *known])
        return sparse.csr_array((np.ones(len(symbols)), symbols, starts), shape=(self.n_codes, self.size))

    @cached_property
    def digest(self) -> str:
        """The hex digest of what the codes mean: symbols and members, not further spellings."""
        return make_key(self.symbols, self.ambiguities)

    def members_for(self, codes: NDArray[Any]) -> sparse.csr_array | None:
        """Return `sparse_members` if extra codes occur among (N,) codes, else None."""
        return self.sparse_members if codes.size and codes.max() >= self.size else None

    def with_unknown(self, unknown: str | None) -> Alphabet:
        """Return the alphabet with this treatment of unknown symbols; unchanged if None."""
        return self if unknown in (None, self.unknown) else replace(self, unknown=unknown)

    def append_extras(self, probs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (..., M) of the (..., m) of plain symbols: an extra code has the sum of its members."""
        return np.concatenate([probs, probs @ self.extras.T], axis=-1)

    def pass_to_members(self, raw: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (..., m) of the (..., M) of all codes: each member gets the sum over its extra codes."""
        return raw[..., : self.size] + raw[..., self.size :] @ self.extras

    def same_codes(self, other: Alphabet) -> bool:
        """Return whether every code means the same in another alphabet, which may have other spellings."""
        return self.symbols == other.symbols and self.ambiguities == other.ambiguities

    def encode(self, obj: Any, index: int | None = None, who: str = "Alphabet.encode") -> Codes:
        """Return the (T,) int32 codes of one string, token list or integer array.

        `index` is the object's index in its list, for the error message.
        """
        return self.encode_flat(flatten_symbols([obj], who), who, first=index)

    def encode_flat(self, flat: Flat, who: str, first: int | None = 0) -> Codes:
        """Return the (N,) int32 codes of a flat list of objects, of which the first has index `first`."""
        codes = self._find(flat.symbols)
        if codes.min() < 0:
            wrong = np.flatnonzero(codes < 0)
            refused = wrong if self.unknown == "error" else self._no_symbols(flat, wrong)
            if len(refused):
                at = int(refused[0])
                raise ValueError(f"{who}: {flat.where(at, first)}: {self._outside(flat.symbols[at], flat)}")
            codes[wrong] = cast(int, self.missing_code)
            self._warn_unknown(flat, wrong, who, first)
        return codes

    def _no_symbols(self, flat: Flat, wrong: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which positions outside the alphabet cannot be new symbols: fractions, or another kind of data."""
        if isinstance(flat.symbols, np.ndarray):
            values = flat.symbols[wrong]
            fractions = ~np.isnan(values) & ((values != np.rint(values)) | np.isinf(values))
            return wrong[fractions | (len(self._integers[0]) == 0)]
        if isinstance(flat.symbols, str):
            return wrong[: 0 if self._characters.max() >= 0 else 1]
        kinds = {kind_of_symbol(symbol) for symbol in self._lookup} | {"gap"}
        kinds |= {"character"} if "word" in kinds else set()  # a new word may be short, a new character is not long
        return np.array([at for at in wrong if kind_of_symbol(flat.symbols[at]) not in kinds], np.int64)

    def _warn_unknown(self, flat: Flat, wrong: NDArray[np.int64], who: str, first: int | None) -> None:
        """Warn how many symbols are unknown, in how many objects, and which."""
        places: dict[Any, int] = {}
        for at in wrong.tolist():
            places.setdefault(None if is_gap(flat.symbols[at]) else flat.symbols[at], at)
        first_ones = list(places.values())[:NAMED_UNKNOWN]
        named = ", ".join(f"{show(flat.symbols[at])} ({flat.where(at, first)})" for at in first_ones)
        more = f" and {len(places) - NAMED_UNKNOWN} others" if len(places) > NAMED_UNKNOWN else ""
        owners = np.unique(np.searchsorted(flat.offsets, wrong, side="right"))
        warn(
            f"{who}: {len(wrong)} of {len(flat.symbols)} symbols, in {len(owners)} of {len(flat.offsets) - 1} objects, "
            f"are not in {self!r} and count as missing: {named}{more}. Name an alphabet= that has all symbols, or ask "
            "for an error by unknown='error' (in an HMMEstimator, MixtureEstimator or a recipe without unknown=, by "
            "emission= or component=CategoricalEstimator(unknown='error')).",
            UserWarning,
            [("unknown symbol", show(symbol)) for symbol in places],
        )

    def decode(self, codes: ArrayLike) -> str | list[Any]:
        """Return the symbols of (T,) codes: a string if all symbols are single characters, else a list."""
        given = np.asarray(codes, dtype=np.int64)
        if given.size and not 0 <= given.min() <= given.max() < self.n_codes:
            raise ValueError(f"Alphabet.decode: codes must be 0..{self.n_codes - 1}. Got {given.min()}..{given.max()}.")
        decoded = map(self._spelled.__getitem__, given.tolist())
        return "".join(decoded) if self._is_text else list(decoded)

    @cached_property
    def _spelled(self) -> list[Any]:
        """The canonical spelling of every code."""
        return [*self.symbols, *(symbol for symbol, _ in self.extra_codes)]

    @cached_property
    def _is_text(self) -> bool:
        """Whether every code is spelled by one character."""
        return is_text(self._spelled)

    @cached_property
    def _lookup(self) -> dict[Any, int]:
        """Codes by symbol, aliases included."""
        known = self._spelled[: self.size + len(self.ambiguities)]  # the spelling of unknown symbols is one itself
        return {symbol: code for code, symbol in enumerate(known)} | dict(self.aliases)

    @cached_property
    def _characters(self) -> Codes:
        """Codes by code point, -1 where there is none; the last entry is for all larger ones."""
        points = {ord(s): code for s, code in self._lookup.items() if isinstance(s, str) and len(s) == 1}
        table = np.full(max([*points, 127]) + 2, -1, dtype=np.int32)
        table[list(points)] = list(points.values())
        return table

    @cached_property
    def _integers(self) -> tuple[NDArray[np.int64], Codes]:
        """Sorted integer symbols and their codes."""
        pairs = sorted((int(s), code) for s, code in self._lookup.items() if isinstance(s, numbers.Integral))
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1].astype(np.int32)

    def _find(self, symbols: Any) -> Codes:
        """Return (N,) codes of flat symbols, -1 for those outside the alphabet."""
        if isinstance(symbols, str):
            points = code_points(symbols)
            if points.itemsize > 1:  # bytes are ASCII here, and the table has all of it
                points = np.minimum(points, len(self._characters) - 1)
            return self._characters[points]
        if isinstance(symbols, np.ndarray):
            return self._find_numbers(symbols)
        found = np.fromiter(map(self._lookup.get, symbols, itertools.repeat(-1)), np.int32, count=len(symbols))
        if None in self._lookup:
            for at in np.flatnonzero(found < 0):
                if is_gap(symbols[at]):
                    found[at] = self._lookup[None]
        return found

    def _find_numbers(self, values: NDArray[Any]) -> Codes:
        """Return (N,) codes of numbers, -1 for those outside the alphabet; NaN is the symbol None."""
        keys, codes = self._integers
        unbroken = len(keys) > 0 and int(keys[-1]) - int(keys[0]) == len(keys) - 1 and values.dtype.kind in "iu"
        if len(keys) == 0:
            found = np.full(len(values), -1, dtype=np.int32)
        elif unbroken and keys[0] <= values.min() and values.max() <= keys[-1]:
            found = codes.take(values.astype(np.int64, copy=False) - keys[0])  # needs no search
        else:
            at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
            found = np.where(keys[at] == values, codes[at], np.int32(-1))
        if None in self._lookup and values.dtype.kind == "f":
            found[np.isnan(values)] = self._lookup[None]
        return found

    def _outside(self, symbol: Any, flat: Flat) -> str:
        """Return the error message for a symbol outside the alphabet, with the remedy."""
        symbol = symbol.item() if isinstance(symbol, np.generic) else symbol
        if is_gap(symbol):
            return f"{symbol!r} is not in {self!r}. Declare it missing by {self._with_missing(symbol)}, or remove it."
        if isinstance(symbol, float) and not symbol.is_integer():
            return (
                f"{symbol!r} is not a symbol; expected integers or strings. Use a continuous emission "
                "(recipes.series) for measurements, or bin them into integer codes."
            )
        symbol = int(symbol) if isinstance(symbol, float) else symbol  # codes are ints, also where floats came
        return self._other_kind(symbol) or (
            f"the symbol {symbol!r} is not in {self!r}.{self._hint(flat)} Name an alphabet= that has all symbols of "
            "all data, also those absent from a training set (for an HMMEstimator by "
            "emission=CategoricalEstimator(alphabet=...)); let unknown symbols count as missing by unknown='missing'; "
            f"or, if it stands for a missing one, declare it by {self._with_missing(symbol)}."
        )

    def _other_kind(self, symbol: Any) -> str:
        """Return the error message for a number where all symbols are strings, or the reverse; else an empty string."""
        text = isinstance(symbol, str)
        kinds = {isinstance(known, str) for known in self._lookup if known is not None}
        if text in kinds or not (text or isinstance(symbol, numbers.Integral)):
            return ""
        has, got = ("numbers", "strings") if text else ("strings", "numbers")
        other, convert = (int(symbol) if symbol.isdecimal() else None, "int") if text else (str(symbol), "str")
        remedy = f"Pass {has}" + (f": [[{convert}(s) for s in x] for x in X]" if other in self._lookup else " here too")
        named = "a list of the strings" if text else "their number, such as alphabet=8 for 0 to 7, or a list"
        return (
            f"the symbol {symbol!r} is not in {self!r}: the model knows {has}, the object holds {got}. {remedy}; or, "
            f"if {got} are meant, fit to {got}, or name them by alphabet= ({named})."
        )

    def _with_missing(self, symbol: Any) -> str:
        """Return the source code of this alphabet with one more symbol, which is missing."""
        spec = "alphabet"  # whatever was given
        if self.name is not None:
            spec = repr(self.name)
        elif not self.ambiguities and self.symbols == tuple(range(self.size)):
            spec = str(self.size)
        elif not self.ambiguities and self.size <= SHOWN and not self.aliases:
            spec = repr("".join(self.symbols) if is_text(self.symbols) else list(self.symbols))
        return f"alphabet=as_alphabet({spec}, missing={spelled(symbol)})"

    def _hint(self, flat: Flat) -> str:
        """Return which other named alphabet all objects fit, if this is a named one: a likely mix-up."""
        if self.name in LETTERS and not isinstance(flat.symbols, np.ndarray):
            used = set(flat.symbols)
            for name, letters in LETTERS.items():
                if name != self.name and (used <= set(letters) or used <= set(letters.lower())):
                    return f' All objects fit alphabet="{name}".'
        return ""


def code_points(text: str) -> NDArray[Any]:
    """Return the (N,) code points of a string."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def is_gap(token: Any) -> bool:
    """Return whether a token is None, NaN or the NA of pandas."""
    if token is None or type(token).__name__ == "NAType":
        return True
    return isinstance(token, float | np.floating) and bool(token != token)


def kind_of_symbol(symbol: Any) -> str:
    """Return the kind of a token: "gap", "number", "character", "word" or the name of its type."""
    if is_gap(symbol):
        return "gap"
    if isinstance(symbol, str):
        return "character" if len(symbol) == 1 else "word"
    return "number" if isinstance(symbol, numbers.Real) else type(symbol).__name__


def show(symbol: Any) -> str:
    """Return the text of a symbol in messages."""
    return f"{symbol.item() if isinstance(symbol, np.generic) else symbol!r:.50}"


def spelled(missing: Any) -> str:
    """Return the code for a missing symbol, as ``missing=`` takes it."""
    return "float('nan')" if is_gap(missing) else repr(missing)


def is_text(symbols: Iterable[Any]) -> bool:
    """Return whether all symbols are single characters."""
    return all(isinstance(symbol, str) and len(symbol) == 1 for symbol in symbols)

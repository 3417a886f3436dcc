"""Symbols as numbers: sequences become series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from genkern.data.objects import Alphabet, Packed, handed_on, pack_symbols
from genkern.data.transformer import SYMBOLS, Transformer
from genkern.validation import Floats, check_array, check_option

TABLES = ("protein", "angles", "one-hot")

# By amino acid, in the order of the alphabet "protein"; for units and sources see Channels.
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
PROPERTIES = {
    "hydropathy": "1.8 2.5 -3.5 -3.5 2.8 -0.4 -3.2 4.5 -3.9 3.8 1.9 -3.5 -1.6 -3.5 -4.5 -0.8 -0.7 4.2 -0.9 -1.3",
    "volume": "88.6 108.5 111.1 138.4 189.9 60.1 153.2 166.7 168.6 166.7 "
    "162.9 114.1 112.7 143.8 173.4 89.0 116.1 140.0 227.8 193.6",
    "charge": "0 0 -1 -1 0 0 0 0 1 0 0 0 0 0 1 0 0 0 0 0",
    "helix": "1.42 0.70 1.01 1.51 1.13 0.57 1.00 1.08 1.16 1.21 1.45 0.67 0.57 1.11 0.98 0.77 0.83 1.06 1.08 0.69",
    "sheet": "0.83 1.19 0.54 0.37 1.38 0.75 0.87 1.60 0.74 1.30 1.05 0.89 0.55 1.10 0.93 0.75 1.19 1.70 1.37 1.47",
    "turn": "0.66 1.19 1.46 0.74 0.60 1.56 0.95 0.47 1.01 0.59 0.60 1.56 1.52 0.98 0.95 1.43 0.96 0.50 0.96 1.14",
}


class Channels(Transformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    r"""Series of numbers in place of symbols, by a table with one row per symbol.

    .. math:: x_t \mapsto \frac{1}{|M(x_t)|} \sum_{s \in M(x_t)} \mathrm{table}_s

    where :math:`M(x_t)` holds the symbol alone or, if it is ambiguous or missing, all symbols that it may mean,
    each as likely (as in ``Spectrum``): no channel is NaN, and a missing symbol has the mean of the table.

    Parameters
    ----------
    table : {"protein", "angles", "one-hot"}, dict or array-like of shape (m,) or (m, d)
        The d numbers of each symbol: a dict from symbols to numbers or to lists of d numbers, or rows in the order of
        the alphabet, or one of

        - "protein": six properties of amino acids, hydropathy [1]_, volume in cubic ångström [2]_, charge at pH 7, and
          the propensities for helix, sheet and turn [3]_.
        - "angles": cosine and sine of :math:`2 \pi j / m` for the j-th of m symbols, as for the directions of chain
          codes [4]_. The alphabet must be given, since a direction absent from the data would change the angles of the
          others.
        - "one-hot": one channel per symbol.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols: "dna", "rna", "protein", an explicit list or their number. The default is "protein" for that table,
        the keys of a dict, else the symbols of all objects given to ``fit``.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.

    Attributes
    ----------
    alphabet_ : Alphabet
        The m symbols.
    table_ : ndarray of shape (M, d)
        The numbers of the M codes of the alphabet, those of ambiguous symbols last.

    References
    ----------
    .. [1] Kyte & Doolittle (1982), A simple method for displaying the hydropathic character of a protein, table 2.
    .. [2] Zamyatnin (1972), Protein volume in solution.
    .. [3] Chou & Fasman (1978), Empirical predictions of protein conformation, Annual Review of Biochemistry 47.
    .. [4] Freeman (1961), On the encoding of arbitrary geometric configurations.

    Examples
    --------
    >>> from genkern import Channels
    >>> Channels({"a": 0, "b": 1}).fit_transform(["ab", "bba"])[1].ravel()
    array([1., 1., 0.])
    >>> Channels("angles", alphabet=4).fit_transform([[0, 1, 3]])[0].round(2) + 0
    array([[ 1.,  0.],
           [ 0.,  1.],
           [ 0., -1.]])
    >>> Channels("protein").fit_transform(["MKV"])[0][:, 0]
    array([ 1.9, -3.9,  4.2])
    """

    _fitted = "table_"
    _inputs = SYMBOLS

    def __init__(self, table: Any, alphabet: Any = None, unknown: str | None = None):
        self.table = table
        self.alphabet = alphabet
        self.unknown = unknown

    def _fit(self, X: Any, y: Any) -> None:
        known: Any = pack_symbols(X, self._given_alphabet(), "Channels", unknown=self.unknown).alphabet
        rows = self._rows(known)
        extras = known.extras @ rows / known.extras.sum(axis=1, keepdims=True)
        self.alphabet_, self.table_ = known, np.concatenate([rows, extras])

    def _encode(self, X: Any) -> Packed:
        return pack_symbols(X, self.alphabet_, "Channels")

    def _transform(self, packed: Packed) -> list[Floats]:
        return handed_on(packed._replace(values=self.table_[packed.values], alphabet=None))

    def _names_out(self, given: Any) -> Any:
        """Return properties, "cos" and "sin" or symbols for the tables that have a name, else x0, x1, ..."""
        if not isinstance(self.table, str):
            return [f"x{c}" for c in range(self.table_.shape[1])]
        symbols = list(map(str, self.alphabet_.symbols))
        return {"protein": list(PROPERTIES), "angles": ["cos", "sin"], "one-hot": symbols}[self.table]

    def _given_alphabet(self) -> Any:
        """Return the specification of the symbols, None if they are inferred from objects."""
        if self.alphabet is None and isinstance(self.table, str):
            if check_option(self.table, TABLES, "table", "Channels, if a name,") == "angles":
                raise ValueError(
                    "Channels: table='angles' needs the alphabet, since an absent symbol would turn the directions of "
                    "others. Got None; give all symbols in order, e.g. alphabet='01234567', or their number."
                )
            return "protein" if self.table == "protein" else None
        return list(self.table) if self.alphabet is None and isinstance(self.table, Mapping) else self.alphabet

    def _rows(self, alphabet: Alphabet) -> Floats:
        """Return the numbers (m, d) of the symbols of an alphabet."""
        table: Any = self.table
        if isinstance(table, str):
            check_option(table, TABLES, "table", "Channels, if a name,")
            if table == "one-hot":
                return np.eye(alphabet.size)
            if table == "angles":
                turns = 2.0 * np.pi * np.arange(alphabet.size) / alphabet.size
                return np.column_stack([np.cos(turns), np.sin(turns)])
            columns = np.array([line.split() for line in PROPERTIES.values()], dtype=np.float64)
            table = dict(zip(AMINO_ACIDS, columns.T))
        if isinstance(table, Mapping):
            absent = [symbol for symbol in alphabet.symbols if symbol not in table]
            if absent:
                raise ValueError(f"Channels: the table has no numbers for the symbol {absent[0]!r}; add them.")
            table = [table[symbol] for symbol in alphabet.symbols]
        rows = check_array(table, "table", "Channels")
        if rows.ndim not in (1, 2) or len(rows) != alphabet.size or rows.size == 0:
            raise ValueError(
                f"Channels: 'table' must have shape (m,) or (m, d), one row for each of the {alphabet.size} symbols of "
                f"{alphabet!r}. Got shape {rows.shape}."
            )
        return rows.reshape(alphabet.size, -1)

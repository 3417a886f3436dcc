"""Symbols replaced by those of a reduced alphabet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.data.objects import Alphabet, Packed, as_alphabet, pack_symbols
from genkern.data.transformer import SYMBOLS, Transformer

GROUPINGS = {  # of amino acids; for sources see Recode
    "conjoint7": "AGV ILFP YMTS HNQW RK DE C",
    "dayhoff6": "AGPST C DENQ FWY HRK ILMV",
    "murphy10": "A C G H P LVIM ST FYW EDNQ KR",
}


class Recode(Transformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Write the first symbol of its group in place of every symbol.

    Words of a reduced alphabet are fewer, so that longer ones can be counted, and differ only where the difference
    matters.

    Parameters
    ----------
    groups : {"conjoint7", "dayhoff6", "murphy10"}, str or sequence of sequences
        The groups of symbols: for proteins "conjoint7" [1]_, "dayhoff6" [2]_ and "murphy10" [3]_; otherwise strings
        such as "AG CT", with blanks between groups, or lists of symbols. Each symbol of the alphabet is in one group.
    alphabet : str, int, sequence or Alphabet, optional
        The symbols: "dna", "rna", "protein", an explicit list or their number. The default is "protein" for the groups
        that have a name, else the symbols of all groups.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error, which is the default
        unless a given Alphabet has another.

    Attributes
    ----------
    alphabet_ : Alphabet
        The first symbols of the groups, and the ambiguous symbols that may mean several groups.

    Notes
    -----
    An ambiguous symbol whose members are all in one group becomes that group; one whose members are in several groups
    is kept, and means any of these groups. Later steps need the reduced alphabet if such symbols may occur:
    ``Spectrum(2, alphabet=reduced_alphabet("murphy10"))``.

    References
    ----------
    .. [1] Shen et al. (2007), Predicting protein-protein interactions based only on sequences information, table 1.
    .. [2] Dayhoff, Schwartz & Orcutt (1978), A model of evolutionary change in proteins.
    .. [3] Murphy, Wallqvist & Levy (2000), Simplified amino acid alphabets for protein fold recognition and
       implications for folding, figure 1.

    Examples
    --------
    >>> from genkern import Recode
    >>> Recode("AG CT", alphabet="dna").fit_transform(["ATTGC", "gaRYN"])
    ['ACCAC', 'AAACN']
    >>> Recode([["up", "down"], ["left", "right"]]).fit_transform([["down", "left"]])
    [['up', 'left']]
    """

    _fitted = "alphabet_"
    _inputs = SYMBOLS

    def __init__(self, groups: Any, alphabet: Any = None, unknown: str | None = None):
        self.groups = groups
        self.alphabet = alphabet
        self.unknown = unknown

    def _fit(self, X: Any, y: Any) -> None:
        self._known, self._codes, reduced = _reduce(self.groups, self.alphabet, self.unknown)
        self._encode(X)
        self.alphabet_ = reduced

    def _encode(self, X: Any) -> Packed:
        return pack_symbols(X, self._known, "Recode")

    def _transform(self, packed: Packed) -> list[Any]:
        return packed._replace(values=self._codes[packed.values], alphabet=self.alphabet_).objects()

    def _names_out(self, given: Any) -> Any:
        return ["symbol"]


def reduced_alphabet(groups: Any, alphabet: Any = None, unknown: str | None = None) -> Alphabet:
    """Return the alphabet of the output of ``Recode`` with the same arguments, without a fit.

    Parameters
    ----------
    groups, alphabet, unknown
        As of ``Recode``.

    Returns
    -------
    alphabet : Alphabet
    """
    return _reduce(groups, alphabet, unknown)[2]


def _reduce(groups: Any, alphabet: Any, unknown: str | None) -> tuple[Alphabet, NDArray[np.int32], Alphabet]:
    """Return the alphabet, the new code (M,) of each of its codes, and the reduced alphabet."""
    if isinstance(groups, str) and groups in GROUPINGS:
        groups, alphabet = GROUPINGS[groups], "protein" if alphabet is None else alphabet
    members = [list(group) for group in (groups.split() if isinstance(groups, str) else groups)]
    listed = [symbol for group in members for symbol in group]
    known = as_alphabet(listed if alphabet is None else alphabet, unknown=unknown)
    odd = [s for s in known.symbols if listed.count(s) != 1] + [s for s in listed if s not in known.symbols]
    if odd or not all(members):
        what = f"{odd[0]!r} {listed.count(odd[0])} times" if odd else "an empty group"
        raise ValueError(f"Recode: each symbol of {known!r}, and no other, must be in one group. Got {what}.")
    group_of = {symbol: g for g, group in enumerate(members) for symbol in group}
    codes = [group_of[symbol] for symbol in known.symbols]
    several: list[tuple[Any, tuple[int, ...]]] = []
    for symbol, possible in known.extra_codes:
        choices = tuple(sorted({codes[member] for member in possible}))
        codes.append(choices[0] if len(choices) == 1 else len(members) + len(several))
        several += [(symbol, choices)] if len(choices) > 1 else []
    reduced = Alphabet(tuple(group[0] for group in members), tuple(several), unknown=known.unknown)
    return known, np.array(codes, dtype=np.int32), reduced

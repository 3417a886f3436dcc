"""Distributions over the symbols of an alphabet."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core import hmm as core
from genkern.models import simplex
from genkern.models.characteristic import Scaled, Waves
from genkern.models.draws import draw_rows
from genkern.models.leaf import Leaf
from genkern.models.lean_information import Information
from genkern.objects import Alphabet, Packed, as_alphabet, pack_symbols
from genkern.validation import Floats, check_probabilities


class Categorical(Leaf):
    r"""Categorical distributions, :math:`p(x = k) = \theta_k`.

    Parameters
    ----------
    probs : array-like of shape batch + (m,)
        Probabilities of the m symbols.
    alphabet : Alphabet, str, int or sequence of symbols, optional
        What the symbols are: ``"dna"``, ``"rna"``, ``"protein"`` or an explicit list. The default is 0, ..., m - 1.
        An ambiguity code stands for any of its members: its probability is the sum of theirs.

    Examples
    --------
    >>> from genkern import Categorical
    >>> Categorical([0.5, 0.25, 0.25], alphabet="abc").log_prob(["aab"]).round(4)
    array([-2.7726])
    """

    _fields = ("probs", "alphabet")
    family_name = "categorical"
    counts_symbols = True
    probs: Floats
    alphabet: Alphabet

    def __init__(self, probs: ArrayLike, alphabet: Any = None):
        table = check_probabilities(probs, "probs", "Categorical")
        letters = as_alphabet(table.shape[-1] if alphabet is None else alphabet)
        if letters.size != table.shape[-1]:
            raise ValueError(
                f"Categorical: 'probs' must end in an axis of {letters.size} symbols, one per letter of the "
                f"alphabet. Got shape {table.shape}."
            )
        self._freeze(probs=table, alphabet=letters)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.probs.shape[:-1]

    def pack(self, X: Any) -> Packed:
        """Encode sequences or bags of symbols."""
        return pack_symbols(X, self.alphabet, "Categorical")

    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log p of every code, shape (N,) + batch; an ambiguity code has its members' total."""
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(np.moveaxis(self._symbol_table(points), -1, 0)[points])
        return logs

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): codes of object i under members [i, :]."""
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self._symbol_table(packed.values)[packed.owners, :, packed.values])
        return logs

    def _symbol_table(self, codes: NDArray[np.int32]) -> Floats:
        """Return probabilities batch + (M,), with columns for ambiguity codes only where they occur."""
        if len(codes) == 0 or codes.max() < self.alphabet.size:
            return self.probs
        return self.alphabet.append_extras(self.probs)

    def evidence(self, packed: Packed) -> core.Evidence:
        """Return one table row per symbol; batch (n,) or (n_objects, n)."""
        table = np.moveaxis(self._symbol_table(packed.values), -1, -2)
        table = np.ascontiguousarray(table).reshape(-1, self.shape[-1])
        return core.Evidence(table, np.zeros(len(table)), packed.values)

    def emission_statistics(self, packed: Packed, evidence: core.Evidence, raw: Floats) -> dict[str, Floats]:
        """Return the raw derivative ``probs`` (G, n, m); ambiguity codes pass theirs on to their members."""
        symbols = np.moveaxis(raw, 1, 2)
        if symbols.shape[-1] > self.alphabet.size:
            symbols = self.alphabet.pass_to_members(symbols)
        return {"probs": np.ascontiguousarray(symbols)}

    def emission_totals(self, packed: Packed, evidence: core.Evidence, raw: Floats) -> dict[str, Floats]:
        """Return the same from a pass that summed over objects."""
        return self.emission_statistics(packed, evidence, raw)

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return the raw derivative ``probs`` (G, n, m) of weighted symbols."""
        table = self._symbol_table(packed.values)
        n, width = table.shape[-2:]
        groups = np.zeros(len(packed.values), np.int64) if totals else packed.owners
        cells = groups * width + packed.values
        size = (1 if totals else packed.n_objects) * width
        counts = np.stack([np.bincount(cells, weights[:, k], size).reshape(-1, width) for k in range(n)], axis=1)
        raw = np.divide(counts, table, out=np.zeros_like(counts), where=counts > 0)
        return {"probs": self.alphabet.pass_to_members(raw) if width > self.alphabet.size else raw}

    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, n * m)."""
        derivative = simplex.gradient(blocks["probs"], self.probs, coordinates)
        return derivative.reshape(len(derivative), -1)

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return one (m, m) block per member."""
        return [*simplex.information(self.probs, draws, coordinates)]

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the coordinates of the probabilities, flattened row-major."""
        return simplex.coordinates_of(self.probs, coordinates).ravel()

    def with_parameters(self, vector: Floats, coordinates: str = "softmax") -> Self:
        """Return the model at these coordinates."""
        return self._restore(
            simplex.from_coordinates(np.array(vector).reshape(self.probs.shape), coordinates), self.alphabet
        )

    @property
    def parameter_names(self) -> list[str]:
        """Names ``probs[state,symbol]``."""
        return [
            f"probs[{','.join(map(str, (*index[:-1], self.alphabet.symbols[index[-1]])))}]"
            for index in np.ndindex(self.probs.shape)
        ]

    def waves(self) -> Waves:
        """Return the dimension m of one-hot vectors, of which no frequency is damped."""
        m = self.alphabet.size
        return Waves(m, np.zeros((self.probs.size // m, m)), m)

    def characteristic(self, waves: Floats) -> Scaled:
        r"""Return :math:`\sum_a \theta_a e^{i \omega_a}`: symbols are one-hot vectors."""
        return Scaled(self.probs @ np.cos(waves.T) + 1j * (self.probs @ np.sin(waves.T)), None)

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int32]:
        """Return one code from each named member."""
        return draw_rows(self.probs, which, rng).astype(np.int32)

    def sample(self, n: int, *, length: int = 1, rng: Any = None) -> list[Any]:
        """Return n bags of ``length`` symbols."""
        self._require_single("sample")
        codes = self._restore(self.probs[None], self.alphabet).draw(
            np.zeros(n * length, np.int64), np.random.default_rng(rng)
        )
        return [self.alphabet.decode(bag) for bag in codes.reshape(n, length)]

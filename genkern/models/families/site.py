"""Position-specific distributions over aligned windows of symbols, and their estimation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.data.objects import Alphabet, Packed, as_alphabet, pack_symbols
from genkern.models import simplex
from genkern.models.estimator import LeafEstimator, with_alphabet_of
from genkern.models.information import Information
from genkern.models.leaf import Leaf
from genkern.models.positions import is_window
from genkern.validation import Floats, check_int, check_number, check_probabilities

POSITIONS = 32  # at a time, of derivatives by position


class SiteModel(Leaf):
    r"""Independent positions, :math:`p(x) = \prod_{l=1}^{L} \theta_{l, x_l}`.

    An object is one window of exactly L symbols: a string, a token list or an array of codes.

    Parameters
    ----------
    probs : array-like of shape batch + (L, m)
        Probabilities of the m symbols at each of the L positions.
    alphabet : Alphabet, str, int or sequence of symbols, optional
        What the symbols are: ``"dna"``, ``"rna"``, ``"protein"`` or an explicit list. The default is 0, ..., m - 1.
        The probability of an ambiguity code is the sum over its members.

    Notes
    -----
    One such model per class is the naive Bayes classifier of aligned windows; a stack of them gives the components of a
    mixture of products. The Fisher kernel is :math:`\sum_l ([x_l = x'_l] / \theta_{l, x_l} - 1)`: with the uniform
    model of Jaakkola & Haussler (1999), 25 positions of four letters, four times the number of matches minus 25.

    References
    ----------
    Jaakkola & Haussler (1999), Exploiting generative models in discriminative classifiers, section 5.

    Examples
    --------
    >>> from genkern import SiteModel
    >>> SiteModel([[0.5, 0.5], [0.9, 0.1]], alphabet="ab").log_prob(["aa", "bb"]).round(4)
    array([-0.7985, -2.9957])
    """

    _fields = ("probs", "alphabet")
    probs: Floats
    alphabet: Alphabet

    def __init__(self, probs: ArrayLike, alphabet: Any = None):
        table = check_probabilities(probs, "probs", "SiteModel")
        letters = as_alphabet(table.shape[-1] if alphabet is None else alphabet)
        if table.ndim < 2 or table.shape[-2] == 0 or table.shape[-1] != letters.size:
            raise ValueError(
                f"SiteModel: 'probs' must have shape batch + (L, {letters.size}), one row per position and one column "
                f"per letter of the alphabet. Got {table.shape}."
            )
        self._freeze(probs=table, alphabet=letters)

    @classmethod
    def uniform(cls, length: int, alphabet: Any) -> Self:
        """Return the model in which all windows of this length are equally probable.

        Parameters
        ----------
        length : int
            The number L of positions.
        alphabet : Alphabet, str, int or sequence of symbols
        """
        letters = as_alphabet(alphabet)
        size = check_int(length, "length", "SiteModel.uniform", 1)
        return cls(np.full((size, letters.size), 1.0 / letters.size), letters)

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch of the stack."""
        return self.probs.shape[:-2]

    def pack(self, X: Any) -> Packed:
        """Encode windows; each is one point, whether as a bag or as a sequence."""
        return pack_windows(X, self.alphabet, "SiteModel", length=self.probs.shape[-2])

    def _symbol_table(self, codes: NDArray[np.int32]) -> Floats:
        """Return probabilities batch + (L, M), with columns for ambiguity codes only where they occur."""
        if len(codes) == 0 or codes.max() < self.alphabet.size:
            return self.probs
        return self.alphabet.append_extras(self.probs)

    def log_density(self, points: NDArray[Any]) -> Floats:
        """Return log p of every window (N, L) of codes, shape (N,) + batch."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.moveaxis(self._symbol_table(points), (-2, -1), (0, 1)))
        total = np.zeros((len(points), *self.shape))
        for position, column in enumerate(points.T):
            total += logs[position][column]
        return total

    def own_log_density(self, packed: Packed) -> Floats:
        """Return (N, n): windows of object i under members [i, :]."""
        with np.errstate(divide="ignore"):
            logs = np.log(self._symbol_table(packed.values))
        total = np.zeros((packed.n_points, logs.shape[1]))
        for position, column in enumerate(packed.values.T):
            total += logs[packed.owners, :, position, column]
        return total

    def weigh(self, packed: Packed, weights: Floats, totals: bool) -> dict[str, Floats]:
        """Return the raw derivative ``probs`` (G, n, L, m) of weighted windows."""
        table = self._symbol_table(packed.values)
        n, length, width = table.shape[-3:]
        groups = np.zeros(packed.n_points, np.int64) if totals else packed.owners
        cells = ((groups[:, None] * length + np.arange(length)) * width + packed.values).ravel()
        shape = (1 if totals else packed.n_objects, length, width)
        counts = np.empty((shape[0], n, length, width))
        for k in range(n):
            share = np.repeat(weights[:, k], length)
            counts[:, k] = np.bincount(cells, share, shape[0] * length * width).reshape(shape)
        raw = np.divide(counts, table, out=np.zeros_like(counts), where=counts > 0)
        return {"probs": self.alphabet.pass_to_members(raw) if width > self.alphabet.size else raw}

    def member_gradient(self, blocks: dict[str, Floats], coordinates: str) -> Floats:
        """Return derivatives (G, n * L * m)."""
        derivative = simplex.gradient(blocks["probs"], self.probs, coordinates)
        return derivative.reshape(len(derivative), -1)

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return one (m, m) block per member and position."""
        visits = np.repeat(draws[:, None], self.probs.shape[-2], axis=1)
        return [*simplex.information(self.probs, visits, coordinates)]

    def parameters(self, coordinates: str = "softmax") -> Floats:
        """Return the coordinates of the probabilities, flattened row-major."""
        return simplex.coordinates_of(self.probs, coordinates).ravel()

    def with_parameters(self, vector: Floats, coordinates: str = "softmax") -> Self:
        """Return the model at these coordinates."""
        rows = np.array(vector, dtype=np.float64).reshape(self.probs.shape)
        return self._restore(simplex.from_coordinates(rows, coordinates), self.alphabet)

    @property
    def parameter_names(self) -> list[str]:
        """Names ``probs[position,symbol]``; of a stack, with the member's index first."""
        return [
            f"probs[{','.join(map(str, (*index[:-1], self.alphabet.symbols[index[-1]])))}]"
            for index in np.ndindex(self.probs.shape)
        ]

    def position_log_probs(self, packed: Packed) -> Floats:
        """Return the log-probability of each symbol of one window, (T,), of which none depends on others."""
        if self.shape or not is_window(packed):
            return super().position_log_probs(packed)
        columns = [self._restore(self.probs[t : t + 1], self.alphabet) for t in range(len(self.probs))]
        return np.array([site.log_density(packed.values[:, t : t + 1])[0] for t, site in enumerate(columns)])

    def position_gradients(self, packed: Packed, coordinates: str = "softmax") -> Iterator[tuple[int, Floats]]:
        """Yield the derivatives of the symbols of one window, some at a time, by the parameters of their positions."""
        if self.shape or not is_window(packed):
            yield from super().position_gradients(packed, coordinates)
            return
        length, m = self.probs.shape
        grads = self.log_prob_grad(packed, coordinates).reshape(length, m)
        for first in range(0, length, POSITIONS):
            part = grads[first : first + POSITIONS]
            out = np.zeros((len(part), len(part), m))
            out[np.arange(len(part)), np.arange(len(part))] = part
            yield first * m, out.reshape(len(part), -1)

    def beginning(self, length: int) -> SiteModel:
        """Return the distribution of the first symbols of a window."""
        return self._restore(self.probs[..., :length, :], self.alphabet)

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int32]:
        """Return one window (L,) of codes from each named member."""
        sums = np.cumsum(self.probs, axis=-1)
        targets = rng.random((len(which), self.probs.shape[-2])) * sums[which, :, -1]
        codes = np.zeros(targets.shape, np.int32)
        for symbol in range(self.alphabet.size - 1):
            codes += targets >= sums[which, :, symbol]
        return codes

    def sample(self, n: int, *, length: int | None = None, rng: Any = None) -> list[Any]:
        """Return n windows; ``length``, if given, must be L."""
        if length not in (None, len(self.probs)):
            raise ValueError(f"SiteModel.sample: windows have length {len(self.probs)}. Got length={length!r}.")
        codes = self.stack([self]).draw(self._draws(n, 1), np.random.default_rng(rng))
        return [self.alphabet.decode(window) for window in codes]


def pack_windows(
    X: Any, alphabet: Any, who: str, missing: Any = None, length: int | None = None, unknown: str | None = None
) -> Packed:
    """Return windows of one length L as packed codes (n, L), one point per object.

    ``length`` is the L that is expected; None: that of the first window.
    """
    packed = pack_symbols(X, alphabet, who, missing, unknown)
    sizes = packed.lengths * (packed.values.shape[1] if packed.values.ndim == 2 else 1)
    expected = int(sizes[0]) if length is None else length
    wrong = np.flatnonzero(sizes != expected)
    if len(wrong):
        wanted = f"object 0 has {expected}" if length is None else f"the model has {expected} positions"
        raise ValueError(
            f"{who}: object {wrong[0]} has {sizes[wrong[0]]} symbols, {wanted}; all windows must have one length. "
            "Align or cut them, or use a model of sequences such as HMM."
        )
    windows = packed.values.reshape(-1, expected)
    return Packed(windows, np.arange(len(windows) + 1), packed.alphabet)


class SiteEstimator(LeafEstimator):
    r"""Smoothed frequencies at each position of aligned windows, :math:`\theta_{lk} \propto c_{lk} + \epsilon`.

    Parameters
    ----------
    alphabet : str, int, sequence or Alphabet, optional
        The symbols. The default is inferred from all windows given to ``fit``.
    pseudocount : float, default=0.01
        Added to every count (the mode under Dirichlet priors with parameter 1 + pseudocount), so that a symbol not
        seen at a position is improbable there rather than impossible. Zero is plain maximum likelihood.
    missing : symbol, optional
        The symbol of a missing observation, which is summed out. Named alphabets have their own.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.

    Attributes
    ----------
    model_ : SiteModel

    Examples
    --------
    >>> from genkern import SiteEstimator
    >>> SiteEstimator(pseudocount=0).fit(["ab", "bb", "bb", "bb"]).model_.probs
    array([[0.25, 0.75],
           [0.  , 1.  ]])
    """

    def __init__(
        self, alphabet: Any = None, pseudocount: float = 0.01, missing: Any = None, unknown: str | None = None
    ):
        self.alphabet = alphabet
        self.pseudocount = pseudocount
        self.missing = missing
        self.unknown = unknown

    def pack(self, X: Any) -> Packed:
        """Encode windows of one length with the given or the inferred alphabet."""
        check_number(self.pseudocount, "pseudocount", "SiteEstimator")
        return pack_windows(X, self.alphabet, "SiteEstimator", self.missing, unknown=self.unknown)

    def resolve(self, X: Any) -> SiteEstimator:
        """Return the estimator with the alphabet of all of X."""
        return with_alphabet_of(self, X)

    def reference(self, packed: Packed, n: int, own: bool) -> SiteModel:
        """Return uniform members."""
        alphabet = as_alphabet(packed.alphabet)
        batch = (packed.n_objects, n) if own else (n,)
        shape = (*batch, packed.values.shape[1], alphabet.size)
        return SiteModel._restore(np.full(shape, 1.0 / alphabet.size), alphabet)

    def maximize_blocks(self, blocks: dict[str, Floats], leaf: SiteModel) -> SiteModel:
        """Return smoothed expected frequencies; members without any count are not changed."""
        pseudocounts = np.full(leaf.alphabet.size, self.pseudocount)
        return SiteModel._restore(expected_rows(leaf.probs, blocks["probs"], pseudocounts), leaf.alphabet)

    def log_prior(self, leaf: SiteModel) -> Floats:
        """Return the Dirichlet log prior."""
        if self.pseudocount == 0:
            return super().log_prior(leaf)
        return log_pseudocounts(leaf.probs, self.pseudocount, 3)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables of integer codes only
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

"""Distributions over the symbols of an alphabet, and their estimation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from genkern.core.arrays.rows import expected_rows, log_pseudocounts
from genkern.core.hmm import passes as core
from genkern.data.intake import locate
from genkern.data.objects import Alphabet, Packed, as_alphabet, pack_symbols
from genkern.models import simplex
from genkern.models.characteristic import Scaled, Waves
from genkern.models.draws import draw_rows
from genkern.models.estimator import LeafEstimator, with_alphabet_of
from genkern.models.fit.weights import point_weights
from genkern.models.information import Information
from genkern.models.leaf import Leaf
from genkern.validation import Floats, check_number, check_probabilities


class Categorical(Leaf):
    r"""Categorical distributions, :math:`p(x = k) = \theta_k`.

    Parameters
    ----------
    probs : array-like of shape batch + (m,)
        Probabilities of the m symbols.
    alphabet : Alphabet, str, int or sequence of symbols, optional
        What the symbols are: ``"dna"``, ``"rna"``, ``"protein"`` or an explicit list. The default is 0, ..., m - 1.
        The probability of an ambiguity code is the sum over its members.

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
        """Return the raw derivative ``probs`` (G, n, m); that of an ambiguity code is added to its members."""
        symbols = np.moveaxis(raw, 1, 2)
        if symbols.shape[-1] > self.alphabet.size:
            symbols = self.alphabet.pass_to_members(symbols)
        return {"probs": np.ascontiguousarray(symbols)}

    def emission_totals(self, packed: Packed, evidence: core.Evidence, raw: Floats) -> dict[str, Floats]:
        """Return ``emission_statistics`` of a pass that summed over objects."""
        return self.emission_statistics(packed, evidence, raw)

    def as_categorical(self) -> Self:
        """Return the law of one draw: itself."""
        return self

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
        codes = self._restore(self.probs[None], self.alphabet).draw(self._draws(n, length), np.random.default_rng(rng))
        return [self.alphabet.decode(bag) for bag in codes.reshape(n, length)]


class CategoricalEstimator(LeafEstimator):
    r"""Smoothed frequencies of symbols, :math:`\theta_k \propto c_k + \epsilon`.

    Parameters
    ----------
    alphabet : str, int, sequence or Alphabet, optional
        The symbols. The default is inferred from all objects given to ``fit``.
    pseudocount : float, default=0.01
        Added to every count (the mode under a Dirichlet prior with parameter 1 + pseudocount), so that a symbol not
        seen in training is improbable rather than impossible. Zero is plain maximum likelihood.
    missing : symbol, optional
        The symbol of a missing observation, which is summed out. Named alphabets have their own.
    estimate : {"ml", "map", "predictive"}, default="map"
        Maximum likelihood, :math:`\theta_k \propto c_k`; the mode of the posterior, as above; or the posterior
        predictive distribution of one further symbol, its mean under the same prior, :math:`\theta_k \propto c_k + 1 +
        \epsilon`. The last is no maximum of the likelihood and is refused inside EM, e.g. as the emission of an HMM.
    unknown : {"missing", "error"}, optional
        Symbols outside the alphabet are treated as missing, with one warning, or are an error. The
        default is "missing" for an inferred alphabet and "error" for a given one.

    Attributes
    ----------
    model_ : Categorical

    Notes
    -----
    Ambiguity codes are summed out by EM. With them the predictive distribution has no closed form and is refused, but
    symbols that are missing altogether are left out.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 2.2.

    Examples
    --------
    >>> from genkern import CategoricalEstimator
    >>> CategoricalEstimator(pseudocount=0).fit(["abba", "b"]).model_.probs
    array([0.4, 0.6])
    >>> CategoricalEstimator(pseudocount=0, estimate="predictive").fit(["aab"]).model_.probs
    array([0.6, 0.4])
    """

    def __init__(
        self,
        alphabet: Any = None,
        pseudocount: float = 0.01,
        missing: Any = None,
        estimate: str = "map",
        unknown: str | None = None,
    ):
        self.alphabet = alphabet
        self.pseudocount = pseudocount
        self.missing = missing
        self.estimate = estimate
        self.unknown = unknown

    def pack(self, X: Any) -> Packed:
        """Encode symbols with the given or the inferred alphabet."""
        check_number(self.pseudocount, "pseudocount", "CategoricalEstimator")
        self._check_estimate()
        return pack_symbols(X, self.alphabet, "CategoricalEstimator", self.missing, self.unknown)

    def resolve(self, X: Any) -> CategoricalEstimator:
        """Return the estimator with the alphabet of all of X."""
        return with_alphabet_of(self, X)

    def reference(self, packed: Packed, n: int, own: bool) -> Categorical:
        """Return uniform members."""
        alphabet = packed.alphabet
        if alphabet is None:
            raise TypeError("CategoricalEstimator needs symbols. Got numbers; use GaussianEstimator.")
        batch = (packed.n_objects, n) if own else (n,)
        return Categorical(np.full((*batch, alphabet.size), 1.0 / alphabet.size), alphabet)

    def maximize_blocks(self, blocks: dict[str, Floats], leaf: Categorical) -> Categorical:
        """Return smoothed expected frequencies; members without any count are not changed."""
        self._check_mode()
        pseudocounts = np.full(leaf.alphabet.size, self.pseudocount if self.estimate == "map" else 0.0)
        return Categorical._restore(expected_rows(leaf.probs, blocks["probs"], pseudocounts), leaf.alphabet)

    def log_prior(self, leaf: Categorical) -> Floats:
        """Return the Dirichlet log prior."""
        if self.pseudocount == 0 or self.estimate == "ml":
            return super().log_prior(leaf)
        return log_pseudocounts(leaf.probs, self.pseudocount, 2)

    def predictive(self, packed: Packed, own: bool) -> Categorical:
        """Return posterior means, of batch (1,) or (n_objects, 1)."""
        leaf = self.reference(packed, 1, own)
        sizes = leaf.alphabet.append_extras(np.ones(leaf.alphabet.size))[packed.values]  # symbols that a code may mean
        _refuse_ambiguous(packed, leaf.alphabet, (sizes > 1) & (sizes < leaf.alphabet.size))
        blocks = leaf.weigh(packed, (sizes == 1)[:, None] * point_weights(packed), totals=not own)
        prior = np.full(leaf.alphabet.size, 1.0 + self.pseudocount)
        return Categorical._restore(expected_rows(leaf.probs, blocks["probs"], prior), leaf.alphabet)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables of integer codes only
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def n_free(self, packed: Packed) -> int:
        """Return m, the symbols of an emission row, as the rule for the number of states counts them."""
        alphabet: Alphabet = as_alphabet(packed.alphabet)
        return alphabet.size


def _refuse_ambiguous(packed: Packed, alphabet: Alphabet, partial: NDArray[np.bool_]) -> None:
    """Raise at the first code that means some symbols, but not all."""
    if partial.any():
        at = int(np.argmax(partial))
        index, position = locate(packed.offsets, at)
        code = alphabet.decode(packed.values[at : at + 1])[0]
        raise ValueError(
            f"CategoricalEstimator: object {index}, position {position} is ambiguous ({code!r}), and the predictive "
            "distribution then has no closed form. Use estimate='map', or leave out the symbol."
        )

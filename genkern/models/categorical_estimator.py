"""Estimation of categorical distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.rows import expected_rows, log_pseudocounts
from genkern.intake import locate
from genkern.models.categorical import Categorical
from genkern.models.estimator import LeafEstimator, with_alphabet_of
from genkern.models.weights import point_weights
from genkern.objects import Alphabet, Packed, as_alphabet, pack_symbols
from genkern.validation import Floats, check_number


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
        A symbol that stands for a missing observation, which is summed out. Named alphabets bring their own.
    estimate : {"ml", "map", "predictive"}, default="map"
        Maximum likelihood, :math:`\theta_k \propto c_k`; the mode of the posterior, as above; or the posterior
        predictive distribution of one further symbol, its mean under the same prior, :math:`\theta_k \propto c_k + 1 +
        \epsilon`. The last maximises nothing and is refused inside EM, e.g. as the emission of an HMM.
    unknown : {"missing", "error"}, optional
        What becomes of symbols outside the alphabet: they count as missing, with one warning, or are an error. The
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
        """Return smoothed expected frequencies; members without any count stay as they are."""
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
        sizes = leaf.alphabet.append_extras(np.ones(leaf.alphabet.size))[packed.values]  # symbols a code may stand for
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
    """Raise at the first code that stands for some symbols, but not for all."""
    if partial.any():
        at = int(np.argmax(partial))
        index, position = locate(packed.offsets, at)
        code = alphabet.decode(packed.values[at : at + 1])[0]
        raise ValueError(
            f"CategoricalEstimator: object {index}, position {position} is ambiguous ({code!r}), and the predictive "
            "distribution then has no closed form. Use estimate='map', or leave out the symbol."
        )

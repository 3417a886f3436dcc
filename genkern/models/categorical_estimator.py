"""Estimation of categorical distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.base import clone

from genkern.core.rows import expected_rows
from genkern.models.categorical import Categorical
from genkern.models.estimator import LeafEstimator
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

    Attributes
    ----------
    model_ : Categorical

    Examples
    --------
    >>> from genkern import CategoricalEstimator
    >>> CategoricalEstimator(pseudocount=0).fit(["abba", "b"]).model_.probs
    array([0.4, 0.6])
    """

    def __init__(self, alphabet: Any = None, pseudocount: float = 0.01, missing: Any = None):
        self.alphabet = alphabet
        self.pseudocount = pseudocount
        self.missing = missing

    def pack(self, X: Any, sequences: bool = True) -> Packed:
        """Encode symbols with the given or the inferred alphabet."""
        check_number(self.pseudocount, "pseudocount", "CategoricalEstimator")
        return pack_symbols(X, self.alphabet, "CategoricalEstimator", missing=self.missing)

    def resolve(self, X: Any) -> CategoricalEstimator:
        """Return the estimator with the alphabet of all of X."""
        if self.alphabet is not None:
            return self
        return clone(self).set_params(alphabet=self.pack(X).alphabet, missing=None)

    def reference(self, packed: Packed, n: int, own: bool) -> Categorical:
        """Return uniform members."""
        alphabet = packed.alphabet
        if alphabet is None:
            raise TypeError("CategoricalEstimator needs symbols. Got numbers; use GaussianEstimator.")
        batch = (packed.n_objects, n) if own else (n,)
        return Categorical(np.full((*batch, alphabet.size), 1.0 / alphabet.size), alphabet)

    def maximize_blocks(self, blocks: dict[str, Floats], leaf: Categorical) -> Categorical:
        """Return smoothed expected frequencies; members without any count stay as they are."""
        pseudocounts = np.full(leaf.alphabet.size, self.pseudocount)
        return Categorical._restore(expected_rows(leaf.probs, blocks["probs"], pseudocounts), leaf.alphabet)

    def log_prior(self, leaf: Categorical) -> Floats:
        """Return the Dirichlet log prior."""
        if self.pseudocount == 0:
            return super().log_prior(leaf)
        prior: Floats = xlogy(self.pseudocount, leaf.probs).sum(axis=(-1, -2))
        return prior

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables of integer codes only
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def n_free(self, packed: Packed) -> int:
        """Return m, the symbols of an emission row, as the rule for the number of states counts them."""
        alphabet: Alphabet = as_alphabet(packed.alphabet)
        return alphabet.size

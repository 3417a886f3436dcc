"""Estimation of position-specific distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from genkern.core.rows import expected_rows, log_pseudocounts
from genkern.models.estimator import LeafEstimator, with_alphabet_of
from genkern.models.site import SiteModel, pack_windows
from genkern.objects import Packed, as_alphabet
from genkern.validation import Floats, check_number


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
        A symbol that stands for a missing observation, which is summed out. Named alphabets bring their own.
    unknown : {"missing", "error"}, optional
        What becomes of symbols outside the alphabet: they count as missing, with one warning, or are an error. The
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
        """Return smoothed expected frequencies; members without any count stay as they are."""
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

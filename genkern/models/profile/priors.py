r"""Priors of the distributions of a profile: Dirichlet mixtures of columns, and rows estimated under them.

In the coordinates :math:`\eta = \log\theta` a Dirichlet density is :math:`\prod_a \theta_a^{\alpha_a}` up to a factor,
so that its mode after counts c is the posterior mean, :math:`(c + \alpha) / (|c| + |\alpha|)`. The objective of EM has
the logarithm of the mixture of these densities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from genkern.data.objects import Alphabet
from genkern.models.profile.background import AMINO_ACIDS
from genkern.models.profile.tables import BLOSUM62, GAPS, INSERTIONS, MIXTURE, MIXTURE_WEIGHTS
from genkern.validation import Floats, check_number

KINDS = ("auto", "dirichlet", "blosum")
EXCHANGES = 5.0  # pseudocounts of a column from BLOSUM62, as PSI-BLAST's, before any knowledge of its diversity
ROUNDS = 20  # of weights of components and rows, in one M-step


class Mixture(NamedTuple):
    """A mixture of Dirichlet distributions: weights (J,) and parameters (J, m)."""

    weights: Floats
    alpha: Floats

    def components(self, counts: Floats) -> Floats:
        r"""Return log weights of components after counts (n, m), :math:`\log q_j B(c + \alpha_j) / B(\alpha_j)`."""
        after = counts[:, None, :] + self.alpha
        scale = gammaln(self.alpha).sum(axis=-1) - gammaln(self.alpha.sum(axis=-1))
        found: Floats = gammaln(after).sum(axis=-1) - gammaln(after.sum(axis=-1)) - scale + np.log(self.weights)
        return found

    def mean(self, counts: Floats) -> Floats:
        r"""Return posterior means (n, m), :math:`\sum_j P(j | c) (c_a + \alpha_{ja}) / (|c| + |\alpha_j|)`.

        References
        ----------
        Sjölander et al. (1996), Dirichlet mixtures, eq. 15.
        """
        logs = self.components(counts)
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        after = counts[:, None, :] + self.alpha
        return np.einsum("nj,nja->na", shares, after / after.sum(axis=-1, keepdims=True))

    def log_density(self, rows: Floats) -> Floats:
        r"""Return log densities (n, J) of :math:`\log\theta` with the weights of the components."""
        scale = gammaln(self.alpha).sum(axis=-1) - gammaln(self.alpha.sum(axis=-1))
        found: Floats = np.log(np.maximum(rows, 1e-300)) @ self.alpha.T - scale + np.log(self.weights)
        return found

    def log_prior(self, rows: Floats) -> float:
        """Return the log density of rows (n, m), summed."""
        return float(logsumexp(self.log_density(rows), axis=1).sum())

    def mode(self, counts: Floats, old: Floats) -> Floats:
        """Return rows (n, m) of a greater expected log-likelihood plus log density than the old ones.

        Of two climbs, from the old rows and from posterior means, each row takes the higher.
        """
        best, top = old, np.full(len(old), -np.inf)
        for start in (old, self.mean(counts)):
            rows = start
            for _ in range(ROUNDS if len(self.weights) > 1 else 1):
                logs = self.log_density(rows)
                after = counts + np.exp(logs - logsumexp(logs, axis=1, keepdims=True)) @ self.alpha
                rows = after / after.sum(axis=1, keepdims=True)
            value = (counts * np.log(np.maximum(rows, 1e-300))).sum(axis=1) + logsumexp(self.log_density(rows), axis=1)
            best = np.where((value > top)[:, None], rows, best)
            top = np.maximum(value, top)
        return best


class Priors(NamedTuple):
    """Priors of match and insert distributions and, in the order of HMMER's files, of transitions (7,)."""

    match: Mixture
    insert: Mixture
    gaps: Floats

    def log_prior(self, match: Floats, insert: Floats, transitions: Floats) -> float:
        """Return the log density of a profile, over what can occur at each node."""
        logs = np.log(np.maximum(transitions, 1e-300))
        gaps = float((logs * self.at_nodes(len(transitions))).sum())
        return self.match.log_prior(match) + self.insert.log_prior(insert) + gaps

    def at_nodes(self, nodes: int) -> Floats:
        """Return the pseudocounts of the transitions (nodes, 7): none for what the first and last node do not have."""
        table = np.tile(self.gaps, (nodes, 1))
        table[0, 5:] = table[-1, 5:] = 0.0
        table[-1, 2] = 0.0
        return table

    def transitions(self, counts: Floats, old: Floats) -> Floats:
        """Return the transitions (K + 1, 7) from counts; rows without any stay as they are."""
        after, found = counts + self.at_nodes(len(counts)), old.copy()
        for rows in (slice(0, 3), slice(3, 5), slice(5, 7)):
            total = after[:, rows].sum(axis=1, keepdims=True)
            np.divide(after[:, rows], total, out=found[:, rows], where=total > 0.0)
        return found


def priors_of(prior: Any, alphabet: Alphabet, null: Floats, who: str) -> Priors:
    """Return the priors that a word or a number of pseudocounts means."""
    amino = alphabet.symbols == tuple("ACDEFGHIKLMNPQRSTVWY")
    if isinstance(prior, str) and prior not in KINDS:
        raise ValueError(f"{who}: 'prior' must be one of {', '.join(map(repr, KINDS))} or a number. Got {prior!r}.")
    if prior in ("dirichlet", "blosum") and not amino:
        raise ValueError(f"{who}: prior={prior!r} is for proteins. Got {alphabet!r}; give a number of pseudocounts.")
    if prior == "blosum":
        exchanged = np.array(AMINO_ACIDS) * 2.0 ** (BLOSUM62 / 2.0)  # row b: P(a | b) up to a factor
        match = Mixture(np.array(AMINO_ACIDS), EXCHANGES * exchanged / exchanged.sum(axis=1, keepdims=True))
    elif isinstance(prior, str) and amino:
        match = Mixture(MIXTURE_WEIGHTS / MIXTURE_WEIGHTS.sum(), MIXTURE)
    else:
        total = alphabet.size / 2.0 if prior == "auto" else check_number(prior, "prior", who, exclusive=True)
        match = Mixture(np.ones(1), np.maximum(total * null, 1e-6)[None])
    inserted = INSERTIONS if amino else 1e4 * np.maximum(null, 1e-6)
    return Priors(match, Mixture(np.ones(1), inserted[None]), GAPS)

"""What is known of the hidden path of a Markov chain once its observations are seen."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genkern.core.hmm import passes as core
from genkern.core.hmm.filter import filtered, sample_paths
from genkern.data.objects import Packed
from genkern.models.base import Model
from genkern.models.leaf import Leaf
from genkern.validation import Floats, check_int


class HiddenPaths(Model):
    """A model of hidden chains that emit: posteriors, best and drawn paths, and what the past alone says."""

    emissions: Leaf

    @abstractmethod
    def chains(self) -> core.Chains:
        """Return start, transitions and end as arrays with a leading axis of models."""

    def posterior(self, X: Any, pairs: bool = False, n_jobs: int | None = None) -> list[Any]:
        r"""Return state posteriors :math:`\gamma_t(i)` per object, (T, n); with ``pairs`` also xi, (T - 1, n, n)."""
        packed = self.pack(X)
        found = self._marginals(packed, pairs, n_jobs)
        states = np.split(found.states, packed.offsets[1:-1])
        if not pairs:
            return states
        return list(zip(states, np.split(found.pairs, (packed.offsets - np.arange(len(packed.offsets)))[1:-1])))

    def state_posteriors(self, packed: Packed) -> Floats:
        """Return the posteriors (N, n) of the states of all positions."""
        return self._marginals(self.pack(packed), False, None).states

    def _marginals(self, packed: Packed, pairs: bool, n_jobs: int | None) -> core.Marginals:
        """Return posteriors of all positions, refusing impossible objects."""
        self._require_single("posterior")
        evidence = self.emissions.evidence(packed)
        found = core.marginals(self.chains(), evidence, packed.offsets, pairs, n_jobs)
        self._refuse_impossible(found.log_prob, packed, evidence)
        return found

    def filter(self, X: Any) -> list[Floats]:
        r"""Return :math:`P(q_t = i \,|\, x_0 \dots x_t)` per object, (T, n): what is known before the future is seen.

        The last row is all that is needed to go on. End weights and stop probabilities, which speak of the end, have no
        part in it, but that the sequence has come so far.
        """
        self._require_single("filter")
        packed = self.pack(X)
        evidence = self.emissions.evidence(packed)
        states, log_prob = filtered(self.chains(), evidence, packed.offsets)
        self._refuse_impossible(log_prob, packed, evidence)
        return np.split(states, packed.offsets[1:-1])

    def viterbi(self, X: Any, n_jobs: int | None = None) -> list[NDArray[np.int32]]:
        """Return the most probable state path of each object; ties go to the lower state."""
        path, log_prob, packed, evidence = self._best_paths(X, "viterbi", n_jobs)
        self._refuse_impossible(log_prob, packed, evidence)
        return np.split(path, packed.offsets[1:-1])

    def viterbi_log_prob(self, X: Any, n_jobs: int | None = None) -> Floats:
        r"""Return :math:`\max_q \log p(x, q)`, (n_objects,): of the path of ``viterbi``, -inf where there is none."""
        return self._best_paths(X, "viterbi_log_prob", n_jobs)[1]

    def _best_paths(
        self, X: Any, what: str, n_jobs: int | None
    ) -> tuple[NDArray[np.int32], Floats, Packed, core.Evidence]:
        self._require_single(what)
        packed = self.pack(X)
        evidence = self.emissions.evidence(packed)
        return *core.viterbi(self.chains(), evidence, packed.offsets, n_jobs), packed, evidence

    def sample_paths(self, X: Any, n: int, rng: Any = None) -> list[NDArray[np.int32]]:
        r"""Return n independent draws of :math:`p(q | x)` for each object, (n, T): whole paths, not states one by one.

        Forward filtering, backward sampling: :math:`q_{T-1} \sim \alpha_{T-1}`, :math:`P(q_t = i | q_{t+1} = j, x)
        \propto \alpha_t(i) a_{ij}`.

        Parameters
        ----------
        X : list of sequences
        n : int
            Number of paths of each.
        rng : int or Generator, optional
            Seed.

        References
        ----------
        Scott (2002), Bayesian methods for hidden Markov models: recursive computing in the 21st century, section 2.1.
        """
        self._require_single("sample_paths")
        check_int(n, "n", f"{type(self).__name__}.sample_paths", 0)
        packed = self.pack(X)
        evidence = self.emissions.evidence(packed)
        numbers = np.random.default_rng(rng).random((packed.n_points, n))
        paths, log_prob = sample_paths(self.chains(), evidence, packed.offsets, numbers)
        self._refuse_impossible(log_prob, packed, evidence)
        return [np.ascontiguousarray(part.T) for part in np.split(paths, packed.offsets[1:-1])]

    # --- checks

    def _refuse_impossible(self, log_prob: Floats, packed: Packed, evidence: core.Evidence) -> None:
        """Raise for the first object of probability zero, naming the position at which it became impossible."""
        dead = np.flatnonzero(np.isneginf(log_prob))
        if len(dead) == 0:
            return
        i = int(dead[0])
        position = core.dead_position(self.chains(), evidence, packed.offsets, i)
        length = int(packed.lengths[i])
        where = f"at position {position}" if position < length else "at its end (end weights or stop probabilities)"
        if position < length and packed.alphabet is not None:
            code = packed.values[packed.offsets[i] + position]
            where += f" (symbol {packed.alphabet.decode([code])[0]!r})"
        raise ValueError(
            f"HMM: object {i} has probability zero under the model {where}; {len(dead)} of {len(log_prob)} objects are "
            "impossible, so posteriors and derivatives are undefined. Fit with a pseudocount > 0, or smooth the model."
        )

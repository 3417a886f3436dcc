"""EM for networks with hidden nodes or missing entries, for one network or one per object; closed form without."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.fit.em import Run, expected
from genkern.models.fit.em_estimator import EMEstimator
from genkern.models.fit.streams import Keys
from genkern.models.fit.units import warn_unseen
from genkern.models.fit.weights import weighted
from genkern.models.graph.model import Graph, make_graph


class NetEstimator(EMEstimator):
    """Estimator of a network of known structure; a family implements the methods of `EMEstimator`, and ``resolve``."""

    smaller = "the sizes of hidden nodes"

    structure: Any
    hidden: Any
    observed: Any

    def _ready(self, X: Any, own: bool, sample_weight: Any = None, known: Any = None) -> tuple[EMEstimator, Packed]:
        packed = weighted(self.pack, X, sample_weight, type(self).__name__)
        return self.resolve(packed), packed

    def _fixable(self) -> list[Any]:
        return list(self.structure)

    def _keep(self, old: Any, new: Any) -> Any:
        """Return a new network with the conditional distributions of the fixed nodes of an old one."""
        sizes = self._law_sizes(new)
        kept = np.repeat([name in self.fixed for name in new.graph.names], sizes)
        fields = {name: getattr(new, name) for name in new._fields}
        return new._restore(*{**fields, "values": np.where(kept, old.values, new.values)}.values())

    @abstractmethod
    def _full_graph(self) -> Graph:
        """Return the graph with the sizes of all nodes."""

    @abstractmethod
    def _law_sizes(self, model: Any) -> list[int]:
        """Return how many of the ``values`` of a network belong to the law of each node."""

    def _expect(self, model: Any, packed: Packed) -> Statistics:
        return expected(model, packed)

    # --- structure

    def _graph(self, sizes: dict[Any, int]) -> Graph:
        """Return the graph of the structure, refusing nodes that are neither hidden nor observed, or both."""
        who = type(self).__name__
        if not isinstance(self.structure, Mapping):
            raise TypeError(f"{who}: 'structure' must be a dict of node to parents. Got {self.structure!r:.80}.")
        for name in sizes:
            if name not in self.structure:
                raise ValueError(f"{who}: there is no node {name!r} in 'structure', and a size is given for it.")
        hidden = dict(self.hidden or {})
        observed = [name for name in self.structure if name not in hidden] if self.observed is None else self.observed
        graph = make_graph(self.structure, sizes, observed, who)
        for name in hidden:
            if graph.find(name, f"{who}: 'hidden'") in graph.observed:
                raise ValueError(f"{who}: node {name!r} is named in 'hidden' and in 'observed'; it can be only one.")
        left = [graph.names[v] for v in graph.hidden if graph.names[v] not in hidden]
        if left:
            raise ValueError(f"{who}: node {left[0]!r} is not observed; give its size in hidden={{{left[0]!r}: ...}}.")
        return graph

    # --- EM

    def _best(self, packed: Packed, keys: Keys, own: bool) -> Run:
        """Return the best of ``n_init`` runs of EM; complete data need one step, and no restarts."""
        limits, graph, example = self._limits(), self._full_graph(), self._example
        if self.init is not None and (example is None or example.graph != graph):
            raise ValueError(
                f"{type(self).__name__}: 'init' must be None, or a {self.kind.__name__} of the same structure and "
                f"sizes, {graph}. Got {self.init if example is None else example.graph!r:.200}."
            )
        warn_unseen(packed, own, type(self).__name__, "its law is what EM makes of the first guess")
        if self.hidden or np.isnan(packed.values).any() or 0 in graph.sizes:
            # Restarts differ only in the tables of hidden nodes and their children.
            runs = self.n_init if self.hidden and self._given is None else 1
            return self._run(packed, keys, own, limits, runs)
        run = self._run(packed, keys, own, limits._replace(max_iter=1, tol=0.0), 1)
        return run._replace(converged=np.ones_like(run.converged))

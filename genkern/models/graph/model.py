"""Directed acyclic graphs of named nodes, and rows of observed nodes, for all networks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genkern.data.flatten import flatten_numbers
from genkern.data.objects import Packed, pack_points
from genkern.data.serialize import register
from genkern.validation import check_int

Node = Hashable


@register
class Graph(NamedTuple):
    """A checked graph over nodes 0, ..., n - 1, hashable, so that plans of inference can be kept by it.

    Attributes
    ----------
    names : names of the nodes, in the order in which they were given, which is that of the parameters
    parents : for each node the indices of its parents, in the order of the axes of its table
    sizes : for each node the number of its states, or the dimension of its vector; zero if it is a continuous node of
        a discrete network
    order : the nodes, parents before children
    observed : the observed nodes, in the order of the columns of objects
    """

    names: tuple[Node, ...]
    parents: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    order: tuple[int, ...]
    observed: tuple[int, ...]

    @property
    def hidden(self) -> tuple[int, ...]:
        """The nodes that are never observed."""
        return tuple(sorted(set(range(len(self.names))) - set(self.observed)))

    def _to_fields(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def _from_fields(cls, fields: dict[str, Any], trusted: bool = False) -> Graph:
        """Build a graph from fields, checking those of unknown origin."""
        given = cls(**fields)
        if trusted:
            return given
        parents = {
            name: [given.names[p] for p in above] for name, above in zip(given.names, given.parents, strict=True)
        }
        sizes = {
            name: check_int(size, "sizes", "Graph", 0) for name, size in zip(given.names, given.sizes, strict=True)
        }
        made = make_graph(parents, sizes, [given.names[v] for v in given.observed], "Graph")
        if made != given:
            raise ValueError("Graph: the fields do not belong together.")
        return made

    def find(self, name: Node, who: str) -> int:
        """Return the node of a name."""
        if name not in self.names:
            raise ValueError(f"{who}: there is no node {name!r}; the nodes are {', '.join(map(repr, self.names))}.")
        return self.names.index(name)


def make_graph(parents: Mapping[Any, Any], sizes: Mapping[Any, int], observed: Any, who: str) -> Graph:
    """Return the graph of ``{node: parents}``, refusing unknown parents, cycles and double names."""
    names = tuple(parents)
    if not names:
        raise ValueError(f"{who}: expected at least one node. Got none.")
    if len({str(name) for name in names}) < len(names):
        raise ValueError(f"{who}: the names of nodes must differ as strings. Got {', '.join(map(repr, names))}.")
    place = {name: v for v, name in enumerate(names)}
    listed = [_check_names(above, place, f"{who}: the parents of node {name!r}") for name, above in parents.items()]
    known = tuple(tuple(place[name] for name in above) for above in listed)
    try:
        order = tuple(TopologicalSorter(dict(enumerate(known))).static_order())
    except CycleError as error:
        cycle = " -> ".join(repr(names[v]) for v in error.args[1])
        raise ValueError(f"{who}: the graph must not have cycles. Got {cycle}; leave out one of these edges.") from None
    shown = names if observed is None else tuple(_check_names(observed, place, f"{who}: 'observed'"))
    if not shown:
        raise ValueError(f"{who}: 'observed' must name at least one node, a column of the objects. Got none.")
    return Graph(names, known, tuple(sizes[name] for name in names), order, tuple(place[name] for name in shown))


def _check_names(given: Any, place: Mapping[Any, int], what: str) -> list[Any]:
    """Return a list of known, different names."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{what} must be a list of nodes. Got {given!r}; write [{given!r}].")
    listed = list(given)
    for name in listed:
        if name not in place:
            raise ValueError(f"{what}: there is no node {name!r}; the nodes are {', '.join(map(repr, place))}.")
    if len(set(listed)) < len(listed):
        raise ValueError(f"{what} must differ. Got {listed!r}.")
    return listed


def pack_rows(X: Any, width: int, who: str) -> Packed:
    """Return bags of rows of ``width`` numbers; a 1-D object is one row (or, of width one, a bag of numbers).

    A 2-D array is n objects of one row each.
    """
    if isinstance(X, Packed):
        return pack_points(X, who, width)
    arrays = flatten_numbers(X, who)
    if isinstance(arrays, list) and width > 1:
        arrays = [array[None] if array.ndim == 1 else array for array in arrays]
    return pack_points(arrays, who, width)


def row_keys(codes: NDArray[np.int64], sizes: Iterable[int]) -> NDArray[np.int64]:
    """Return a number (N,) for each row (N, d) of codes -1, ..., size - 1; they are equal and ordered as rows are."""
    keys, radix = np.zeros(len(codes), np.int64), 1
    for column, size in zip(codes.T, sizes):
        if radix > 2**62 // (size + 1):
            keys = np.unique(keys, return_inverse=True)[1].ravel()
            radix = int(keys.max()) + 1
        keys = keys * (size + 1) + column + 1
        radix *= size + 1
    return keys


def unique_patterns(mask: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """Return the distinct rows (d,) of a mask (N, d), each with the indices of the rows that have it."""
    keys = row_keys(mask.astype(np.int64), [2] * mask.shape[1])
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    rows = np.split(np.argsort(inverse.ravel(), kind="stable"), np.cumsum(counts)[:-1])
    return list(zip(mask[first], rows))

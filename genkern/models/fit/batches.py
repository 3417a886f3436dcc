"""EM on objects that are read in batches, anew for each step: the totals of the E-step are all that is held."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from genkern.data.objects import Packed
from genkern.models.base import Statistics
from genkern.models.fit.em import Steps
from genkern.validation import Floats


class Batches(NamedTuple):
    """Objects in batches, as the data of one model of all of them.

    Parameters
    ----------
    read : callable
        Returns the lists of objects, the same at every call.
    pack : callable
        Encodes a list.
    counted : int
        Observations of all objects.
    n_jobs : int or None
        Batches whose totals are computed at a time, as in joblib.
    """

    read: Callable[[], Iterable[Any]]
    pack: Callable[[Any], Packed]
    counted: int
    n_jobs: int | None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of observations, as if they were of one object."""
        return np.array([self.counted])

    @property
    def weights(self) -> None:
        """None: every object counts once."""
        return None

    def packed(self) -> Iterator[Packed]:
        """Yield the batches, encoded; errors name the batch."""
        for index, objects in enumerate(self.read()):
            yield pack_batch(self.pack, objects, index)

    def steps(self, steps: Steps) -> Steps:
        """Return steps for one batch as those for all."""

        def expect(model: Any, data: Batches) -> Statistics:
            return data._total(steps.expect, model)

        def log_prob(model: Any, data: Batches) -> Floats:
            return expect(model, data).log_prob

        return Steps(expect, steps.maximize, log_prob, steps.log_prior)  # type: ignore[arg-type]

    def _total(self, expect: Callable[[Any, Packed], Statistics], model: Any) -> Statistics:
        """Return the sum of the E-steps of all batches, in their order."""
        if effective_n_jobs(self.n_jobs) == 1:
            parts: Iterable[Statistics] = (expect(model, packed) for packed in self.packed())
        else:
            tasks = (delayed(expect)(model, packed) for packed in self.packed())
            parts = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(tasks)
        log_prob = 0.0
        blocks: dict[str, Floats] = {}
        for part in parts:
            log_prob += float(part.log_prob.sum())
            total = part.total().blocks
            blocks = {name: blocks[name] + block for name, block in total.items()} if blocks else total
        return Statistics(model, np.array([log_prob]), self.lengths, blocks)


def pack_batch(pack: Callable[[Any], Packed], objects: Any, index: int) -> Packed:
    """Return a batch, encoded; an error names it, as objects are counted in it from zero."""
    try:
        return pack(getattr(objects, "X", objects))
    except (TypeError, ValueError) as error:
        raise type(error)(f"In batch {index}, counted from 0: {error}") from error


def as_reader(batches: Any, who: str) -> Callable[[], Iterable[Any]]:
    """Return a function that reads all batches, from one, or from a list of them; an iterator can be read but once."""
    if callable(batches):
        return batches
    if isinstance(batches, Iterator):
        raise TypeError(
            f"{who}: an iterator can be read only once, and EM reads all objects in each step. Give a function that "
            "returns it: fit_stream(lambda: io.stream(path)); or let one pass do: fit_stream(batches, one_pass=True)."
        )
    return lambda: batches

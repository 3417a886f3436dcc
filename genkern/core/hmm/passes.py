"""Passes over many hidden Markov sequences: log probabilities, derivatives, posteriors, best paths.

Objects are concatenated; object i holds the positions ``offsets[i]`` to ``offsets[i + 1]``. The fast layouts
use scaled arithmetic; objects that leave its range are recomputed by the reference passes, and those that leave theirs
in logarithms. An object's result depends only on the object and its parameters, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from genkern.core.hmm import few as hmm_few
from genkern.core.hmm import groups as hmm_groups
from genkern.core.hmm import lanes as hmm_lanes
from genkern.core.hmm import logarithms as hmm_log
from genkern.core.hmm import plan as hmm_plan
from genkern.core.hmm import quads as hmm_quads
from genkern.core.hmm import reference as hmm_reference
from genkern.core.hmm import rows as hmm_rows
from genkern.core.hmm import single as hmm_single
from genkern.core.hmm import viterbi as hmm_viterbi
from genkern.core.hmm.plan import Plan
from genkern.core.hmm.rows import Job
from genkern.core.hmm.types import (
    Chains,
    Evidence,
    Floats,
    Gradients,
    Ints,
    Marginals,
    Problem,
    as_problem,
    empty_gradients,
    n_symbols,
    read_only,
)

__all__ = [
    "Chains",
    "Evidence",
    "Gradients",
    "Marginals",
    "dead_position",
    "gradients",
    "log_prob",
    "marginals",
    "viterbi",
]

RANGE = 1 << 15  # positions of objects that are worked on together where each position has numbers of its own
LARGEST_OF_RANGE = (
    1 << 20
)  # most doubles for the messages of eight sequences there; longer ones are computed one by one
WORTH_THREADS = 1 << 22  # positions times squared states below which starting threads costs more than they save

# The function of each layout that returns sizes and offsets, and how many doubles and integers its buffers have.
LAYOUTS: dict[str, Callable[..., Any]] = {
    hmm_plan.QUADS: hmm_quads.quad_layout,
    hmm_plan.LANES: hmm_lanes.lane_layout,
    hmm_plan.GROUPS: hmm_groups.group_layout,
    hmm_plan.SINGLE: hmm_single.single_layout,
}


def log_prob(
    chains: Chains, evidence: Evidence, offsets: Ints, n_jobs: int | None = 1, own: bool | None = None
) -> Floats:
    """Return log P (n_objects,) of each sequence; -inf for an impossible one.

    Parameters
    ----------
    chains : Chains
        One shared chain, or one for each object.
    evidence : Evidence
        Emission factors of all positions.
    offsets : (n_objects + 1,), where the objects begin and the last one ends; none is empty.
    n_jobs : int or None
        Threads; None means 1, -1 all cores. The result does not depend on it.
    own : bool or None
        Whether the chains belong to the objects, one each. Needed only for a single object, where the shapes do
        not tell: its result then equals, to the last bit, its result among other objects.
    """
    problem = as_problem(chains, evidence, offsets)
    out = empty_gradients(problem, 0, 0)
    plan = hmm_plan.plan(problem.offsets, problem.start.shape[1], _is_own(problem, own), 0)
    _run(problem, plan, plan.chunk_of, out, n_jobs)
    lost = np.flatnonzero(np.isnan(out.log_prob))
    with np.errstate(all="ignore"):
        if len(lost):
            hmm_reference.log_prob_of(problem, lost, out.log_prob)
            lost = lost[np.isnan(out.log_prob[lost])]
        if len(lost):
            hmm_log.log_prob_of(problem, lost, out.log_prob)
    return out.log_prob


def gradients(
    chains: Chains,
    evidence: Evidence,
    offsets: Ints,
    totals: bool = False,
    n_jobs: int | None = 1,
    own: bool | None = None,
) -> Gradients:
    """Return raw derivatives of log P, per object or, with totals, summed over objects (see Gradients).

    Parameters
    ----------
    chains, evidence, offsets, n_jobs, own
        As for log_prob.
    totals : bool
        Sum over objects, in fixed chunks and order; the sums are the same for any number of threads.
    """
    problem = as_problem(chains, evidence, offsets)
    n, symbols, objects = problem.start.shape[1], n_symbols(problem), len(problem.offsets) - 1
    plan = hmm_plan.plan(problem.offsets, n, _is_own(problem, own), n * (n + symbols + 2))
    n_slots = plan.n_chunks if totals else objects
    slots = plan.chunk_of if totals else np.arange(objects)
    out = empty_gradients(problem, n_slots, hmm_plan.width(plan, n, symbols))
    _run(problem, plan, slots, out, n_jobs, derivatives=True)
    _redo(problem, slots, out, totals)
    emissions = out.emissions[:, :n]
    if symbols:
        emissions = emissions.reshape(n_slots, symbols, n)
        emissions = _total(emissions) if totals else emissions
    if totals:
        start, transitions, end = map(_total, out[1:4])
        out = Gradients(out.log_prob, start, transitions, end, emissions)
    return out._replace(emissions=np.ascontiguousarray(emissions))


def marginals(
    chains: Chains, evidence: Evidence, offsets: Ints, pairs: bool = False, n_jobs: int | None = 1
) -> Marginals:
    """Return posteriors of states, gamma (N, n), and with pairs also of pairs, xi (N - n_objects, n, n).

    xi of object i starts at ``offsets[i] - i``. Rows of impossible objects are zero. Gamma alone are the derivatives by
    emission factors, one row for each position, times these.
    """
    problem = as_problem(chains, evidence, offsets)
    n, objects, positions = problem.start.shape[1], len(problem.offsets) - 1, int(problem.offsets[-1])
    out = Marginals(np.empty(objects), np.zeros((positions, n)), np.zeros((positions - objects if pairs else 0, n, n)))

    def fill(first: int, last: int) -> None:
        lost = np.arange(first, last)
        with np.errstate(all="ignore"):
            if not pairs:
                lost = first + _fill_states(_range_of(problem, first, last), out, first, int(problem.offsets[first]))
            if len(lost):
                hmm_reference.marginals_of(problem, lost, out.states, out.pairs, out.log_prob)
                lost = lost[np.isnan(out.log_prob[lost])]
            if len(lost):
                hmm_log.marginals_of(problem, lost, out.states, out.pairs)
                hmm_log.log_prob_of(problem, lost, out.log_prob)

    _over_ranges(fill, problem, n_jobs)
    return out


def _fill_states(problem: Problem, out: Marginals, first: int, position: int) -> Ints:
    """Fill log P and posteriors of states from an object and a position on; return the objects out of range."""
    n, objects = problem.start.shape[1], len(problem.offsets) - 1
    plan = hmm_plan.plan(problem.offsets, n, len(problem.start) > 1, n * (n + 2), LARGEST_OF_RANGE)
    sums = empty_gradients(problem, plan.n_chunks, hmm_plan.width(plan, n, 0))
    _run(problem, plan, plan.chunk_of, sums, 1, derivatives=True)
    states = out.states[position : position + len(problem.table)]
    np.multiply(sums.emissions[:, :n], problem.table, out=states)
    lost = np.flatnonzero(np.isnan(sums.log_prob))
    states[_positions(problem, lost)] = 0.0
    out.log_prob[first : first + objects] = sums.log_prob
    return lost


def viterbi(
    chains: Chains, evidence: Evidence, offsets: Ints, n_jobs: int | None = 1
) -> tuple[NDArray[np.int32], Floats]:
    """Return the most probable path (N,) and its joint log probability with each sequence (n_objects,).

    Ties go to the lower state. The path of an impossible object, with log probability -inf, is undefined.
    """
    problem = as_problem(chains, evidence, offsets)
    path = np.empty(int(problem.offsets[-1]), np.int32)
    best, steps = np.empty(len(problem.offsets) - 1), hmm_viterbi.steps_of(problem)

    def fill(first: int, last: int) -> None:
        with np.errstate(all="ignore"):
            hmm_viterbi.best_paths(problem, steps, first, last, path, best)
            unsure = first + np.flatnonzero(np.isnan(best[first:last]))
            if len(unsure):
                hmm_viterbi.viterbi_of(problem, unsure, path, best)

    _over_ranges(fill, problem, n_jobs)
    return path, best


def dead_position(chains: Chains, evidence: Evidence, offsets: Ints, i: int) -> int:
    """Return the first position at which object i is impossible; its length if only the end weights are."""
    return int(hmm_viterbi.first_dead(as_problem(chains, evidence, offsets), i))


def _over_ranges(fill: Callable[[int, int], None], problem: Problem, n_jobs: int | None) -> None:
    """Let ``fill`` work on ranges of consecutive objects with so many positions, in threads where that is worth it."""
    ends = np.searchsorted(problem.offsets, np.arange(RANGE, problem.offsets[-1] + RANGE, RANGE))
    cuts = np.unique(np.concatenate([[0], np.minimum(ends, len(problem.offsets) - 1)])).tolist()
    workers = _workers(problem, n_jobs)
    if workers == 1:
        for first, last in pairwise(cuts):
            fill(first, last)
    else:
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(fill, first, last) for first, last in pairwise(cuts)]:
                done.result()


def _range_of(problem: Problem, first: int, last: int) -> Problem:
    """Return the problem of a range of objects, with one row of factors for each position."""
    offsets, own = problem.offsets[first : last + 1], slice(first, last) if len(problem.start) > 1 else slice(None)
    positions = slice(int(offsets[0]), int(offsets[-1]))
    rows: Any = positions
    if len(problem.codes):
        symbols = n_symbols(problem)
        chain = np.repeat(np.arange(first, last), np.diff(offsets)) if len(problem.start) > 1 else 0
        rows = problem.codes[positions] + symbols * chain
    return Problem(
        read_only(problem.start[own]),
        read_only(problem.transitions[own]),
        read_only(problem.end[own]),
        read_only(problem.table[rows]),
        read_only(problem.shift[rows]),
        problem.codes[:0],
        read_only(offsets - offsets[0]),
        read_only(problem.logs[rows] if len(problem.logs) else problem.logs),
    )


def _total(slots: Floats) -> Floats:
    """Return the sum over the first axis, kept; at most the largest float64, as derivatives by zeros may overflow."""
    with np.errstate(over="ignore"):
        return np.minimum(slots.sum(axis=0, keepdims=True), np.finfo(np.float64).max)


def _is_own(problem: Problem, own: bool | None) -> bool:
    """Return whether each object has its own chain: as the caller says, or by the shapes."""
    return len(problem.start) > 1 if own is None else own


def _run(
    problem: Problem, plan: Plan, slots: Ints, out: Gradients, n_jobs: int | None, derivatives: bool = False
) -> None:
    """Run each part of the plan in its layout, split over threads; objects out of range get log P = nan."""
    workers = _workers(problem, n_jobs)
    tasks = [
        (part.layout, Job(members, slots, derivatives, len(out.start) == len(slots)))
        for part in plan.parts
        for members in (hmm_plan.split(part, 4 * workers) if workers > 1 else [part.members])
    ]
    if workers == 1:
        for name, job in tasks:
            _run_task(problem, name, job, out)
    else:
        # Not joblib's threads: they poll for results every ten milliseconds, and many passes take less.
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(_run_task, problem, name, job, out) for name, job in tasks]:
                done.result()


def _workers(problem: Problem, n_jobs: int | None) -> int:
    """Return how many threads are worth their start."""
    cost = problem.offsets[-1] * problem.start.shape[1] ** 2
    return 1 if n_jobs in (None, 1) or cost < WORTH_THREADS else effective_n_jobs(n_jobs)


def _run_task(problem: Problem, name: str, job: Job, out: Gradients) -> None:
    """Run one layout's pass over some groups, with buffers of its own."""
    last = job.members[-1, -1]
    steps = int(problem.offsets[last + 1] - problem.offsets[last])
    layout, doubles, integers = LAYOUTS[name](problem.start.shape[1], steps, job.derivatives, n_symbols(problem))
    rows = hmm_rows.as_rows(problem, layout.width)
    with np.errstate(all="ignore"):
        buffers = hmm_rows.aligned(doubles), np.empty(integers, np.int64)
        _pass_of(name, layout)(problem, rows, job, out, layout, *buffers)


def _pass_of(name: str, layout: Any) -> Callable[..., None]:
    """Return the pass of a layout; few symbols have a pass of their own."""
    if name == hmm_plan.QUADS:
        return hmm_few.few_pass if layout.few else hmm_quads.quads_pass
    if name == hmm_plan.GROUPS:
        return hmm_groups.groups_pass
    return hmm_lanes.lanes_pass if name == hmm_plan.LANES else hmm_single.single_pass


def _redo(problem: Problem, slots: Ints, out: Gradients, totals: bool) -> None:
    """Recompute objects with log P = nan by the reference passes, and those that fail there in logarithms.

    A slot of totals is recomputed with all its objects; those that had not failed keep their own log P and rows.
    """
    symbols, lost = n_symbols(problem), np.flatnonzero(np.isnan(out.log_prob))
    spoilt = slots[lost]
    if totals and symbols:
        # The emission derivatives of one object can overflow in a sum that many share.
        sums = out.emissions.reshape(len(out.start), -1).sum(axis=1)
        spoilt = np.union1d(spoilt, np.flatnonzero(~np.isfinite(sums)))
    if not len(spoilt):
        return
    affected = np.flatnonzero(np.isin(slots, spoilt))
    kept = np.setdiff1d(affected, lost)
    log_prob, own_rows = out.log_prob[kept], np.empty(0, np.bool_) if symbols else _positions(problem, kept)
    emissions = out.emissions[own_rows] if len(own_rows) else None
    for sums in (out.start, out.transitions, out.end):
        sums[spoilt] = 0.0
    if symbols:
        out.emissions.reshape(len(out.start), symbols, -1)[spoilt] = 0.0
    else:
        out.emissions[_positions(problem, affected)] = 0.0
    with np.errstate(all="ignore"):
        hmm_reference.gradients_of(problem, affected, slots, out)
        affected = affected[np.isnan(out.log_prob[affected])]
        if len(affected):
            hmm_log.gradients_of(problem, affected, slots, out)
    out.log_prob[kept] = log_prob
    if emissions is not None:
        out.emissions[own_rows] = emissions


def _positions(problem: Problem, objects: Ints) -> NDArray[np.bool_]:
    """Return the mask of the positions (N,) of some objects."""
    chosen = np.isin(np.arange(len(problem.offsets) - 1), objects)
    return np.repeat(chosen, np.diff(problem.offsets))

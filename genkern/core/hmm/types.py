"""Inputs and outputs of the passes over many sequences: chains, evidence, gradients, and their compiled form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Chains(NamedTuple):
    """Hidden chains: P = 1 is shared by all objects, P = n_objects gives each object its own.

    Attributes
    ----------
    start : (P, n), initial probabilities.
    transitions : (P, n, n), ``transitions[p, k, l]`` leads from state k to state l.
    end : (P, n), weights of the last state; ones where the model has none.
    """

    start: Floats
    transitions: Floats
    end: Floats


class Evidence(NamedTuple):
    r"""Emission factors :math:`b_k(x_t) = \mathrm{table}[r(t), k]\, e^{\mathrm{shift}[r(t)]}`.

    The row of a position is :math:`r(t) = pM + \mathrm{codes}[t]`, with p = 0 for shared chains and the object's
    index for its own ones, or the position t itself where ``codes`` is None.

    Attributes
    ----------
    table : (P * M, n) for symbols, (N, n) for one row per position; non-negative and finite.
    shift : (P * M,) or (N,), logarithms taken out of the rows.
    codes : (N,) int32 symbols in 0..M-1, or None.
    logs : (N, n), the logarithms of the factors, or None. Needed where the table raises factors that would
        underflow beside the largest of their row (``scaled_rows``); only for one row per position.
    held : intermediate results of an emission family for its statistics; the passes do not read them.
    """

    table: Floats
    shift: Floats
    codes: NDArray[np.int32] | None
    logs: Floats | None = None
    held: Any = None


class Gradients(NamedTuple):
    r"""Raw derivatives of log P, free of divisions by parameters and so finite where these are zero.

    With scaled forward-backward, :math:`\mathrm{pred}_0 = \mathrm{start}` and
    :math:`\mathrm{pred}_t = A^T \hat\alpha_{t-1}`,

    .. math::
        \partial p_k = b_k(o_0) \hat\beta_0(k) / c_0, \quad
        \partial a_{kl} = \sum_t \hat\alpha_t(k) b_l(o_{t+1}) \hat\beta_{t+1}(l) / c_{t+1}, \quad
        \partial q_k = \hat\alpha_{L-1}(k) / c_L, \quad
        \partial b_{sk} = \sum_{t: o_t = s} \mathrm{pred}_t(k) \hat\beta_t(k) / c_t .

    Parameters times these are the posterior expected counts. G, the number of slots, is n_objects, or 1 for totals. A
    derivative beyond the range of float64 (a parameter of zero that would explain the object incomparably better) is
    given as the largest float64, so that zero times it is zero.

    Attributes
    ----------
    log_prob : (n_objects,); -inf for impossible objects, whose rows below are zero.
    start : (G, n).
    transitions : (G, n, n); zero for sequences of length one.
    end : (G, n).
    emissions : (G, M, n) with respect to the table for symbols, (N, n) for one row per position.

    References
    ----------
    Tsuda, Kawanabe, Rätsch, Sonnenburg & Müller (2002), A new discriminative kernel from probabilistic models,
    appendix A, eq. A.2-A.5.
    """

    log_prob: Floats
    start: Floats
    transitions: Floats
    end: Floats
    emissions: Floats


class Marginals(NamedTuple):
    """Log P (n_objects,), posteriors of states (N, n) and, where wanted, of pairs of them (N - n_objects, n, n)."""

    log_prob: Floats
    states: Floats
    pairs: Floats


class Problem(NamedTuple):
    """Chains, evidence and offsets as contiguous arrays for compiled code; missing codes or logs are empty arrays."""

    start: Floats
    transitions: Floats
    end: Floats
    table: Floats
    shift: Floats
    codes: NDArray[np.int32]
    offsets: Ints
    logs: Floats


def as_problem(chains: Chains, evidence: Evidence, offsets: Ints) -> Problem:
    """Return the inputs as contiguous arrays of fixed types, so that compiled code has one signature."""
    codes = np.empty(0, np.int32) if evidence.codes is None else evidence.codes
    logs = np.empty((0, 0)) if evidence.logs is None else evidence.logs
    return Problem(
        read_only(np.ascontiguousarray(chains.start, np.float64)),
        read_only(np.ascontiguousarray(chains.transitions, np.float64)),
        read_only(np.ascontiguousarray(chains.end, np.float64)),
        read_only(np.ascontiguousarray(evidence.table, np.float64)),
        read_only(np.ascontiguousarray(evidence.shift, np.float64)),
        read_only(np.ascontiguousarray(codes, np.int32)),
        read_only(np.ascontiguousarray(offsets, np.int64)),
        read_only(np.ascontiguousarray(logs, np.float64)),
    )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: frozen and ordinary inputs then have one type for compiled code."""
    view = array.view()
    view.setflags(write=False)
    return view


def n_symbols(problem: Problem) -> int:
    """Return M, the rows of the table that belong to one chain; 0 where rows belong to positions."""
    return len(problem.table) // len(problem.start) if len(problem.codes) else 0


def empty_gradients(problem: Problem, slots: int, width: int) -> Gradients:
    """Return zero gradients of so many slots; emissions are (slots * M, width) or (N, width)."""
    n = problem.start.shape[1]
    rows = slots * n_symbols(problem) if len(problem.codes) else len(problem.table)
    return Gradients(
        np.zeros(len(problem.offsets) - 1),
        np.zeros((slots, n)),
        np.zeros((slots, n, n)),
        np.zeros((slots, n)),
        np.zeros((rows, width)),
    )

r"""Structured mean field for factorial models: each chain keeps its dynamics, chains are independent of one another.

.. math::
    h_t^c = W_c^T \Lambda \Big(x_t - \sum_{c' \ne c} W_{c'}^T \langle q_t^{c'} \rangle\Big)
            - \tfrac12 \mathrm{diag}(W_c \Lambda W_c^T), \qquad
    Q(q^c) \propto p(q^c) \prod_t e^{h_t^c(q_t^c)}

One sweep updates every chain once by a forward-backward pass; each update maximises the bound on the log-likelihood
over that chain's Q, so the bound never falls, wherever the sweeps start and whenever they stop.

References
----------
Ghahramani & Jordan (1997), Factorial hidden Markov models, eq. 12 and appendix D.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genkern.core.factorial.passes import JointChains, QuadraticForms
from genkern.core.factorial.steps import project
from genkern.core.hmm import passes as hmm
from genkern.data.objects import Packed
from genkern.models.factorial.evidence import Ints, chains_of, moments, observe, segment_sums
from genkern.models.factorial.passes import chain_blocks
from genkern.validation import Floats

FAINTEST = 700.0  # logarithm of the ratio of factors of one position within the range of float64


class FactorialField(NamedTuple):
    """Mean field: bounds (n,), marginals of states (N, K), raw derivatives of the chains, (n, K) and (n, Q)."""

    bound: Floats
    marginal: Floats
    start: Floats
    steps: Floats


def mean_field(
    model: Any, packed: Packed, marginal: Floats | None, max_sweeps: int, tol: float, n_jobs: int | None = None
) -> FactorialField:
    """Sweep over the chains until an object's bound gains less than ``tol`` per observation; the others continue.

    ``marginal`` (N, K) is where to start, by default at equal probabilities.
    """
    evidence, chains, offsets, n = observe(model, packed).evidence, chains_of(model), packed.offsets, packed.n_objects
    if marginal is None:
        marginal = np.tile(np.repeat(1.0 / chains.sizes, chains.sizes), (len(packed.values), 1))
    size, width = marginal.shape[1], chains.steps.shape[1]
    out = FactorialField(np.full(n, -np.inf), marginal.copy(), np.empty((n, size)), np.empty((n, width)))
    active, lengths, places = np.arange(n), packed.lengths, np.arange(len(packed.values))
    for _ in range(max_sweeps):
        field = _sweep(chains, evidence, offsets, marginal, bool(model.shape), n_jobs)
        going = field.bound - out.bound[active] >= tol * lengths
        out.bound[active], out.start[active], out.steps[active] = field.bound, field.start, field.steps
        out.marginal[places] = marginal = field.marginal
        if not going.any():
            break
        if not going.all():
            rows = np.repeat(going, lengths)
            marginal, places = marginal[rows], places[rows]
            active, lengths = active[going], lengths[going]
            offsets = np.concatenate([[0], np.cumsum(lengths)])
            constant, linear, pattern = evidence.constant[rows], evidence.linear[rows], evidence.pattern[rows]
            evidence = QuadraticForms(constant, linear, evidence.quadratic, pattern)
            if model.shape:
                chains = JointChains(chains.sizes, chains.start[going], chains.steps[going])
    return out


def field_statistics(model: Any, packed: Packed, field: FactorialField, totals: bool) -> dict[str, Floats]:
    """Return the blocks of the M-step's statistics under a mean field, per object or summed; chains are independent."""
    sight = observe(model, packed)
    pairs = segment_sums(field.marginal, field.marginal, sight)
    visits = segment_sums(np.ones((len(field.marginal), 1)), field.marginal, sight)[:, 0]
    end = 0
    for k in model.n_states:
        part = slice(end, end + k)
        pairs[:, part, part] = visits[:, part, None] * np.eye(k)
        end += k
    blocks = chain_blocks(model.n_states, field.start, field.steps) | moments(sight, field.marginal, pairs)
    return {name: block.sum(axis=0, keepdims=True) for name, block in blocks.items()} if totals else blocks


def _sweep(
    chains: JointChains, evidence: QuadraticForms, offsets: Ints, marginal: Floats, own: bool, n_jobs: int | None
) -> FactorialField:
    """Return the field after one update of every chain, each seeing the newest marginals of the others."""
    ends, step_ends = np.cumsum(chains.sizes), np.cumsum(chains.sizes**2)
    diagonal = np.diagonal(evidence.quadratic, axis1=1, axis2=2)
    between = evidence.quadratic.copy()
    for k, end in zip(chains.sizes, ends):
        between[:, end - k : end, end - k : end] = 0.0
    marginal = marginal.copy()
    own_part = evidence.linear - 0.5 * diagonal[evidence.pattern]
    values, starts, steps, bound = np.zeros(len(marginal)), [], [], np.zeros(len(offsets) - 1)
    for k, end, last in zip(chains.sizes, ends, step_ends):
        part = slice(end - k, end)
        potential = own_part[:, part] - project(marginal, evidence.pattern, between[:, :, part])
        top = potential.max(axis=1)
        # States that underflow in float64 get a tiny probability in Q. The bound holds for any Q.
        potential = np.maximum(potential, top[:, None] - FAINTEST)
        table = hmm.Evidence(np.exp(potential - top[:, None]), top, None)
        matrices = chains.steps[:, last - k * k : last].reshape(-1, k, k)
        chain = hmm.Chains(chains.start[:, part], matrices, np.ones((len(matrices), k)))
        sums = hmm.gradients(chain, table, offsets, n_jobs=n_jobs, own=own)
        marginal[:, part] = table.table * sums.emissions
        values -= (marginal[:, part] * potential).sum(axis=1)
        bound = bound + sums.log_prob
        starts.append(sums.start)
        steps.append(sums.transitions.reshape(len(sums.start), -1))
    coupling = project(marginal, evidence.pattern, between)
    values += evidence.constant + (marginal * (own_part - 0.5 * coupling)).sum(axis=1)
    bound = bound + np.add.reduceat(values, offsets[:-1])
    return FactorialField(bound, marginal, np.concatenate(starts, axis=1), np.concatenate(steps, axis=1))

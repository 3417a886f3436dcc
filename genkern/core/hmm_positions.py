"""What each position of one hidden Markov sequence adds to its log probability and to the derivatives."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from genkern.core import hmm_log
from genkern.core.hmm_types import Chains, Evidence, Gradients, as_problem


def position_gradients(chains: Chains, evidence: Evidence, length: int) -> Gradients:
    r"""Return raw derivatives of log P of one sequence, of T positions, with one group per position.

    Each factor of the joint probability belongs to one position: the start and the first emission to position 0, the
    step into a state and its emission to the position of that state, the end weight to the last. With the logarithms
    of :math:`\mathrm{pred}_t`, :math:`b_t` and :math:`\beta_t` of one pass each way,

    .. math::
        \partial^t a_{kl} = \mathrm{pred}_{t-1}(k)\, b_k(o_{t-1})\, b_l(o_t)\, \beta_t(l) / P, \qquad
        \partial^t b_k = \mathrm{pred}_t(k)\, \beta_t(k) / P,

    which sum over t to the derivatives of ``Gradients``. ``log_prob`` (T,) is :math:`\log p(o_t | o_0 \dots o_{t-1})`,
    the last one with the end weight; ``emissions`` is (T, M, n) for symbols, (T, n) for one row per position.

    Parameters
    ----------
    chains : Chains
        One chain. The sequence must be possible.
    evidence : Evidence
        Emission factors of its positions.
    length : int
        Their number T.
    """
    problem = as_problem(chains, evidence, np.array([0, length]))
    n = problem.start.shape[1]
    pred, beta = np.empty((length, n)), np.empty((length, n))
    with np.errstate(all="ignore"):
        hmm_log.forward(problem, 0, pred)
        total = hmm_log.backward(problem, 0, beta)
        rows = np.arange(length) if evidence.codes is None else evidence.codes
        table = np.log(evidence.table[rows])
        factors = table if evidence.logs is None else evidence.logs - evidence.shift[:, None]
        raised = np.where(np.isfinite(factors), table - factors, 0.0)
        seen = logsumexp(pred + factors, axis=1)
        start, transitions, end = np.zeros((length, n)), np.zeros((length, n, n)), np.zeros((length, n))
        start[0] = _exp(factors[0] + beta[0] - total)
        transitions[1:] = _exp((pred + factors)[:-1, :, None] + (factors + beta)[1:, None, :] - total)
        end[-1] = _exp(pred[-1] + factors[-1] - total)
        emissions = _exp(pred + beta - total - raised)
    log_prob = np.diff(seen, prepend=0.0) + evidence.shift[rows]
    log_prob[-1] += total - seen[-1]
    if evidence.codes is not None:
        by_symbol = np.zeros((length, len(evidence.table), n))
        by_symbol[np.arange(length), rows] = emissions
        emissions = by_symbol
    return Gradients(log_prob, start, transitions, end, emissions)


def _exp(logs):
    """Return exp, at most the largest float64."""
    return np.minimum(np.exp(logs), hmm_log.LARGEST)

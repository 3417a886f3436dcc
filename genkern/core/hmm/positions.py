"""The contribution of each position of one hidden Markov sequence to log P and to its derivatives."""

from __future__ import annotations

import numpy as np

from genkern.core.hmm import logarithms as hmm_log
from genkern.core.hmm.types import Chains, Evidence, Gradients, as_problem, empty_gradients


def position_gradients(chains: Chains, evidence: Evidence, length: int) -> Gradients:
    r"""Return raw derivatives of log P of one sequence, of T positions, with one slot per position.

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
    found = empty_gradients(problem, length, n)
    pred, log_prob = np.empty((length, n, 2)), np.empty(length)
    with np.errstate(all="ignore"):
        hmm_log.add_gradients(problem, 0, 0, 1, found)
        hmm_log.forward(problem, 0, pred)
        hmm_log.step_logs(problem, 0, pred, log_prob)
    emissions = found.emissions
    if evidence.codes is not None:
        emissions = emissions.reshape(length, len(evidence.table), n)
    return found._replace(log_prob=log_prob, emissions=emissions)

"""The M-step of linear dynamical systems, over one system or a stack of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from genkern.models.base import Statistics
from genkern.models.lds.covariance import form_of, shaped
from genkern.models.lds.model import LDS
from genkern.validation import Floats

RCOND = 1e-12  # directions of the states with less than this share of their largest moment are never regressed on
BOUND = 1.0 - 1e-4  # largest spectral radius of stable dynamics
HALVINGS = 40  # of the step towards unstable dynamics


class Rules(NamedTuple):
    """Constraints of M-steps, of one system or, where there is an axis G, of each of a stack.

    Floors of Q and P_0, a number, and of R (G, d); pseudo-observations, and the variances that they have in Q, a
    number, and in R (G, d); whether dynamics are stable, and whether the offset is estimated; fields that are kept
    fixed.
    """

    state_floor: float
    obs_floor: Floats
    pseudocount: float
    state_variance: float
    obs_variance: Floats
    stable: bool
    offset: bool
    fixed: tuple[str, ...] = ()

    def of(self, members: Any) -> Rules:
        """Return the rules of some systems of a stack, or of one of them several times."""
        return self._replace(obs_floor=self.obs_floor[members], obs_variance=self.obs_variance[members])


def maximize(statistics: Statistics, rules: Rules) -> LDS:
    """Return the system, or the stack of own systems, that maximises expected log-likelihood plus log prior."""
    model: LDS = statistics.model
    batch = len(model.shape)
    systems, blocks = model.systems(), statistics.blocks
    starts, moves, looks = (blocks["counts"][:, k, None, None] for k in range(3))
    noise = systems.Q @ blocks["transition"]  # sum of E[w s^T]
    step = np.zeros_like(noise) if "transition" in rules.fixed else noise @ _inverse(blocks["left"])
    if rules.stable and "transition" not in rules.fixed:
        step = _stable_step(systems.A, step, systems.Q, blocks["left"])
    second = _second(systems.Q, blocks["state_cov"], moves)
    second = second - _symmetric(noise @ _t(step)) + step @ blocks["left"] @ _t(step)
    Q = _covariance(second, moves, model.state_cov, batch, rules.pseudocount, rules.state_variance, rules.state_floor)
    turn, second = _regression(
        systems.R, blocks, looks, "observation" not in rules.fixed, rules.offset and "offset" not in rules.fixed
    )
    R = _covariance(second, looks, model.obs_cov, batch, rules.pseudocount, rules.obs_variance, rules.obs_floor)
    shift = (systems.cov @ blocks["initial_mean"][..., None]) / starts * ("initial_mean" not in rules.fixed)
    second = _second(systems.cov, blocks["initial_cov"], starts) / starts - shift @ _t(shift)
    P = shaped(second, form_of(model.initial_cov, batch), rules.state_floor)
    C, offset = systems.C + turn[..., :-1], systems.offset + turn[..., -1]
    new = (systems.A + step, C, Q, R, systems.mean + shift[..., 0], P, offset)
    parts = zip(LDS._fields, (part if batch else np.asarray(part[0]) for part in new), strict=True)
    return LDS._restore(*(getattr(model, name) if name in rules.fixed else part for name, part in parts))


def _regression(
    R: Floats, blocks: dict[str, Floats], looks: Floats, observation: bool, offset: bool
) -> tuple[Floats, Floats]:
    """Return steps (G, d, n + 1) of C and b, if they are free, regressed on (s, 1), and the sums of squares left."""
    total = blocks["seen_sum"][..., None]
    noise = R @ np.concatenate([blocks["observation"], blocks["offset"][..., None]], axis=-1)  # sum of E[e (s, 1)^T]
    if not observation:
        turn = np.zeros_like(noise)
        if offset:
            turn[..., -1:] = noise[..., -1:] / np.where(looks > 0.0, looks, 1.0)
    elif offset:
        moment = np.block([[blocks["seen"], total], [_t(total), looks]])
        turn = noise @ _inverse(moment)
    else:
        turn = noise[..., :-1] @ _inverse(blocks["seen"])
        turn = np.concatenate([turn, np.zeros_like(noise[..., -1:])], axis=-1)
    return turn, _second(R, blocks["obs_cov"], looks) - turn @ _t(noise)


def _inverse(moment: Floats) -> Floats:
    """Return the pseudo-inverses of second moments, whatever the units of their coordinates."""
    scale = np.sqrt(np.diagonal(moment, axis1=-2, axis2=-1))
    scale = np.where(scale > 0.0, scale, 1.0)
    square = scale[..., :, None] * scale[..., None, :]
    return np.asarray(np.linalg.pinv(moment / square, rcond=RCOND, hermitian=True) / square)


def log_prior(model: LDS, rules: Rules) -> Floats:
    r"""Return the log density (batch) of the pseudo-observations, up to a constant.

    .. math:: -\tfrac{\nu}{2} (\log |Q| + q \, \mathrm{tr} \, Q^{-1} + \log |R| + \sum_c r_c (R^{-1})_{cc})
    """
    total = np.zeros(model.shape)
    if rules.pseudocount == 0.0:
        return total
    Q, R, _ = model.matrices()
    for cov, variance in ((Q, rules.state_variance), (R, rules.obs_variance)):
        half = np.linalg.slogdet(cov)[1] + (np.diagonal(np.linalg.inv(cov), axis1=-2, axis2=-1) * variance).sum(axis=-1)
        total = total - 0.5 * rules.pseudocount * half.reshape(model.shape)
    return np.asarray(total)


def _second(cov: Floats, raw: Floats, count: Floats) -> Floats:
    """Return the expected sum of squares of a noise, from the derivative by its covariance."""
    return np.asarray(count * cov + 2.0 * cov @ raw @ cov)


def _covariance(
    second: Floats, count: Floats, old: Floats, batch: int, pseudocount: float, variance: Any, floors: Any
) -> Floats:
    """Return covariances of the old ones' form from sums of squares and pseudo-observations; old ones without any."""
    weight = count + pseudocount
    prior = np.broadcast_to(pseudocount * np.asarray(variance), second.shape[:-1])[..., None] * np.eye(second.shape[-1])
    moment = (second + prior) / np.where(weight > 0.0, weight, 1.0)
    new = shaped(moment, form_of(old, batch), floors)
    kept = old.reshape(new.shape)
    return np.where(weight.reshape((-1,) + (1,) * (new.ndim - 1)) > 0.0, new, kept)


def _stable_step(A: Floats, step: Floats, Q: Floats, left: Floats) -> Floats:
    r"""Return steps to dynamics of spectral radius below one, none of them worse than no step.

    The expected log-likelihood of A' is :math:`-\tfrac12 \mathrm{tr} \, Q^{-1} (A' - A^*) M (A' - A^*)^T` plus a
    constant, :math:`A^* = A + \Delta`. Where :math:`A^*` is unstable, A' is the better of two: the farthest stable
    point found by bisection on the segment from A, along which the objective rises, and :math:`A^*` shrunk to the
    bound, which can leave a corner of the stable set.
    """
    radius = _radius(A + step)
    wild = np.flatnonzero(radius > BOUND)
    if not len(wild):
        return step
    step = step.copy()
    A, full, left = A[wild], step[wild], left[wild]
    low, high = np.zeros(len(wild)), np.ones(len(wild))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        inside = _radius(A + middle[:, None, None] * full) <= BOUND
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    segment = low[:, None, None] * full
    shrunk = (A + full) * (BOUND / radius[wild])[:, None, None] - A
    lowest = np.linalg.eigvalsh(Q[wild])[:, 0]
    inverse = np.linalg.pinv(Q[wild], hermitian=True)
    costs = [np.einsum("pij,pjk,pkl,pil->p", inverse, to - full, left, to - full) for to in (segment, shrunk)]
    better = (lowest > 0.0) & (costs[1] < costs[0])
    step[wild] = np.where(better[:, None, None], shrunk, segment)
    return step


def _radius(A: Floats) -> Floats:
    """Return spectral radii (P,)."""
    return np.asarray(np.abs(np.linalg.eigvals(A)).max(axis=-1))


def _t(matrix: Floats) -> Floats:
    return np.swapaxes(matrix, -1, -2)


def _symmetric(matrix: Floats) -> Floats:
    return np.asarray(matrix + _t(matrix))

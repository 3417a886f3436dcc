"""First guesses for EM on hidden Markov models, for one model of all objects or one per object."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from genkern.core.hmm import passes as core
from genkern.data.objects import Packed
from genkern.models.estimator import LeafEstimator, one_hot
from genkern.models.families.gaussian_estimator import GaussianEstimator
from genkern.models.fit.chosen import CRITERIA
from genkern.models.fit.emissions import refuse_other_form
from genkern.models.fit.streams import LARGEST_SEED, Keys, derive, uniforms
from genkern.models.fit.weights import amounts, counted, often, point_weights
from genkern.models.hmm.model import HMM
from genkern.models.mixture.estimator import MixtureEstimator
from genkern.models.mixture.start import ROUNDS, cluster, divide, soften
from genkern.validation import Floats

SEGMENTATIONS = 10  # rounds of best paths and models fitted to them
EMISSION_SALT = 1  # emissions draw from another stream than the chain
SMOOTHING = 1.0  # added to every transition counted between labels: a first guess must not forbid anything


class StartPlan:
    """What a first guess needs to know: the data, the states, what may follow what, and keys of random numbers.

    ``own`` asks for one model per object; there is one key per model. ``labels`` (N,) are the states that are known.
    """

    def __init__(self, packed: Packed, n: int, structure: str, own: bool, keys: Keys, labels: Any = None):
        self.packed, self.n, self.structure, self.own, self.keys = packed, n, structure, own, keys
        self.labels = labels
        self.batch = (packed.n_objects,) if own else ()
        self.groups = packed.offsets if own else np.array([0, len(packed.values)])

    def uniforms(self, *shape: int) -> Floats:
        """Return uniform numbers (P,) + shape, row i from key i."""
        count = int(np.prod(shape))
        return uniforms(self.keys[:, None], np.arange(count)).reshape((-1, *shape))


def allowed(structure: str, n: int) -> tuple[Floats, Floats]:
    """Return masks of the start (n,) and transitions (n, n) that a structure allows."""
    if structure == "ergodic":
        return np.ones(n), np.ones((n, n))
    start = np.zeros(n)
    start[0] = 1.0
    return start, np.eye(n) + np.eye(n, k=1)


def states_by_length(length: float, symbols: int, zeta: float = 0.1) -> int:
    r"""Return the number of states for a sequence of given length.

    .. math:: n = \left\lfloor \tfrac12 \left(\sqrt{m^2 + 4(L\zeta + m + 1)} - m\right) \right\rfloor + 1

    The root of :math:`(n - 1)(n + m + 1) = L \zeta` (Jebara, Kondor & Howard 2004, sec. 8.2), at least two.
    """
    return int((math.sqrt(symbols**2 + 4.0 * (length * zeta + symbols + 1)) - symbols) / 2.0) + 1


def check_start(model: HMM, structure: str, ending: str | None) -> None:
    """Refuse a starting model whose chain has another form than requested."""
    start_mask, step_mask = allowed(structure, model.n_states)
    wrong = np.argwhere((model.transitions > 0) & (step_mask == 0)).tolist()
    if wrong or ((model.start > 0) & (start_mask == 0)).any():
        what = f"goes from state {wrong[0][0]} to {wrong[0][1]}" if wrong else "starts in other states than 0"
        raise ValueError(
            f"HMMEstimator: 'init' {what}, which structure={structure!r} forbids. Set that probability to zero, or use "
            "structure='ergodic'."
        )
    has = "stop" if model.stop is not None else "end" if model.end is not None else None
    if ending not in (None, has):
        raise ValueError(
            f"HMMEstimator: ending={ending!r}, and 'init' has {has or 'no such'} probabilities. Make them agree, or "
            "leave ending=None."
        )


def check_choices(init: HMM | None, n_states: int | str, ending: str | None, fixed: Any) -> None:
    """Refuse a number of states that is to be chosen beside a model that has one, and fixed weights of no end."""
    if init is not None and n_states in CRITERIA:
        raise ValueError(
            f"HMMEstimator: n_states={n_states!r} chooses the number of states, and 'init' has {init.n_states}. Leave "
            "out one of them."
        )
    if "end" in fixed and (ending != "end" if init is None else init.end is None):
        raise ValueError(
            "HMMEstimator: 'fixed' names 'end', and there are no end weights. Use ending='end', or an 'init' with them."
        )


def pack_for_start(model: HMM, emission: LeafEstimator, X: Any) -> Packed:
    """Encode X, refusing a starting model whose emissions have another form, or alphabet, than the estimator."""
    given = [value for name, value in emission.get_params().items() if name.endswith(("alphabet", "missing"))]
    packed = model.pack(X) if given.count(None) == len(given) else emission.pack_sequences(X)
    asked: Any = emission.reference(packed, model.n_states, own=False)
    refuse_other_form(model.emissions, asked, ("HMMEstimator", "emissions", "emission"))
    return packed


def _by_name(init: str, plan: StartPlan) -> str:
    """Return the kind of start that "auto" means, refusing clusters of symbols."""
    numeric = plan.packed.alphabet is None
    if init in ("kmeans", "gmm") and not numeric:
        raise ValueError(f"HMMEstimator: init={init!r} needs vectors. Got symbols; use 'segmental' or 'random'.")
    if init == "auto":
        return "segmental" if plan.structure == "left-right" else "kmeans" if numeric else "random"
    return init


def first_guess(plan: StartPlan, emission: LeafEstimator, init: str, ending: str | None) -> HMM:
    """Return the HMM (or stack of own HMMs) from which EM starts; labels, if there are any, tell more than ``init``."""
    init = _by_name(init, plan)
    if plan.labels is not None:
        return _labelled(plan, plan.labels, _known_shares(plan, emission), emission, ending)
    if init == "viterbi":
        return _segmented(plan, emission, ending)
    if init == "random":
        return _completed(plan, _random_chain(plan), _random_emissions(plan, emission), ending)
    if init == "segmental":
        labels = _segments(plan)
        return _labelled(plan, labels, one_hot(labels, plan.n), emission, ending)
    if init == "gmm":
        shares = _mixture_shares(plan)
        return _labelled(plan, shares.argmax(axis=1), shares, emission, ending)
    labels = _clusters(plan, emission)
    return _labelled(plan, labels, _softened(plan, emission, labels), emission, ending)


def _labelled(
    plan: StartPlan, labels: NDArray[np.int64], shares: Floats, emission: LeafEstimator, ending: str | None
) -> HMM:
    """Return the model of counted steps between labels and of emissions fitted to shares (N, n) of states in points."""
    emissions = emission.guess(plan.packed, shares * counted(plan.packed), plan.own)
    return _completed(plan, _labelled_chain(plan, labels), emissions, ending)


def _completed(plan: StartPlan, chain: tuple[Floats, Floats], emissions: Any, ending: str | None) -> HMM:
    """Return the model of a chain and emissions, with equal end weights or a probability to stop, if asked."""
    start, steps = chain
    lengths = plan.packed.lengths
    lengths = lengths if plan.own else np.array([np.average(lengths, weights=plan.packed.weights)])
    shape = (*plan.batch, plan.n)
    end = stop = None
    if ending == "end":
        end = np.full(shape, 1.0 / plan.n)
    elif ending == "stop":
        stop = np.broadcast_to(1.0 / (1.0 + lengths)[:, None], (len(lengths), plan.n)).reshape(shape)
        steps = steps * (1.0 - stop[..., None])
    return HMM(start, steps, emissions, end=end, stop=stop)


def _segmented(plan: StartPlan, emission: LeafEstimator, ending: str | None) -> HMM:
    """Return the model after rounds of segmental k-means: best paths, and the model fitted to them.

    Of left-right models the first paths are equal segments; else the first model has equal start and transition
    probabilities and random emissions, as that of Mehta & Gray (2010). Objects whose paths no longer change are kept,
    whatever the others do.

    References
    ----------
    Juang & Rabiner (1990), The segmental k-means algorithm for estimating parameters of hidden Markov models.
    Mehta & Gray (2010), Generative and latent mean map kernels, experiments on sequence data.
    """
    if plan.structure == "left-right":
        model = first_guess(plan, emission, "segmental", ending)
    else:
        even = _normalised(plan, np.zeros((len(plan.keys), plan.n)), np.zeros((len(plan.keys), plan.n, plan.n)))
        model = _completed(plan, even, _random_emissions(plan, emission), ending)
    paths = np.empty(0, np.int64)
    for _ in range(SEGMENTATIONS):
        before, evidence = paths, model.emissions.evidence(plan.packed)
        paths = core.viterbi(model.chains(), evidence, plan.packed.offsets)[0].astype(np.int64)
        if np.array_equal(paths, before):
            break
        model = _labelled(plan, paths, one_hot(paths, plan.n), emission, ending)
    return model


def _mixture_shares(plan: StartPlan) -> Floats:
    """Return the posteriors (N, n) of the components of a Gaussian mixture fitted to the points of each model.

    As in Carli, Bicego, Baldo & Murino (2010), Nonlinear mappings for generative kernels on latent variable models,
    section IV. There are no more components than points.
    """
    shares, packed = np.zeros((plan.packed.n_points, plan.n)), plan.packed
    for i, key in enumerate(plan.keys):
        part = packed.take([i]) if plan.own else packed
        count = part.n_points if plan.own else int(max(part.n_points, amounts(part).sum()))
        k, seed = min(plan.n, count), int(key) % (LARGEST_SEED + 1)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # of a start that EM goes on from
            mixture = MixtureEstimator(k, GaussianEstimator(), random_state=seed).fit(part, None, part.weights).model_
        shares[plan.groups[i] : plan.groups[i + 1], :k] = np.concatenate(mixture.posterior(part))
    return shares


def _segments(plan: StartPlan) -> NDArray[np.int64]:
    """Return labels that cut every object into n equal segments."""
    lengths = np.repeat(plan.packed.lengths, plan.packed.lengths)
    position = np.arange(len(plan.packed.values)) - np.repeat(plan.packed.offsets[:-1], plan.packed.lengths)
    return position * plan.n // lengths


def _clusters(plan: StartPlan, emission: LeafEstimator, rounds: int = ROUNDS["kmeans"]) -> NDArray[np.int64]:
    """Return labels by k-means on the vectors of each object (or of all), as the emissions' family compares them."""
    values = emission.standardized(plan.packed, plan.own).values
    return cluster(values, plan.groups, plan.n, plan.uniforms(plan.n), rounds, often(plan.packed))


def _softened(plan: StartPlan, emission: LeafEstimator, labels: NDArray[np.int64]) -> Floats:
    """Return the shares (N, n) of states in points, given clusters."""
    values = emission.standardized(plan.packed, plan.own).values
    return soften(values, plan.groups, labels, plan.n, often=often(plan.packed))


def _known_shares(plan: StartPlan, emission: LeafEstimator) -> Floats:
    """Return shares (N, n) of states in points, given labels of some; the rest is divided among states without label.

    Every state gets one more point, spread over all points, as one labelled point has no variance.
    """
    shares = one_hot(np.maximum(plan.labels, 0), plan.n) * (plan.labels >= 0)[:, None]
    unseen = np.flatnonzero(shares.sum(axis=0) == 0)
    rest = (plan.labels < 0).astype(np.float64)[:, None]
    if len(unseen) and rest.any():
        points = emission.standardized(plan.packed, plan.own)
        shares[:, unseen] = divide(points, rest, plan.own, len(unseen), plan.keys, "kmeans")[:, 0]
    return np.asarray(shares + 1.0 / amounts(plan.packed).sum())


def _labelled_chain(plan: StartPlan, labels: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return start (batch, n) and transitions (batch, n, n) from smoothed counts of labels; -1 is not counted."""
    n, packed = plan.n, plan.packed
    owner = np.arange(packed.n_objects) if plan.own else np.zeros(packed.n_objects, np.int64)
    rows = len(plan.keys)
    begin = labels[packed.offsets[:-1]]
    often = None if packed.weights is None else point_weights(packed)[:, 0]
    known = begin >= 0
    weights = None if packed.weights is None else packed.weights[known]
    first = np.bincount((owner * n + begin)[known], weights, rows * n).reshape(rows, n)
    inside = labels >= 0
    inside[1:] &= labels[:-1] >= 0
    inside[packed.offsets[:-1]] = False
    here = np.flatnonzero(inside)
    cells = (np.repeat(owner, packed.lengths)[here] * n + labels[here - 1]) * n + labels[here]
    steps = np.bincount(cells, None if often is None else often[here], rows * n * n).reshape(rows, n, n)
    return _normalised(plan, first, steps)


def _random_chain(plan: StartPlan) -> tuple[Floats, Floats]:
    """Return random start and transitions (flat Dirichlet rows)."""
    exponential = -np.log1p(-plan.uniforms(plan.n + 1, plan.n))
    return _normalised(plan, exponential[:, 0], exponential[:, 1:], smoothing=1e-3)


def _normalised(plan: StartPlan, first: Any, steps: Any, smoothing: float = SMOOTHING) -> tuple[Floats, Floats]:
    """Return smoothed counts (P, n) and (P, n, n) as probabilities within the structure."""
    start_mask, step_mask = allowed(plan.structure, plan.n)
    start = (first + smoothing) * start_mask
    rows = (steps + smoothing) * step_mask
    start = start / start.sum(axis=-1, keepdims=True)
    rows = rows / rows.sum(axis=-1, keepdims=True)
    return start.reshape((*plan.batch, plan.n)), rows.reshape((*plan.batch, plan.n, plan.n))


def _random_emissions(plan: StartPlan, emission: LeafEstimator) -> Any:
    """Return emissions fitted to random assignments: of vectors to the nearest of n random ones, of symbols to states.

    A symbol is shared among the states with random weights, one of which dominates, the same at all its occurrences.
    With independent assignments of points, states would become more alike with more data, and EM would start near the
    saddle point of equal states.
    """
    if plan.packed.alphabet is None:
        shares = _softened(plan, emission, _clusters(plan, emission, rounds=1))
        return emission.guess(plan.packed, shares * counted(plan.packed), plan.own)
    rows, codes = len(plan.keys), int(plan.packed.values.max()) + 1
    owners = np.repeat(np.arange(rows), np.diff(plan.groups))
    often = None if plan.packed.weights is None else point_weights(plan.packed)[:, 0]
    counts = np.bincount(owners * codes + plan.packed.values, often, rows * codes)
    weights = uniforms(derive(plan.keys, EMISSION_SALT)[:, None], np.arange(codes * plan.n)) ** 4
    weights = weights.reshape(rows * codes, plan.n)
    weights *= (counts / weights.sum(axis=1))[:, None]
    each_once = Packed(
        np.tile(np.arange(codes, dtype=np.int32), rows), codes * np.arange(rows + 1), plan.packed.alphabet
    )
    return emission.fit_weighted(each_once, weights, plan.own)

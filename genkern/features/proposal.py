"""Features of models from draws that all of them share: products of powers of any densities, by Monte Carlo."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from genkern.data.transformer import Transformer
from genkern.models.base import draws_in
from genkern.models.fit.streams import seed_of
from genkern.validation import Floats, check_bool, check_int, check_number

LOWEST, HIGHEST = -700.0, 700.0  # logarithms of features whose squares neither underflow nor overflow


class ProposalFeatures(Transformer):
    r"""Features of models whose inner products estimate the probability product kernel of the densities themselves.

    .. math:: \phi_s(p) = \frac{p(x_s)^\rho}{\sqrt{N\, m(x_s)}}, \quad x_s \sim m, \qquad
       E\, \langle \phi(p), \phi(q) \rangle = \int p(x)^\rho q(x)^\rho dx

    with one proposal m for all, the mean of the models given to ``fit``. The kernel is positive semi-definite for any
    number of draws, it is that of the mixtures' or hidden Markov models' densities (not the one with the power inside
    the sum over hidden states), and n models cost n N likelihoods, not n^2 N.

    Parameters
    ----------
    rho : float, default=0.5
        Power, positive. For one half all features are small: :math:`\phi_s \le \sqrt{n / N}`.
    n : int, default=1000
        Number N of draws.
    length : int, optional
        Number of observations, for models of sequences and of several draws.
    normalize : bool, default=True
        Scale every row to unit length, in logarithms, so that the kernel of a model with itself is one. Otherwise
        features that leave the range of floating point are refused.
    random_state : int, default=0
        Seed of the draws.

    Attributes
    ----------
    draws_ : list of N objects
    log_proposal_ : ndarray of shape (N,)
        Log densities of the draws under the mean of the models.

    Notes
    -----
    Models are those of this package or any objects with ``log_prob(X)`` and ``sample(n, rng=)`` (with ``length=`` for
    sequences). If there are more models than draws, N of them, chosen at random, make the proposal. The proposal should
    cover new models, too: one with much of its mass elsewhere is represented by few draws.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 5, with one proposal for all pairs.

    Examples
    --------
    >>> from genkern import Gaussian, ProposalFeatures
    >>> models = [Gaussian(0.0, 1.0), Gaussian(0.5, 1.0)]
    >>> features = ProposalFeatures(rho=0.5, n=4000).fit_transform(models)
    >>> round(float(features[0] @ features[1]), 2)  # exactly exp(-1/32) = 0.97
    0.97
    """

    _fitted = "log_proposal_"
    _inputs: ClassVar[dict[str, bool]] = {"two_d_array": False}
    _refuses_y = False  # models have no positions that it could be of

    def __init__(
        self,
        rho: float = 0.5,
        n: int = 1000,
        length: int | None = None,
        normalize: bool = True,
        random_state: Any = 0,
    ):
        self.rho = rho
        self.n = n
        self.length = length
        self.normalize = normalize
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        who = "ProposalFeatures"
        check_number(self.rho, "rho", who, exclusive=True)
        check_bool(self.normalize, "normalize", who)
        size = check_int(self.n, "n", who, 1)
        length = None if self.length is None else check_int(self.length, "length", who, 1)
        models = self._encode(X)
        rng = np.random.default_rng(seed_of(self.random_state))
        if len(models) > size:
            models = [models[i] for i in np.sort(rng.choice(len(models), size, replace=False))]
        # Equal shares, as far as possible; the weights of the proposal are the shares themselves.
        shares = np.bincount(np.arange(size) % len(models), minlength=len(models))
        self.draws_ = []
        for model, share in zip(models, shares):
            options = {} if length is None else {"length": draws_in(model, length, who)}
            self.draws_ += list(model.sample(int(share), rng=rng, **options))
        logs = np.stack([_log_prob(model, self.draws_, i) for i, model in enumerate(models)])
        self.log_proposal_: Floats = np.logaddexp.reduce(logs + np.log(shares / size)[:, None], axis=0)

    def _encode(self, X: Any) -> list[Any]:
        """Return a list of things with likelihoods and draws."""
        if len(X) == 0:
            raise ValueError("ProposalFeatures: needs at least one model. Got an empty list.")
        for i, model in enumerate(X):
            if not (callable(getattr(model, "log_prob", None)) and callable(getattr(model, "sample", None))):
                raise TypeError(
                    f"ProposalFeatures: expected models with log_prob and sample. Got {type(model).__name__} at index "
                    f"{i}; FitEach turns objects into models."
                )
        return list(X)

    def _transform(self, models: list[Any]) -> Floats:
        shift = 0.5 * (self.log_proposal_ + np.log(len(self.log_proposal_)))
        features = np.zeros((len(models), len(shift)))
        for i, model in enumerate(models):
            logs = self.rho * _log_prob(model, self.draws_, i) - shift
            top = logs.max()
            if np.isneginf(top):
                raise ValueError(
                    f"ProposalFeatures: model {i} cannot have produced any of the {len(shift)} draws, so the proposal "
                    "says nothing about it. Fit on models that cover it, or take more draws (n)."
                )
            if not self.normalize:
                self._check_range(top, i)
            values = np.exp(logs - top)
            features[i] = values / np.linalg.norm(values) if self.normalize else values * np.exp(top)
        return features

    def _check_range(self, top: float, i: int) -> None:
        if not LOWEST < top < HIGHEST:
            raise ValueError(
                f"ProposalFeatures: the features of model {i} leave the range of floating point (the largest is "
                f"exp({top:.4g})). Use normalize=True, rho=0.5 or a shorter length."
            )

    def _names_out(self, given: Any) -> Any:
        """Return ``draw0``, ``draw1``, ..."""
        return [f"draw{s}" for s in range(len(self.log_proposal_))]


def _log_prob(model: Any, draws: list[Any], i: int) -> Floats:
    """Return log densities (N,) of the draws, refusing NaN."""
    logs = np.asarray(model.log_prob(draws), dtype=np.float64)
    if logs.shape != (len(draws),) or np.isnan(logs).any() or np.isposinf(logs).any():
        raise ValueError(
            f"ProposalFeatures: log_prob of model {i} must return one number below infinity for each of the "
            f"{len(draws)} draws. Got shape {logs.shape}."
        )
    return logs

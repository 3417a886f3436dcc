"""Dirichlet distributions over the simplex; of two coordinates, Beta distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln, logsumexp, softmax

from genkern.core.families.newton import dirichlet_alpha
from genkern.data.intake import locate
from genkern.data.objects import Packed
from genkern.models.families.exponential_family import ExponentialFamily, FamilyEstimator
from genkern.models.families.gamma import EQUAL, squared_trigamma
from genkern.models.information import Information
from genkern.validation import REFUSE, RENORMALISE, Floats, check_number


class Dirichlet(ExponentialFamily):
    r"""Dirichlet distributions over shares that sum to one.

    .. math:: p(x) = \frac{\Gamma(\sum_j \alpha_j)}{\prod_j \Gamma(\alpha_j)} \prod_j x_j^{\alpha_j - 1}

    Parameters
    ----------
    alpha : array-like of shape batch + (d,)
        Positive, d >= 2. With d = 2, the first coordinate follows a Beta distribution.

    Notes
    -----
    Points are rows of d positive shares that sum to one (rounding errors up to 1e-6 are corrected). Missing entries are
    refused, by object and position. Coordinates: the logarithm of alpha in softmax coordinates, its square root in
    sqrt coordinates, else itself.

    References
    ----------
    Jebara, Kondor & Howard (2004), Probability product kernels, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import Dirichlet
    >>> Dirichlet([2.0, 1.0]).log_prob(np.array([[0.5, 0.5], [0.25, 0.75]])).round(4)
    array([ 0.    , -0.6931])
    """

    _fields = ("alpha",)
    family_name = "dirichlet"
    _ranges = ("positive",)
    _support = "a positive share"
    terms = ("log", "weight")
    alpha: Floats

    def __init__(self, alpha: ArrayLike):
        self._set(alpha=alpha)
        if self.n_features < 2:
            raise ValueError(f"Dirichlet: 'alpha' must have at least two entries. Got shape {self.alpha.shape}.")

    @staticmethod
    def outside(points: Floats) -> NDArray[np.bool_]:
        """Return where points are missing or not positive."""
        return ~(points > 0)

    @classmethod
    def check_support(cls, packed: Packed, who: str) -> Packed:
        """Return packed rows of shares, refusing others by object and position."""
        packed = super().check_support(packed, who)
        total = packed.values.sum(axis=1, keepdims=True)
        off = np.abs(total - 1.0)
        if (off > REFUSE).any():
            row = int(np.argmax(off > REFUSE))
            index, position = locate(packed.offsets, row)
            raise ValueError(
                f"{who}: object {index}, position {position} sums to {total[row, 0]:.9g}; expected shares that sum to "
                "one. Divide it by its sum."
            )
        rounded = off > RENORMALISE
        if not rounded.any():
            return packed
        return packed._replace(values=np.where(rounded, packed.values / total, packed.values))

    @staticmethod
    def sufficient(points: Floats) -> list[Floats]:
        """Return the logarithms (N, d), and one (N, 1)."""
        return [np.log(points), np.ones((len(points), 1))]

    def natural(self) -> list[Floats]:
        """Return alpha - 1, and minus the log normaliser, batch + (1,)."""
        total = gammaln(self.alpha.sum(axis=-1, keepdims=True))
        return [self.alpha - 1.0, total - gammaln(self.alpha).sum(axis=-1, keepdims=True)]

    def slopes(self, blocks: dict[str, Floats]) -> list[Floats]:
        """Return derivatives by the logarithm: alpha (log x - its expectation)."""
        expected = digamma(self.alpha) - digamma(self.alpha.sum(axis=-1, keepdims=True))
        return [self.alpha * (blocks["log"] - blocks["weight"] * expected)]

    def member_information(self, draws: Floats, coordinates: str) -> list[Information]:
        """Return one (d, d) block per member: the covariances of the logarithms, for logarithms of alpha and beyond."""
        total = self.alpha.sum(axis=-1, keepdims=True)
        share, common = self.alpha / total, squared_trigamma(total)[..., None]
        matrix = squared_trigamma(self.alpha)[..., None] * np.eye(self.n_features)
        matrix = matrix - common * share[..., :, None] * share[..., None, :]
        slope = self._stretch(coordinates)[0]
        return list(matrix * slope[..., :, None] * slope[..., None, :] * np.asarray(draws)[:, None, None])

    def draw(self, which: NDArray[np.int64], rng: np.random.Generator) -> Floats:
        """Return one row from each named member; shares too small for a float become the smallest one."""
        alpha = self.alpha[which]
        # A Gamma variable of shape a is one of shape a + 1 times U^(1/a): its logarithm does not underflow.
        logs = np.log(rng.standard_gamma(alpha + 1.0)) - rng.standard_exponential(alpha.shape) / alpha
        return np.maximum(softmax(logs, axis=1), np.finfo(np.float64).tiny)


class DirichletEstimator(FamilyEstimator):
    r"""Dirichlet parameters by maximum likelihood, or with a conjugate prior.

    .. math::

        \psi(\hat\alpha_j) - \psi({\textstyle\sum_i} \hat\alpha_i) =
        \frac{\sum \log x_j + \epsilon (\psi(1) - \psi(d))}{n + \epsilon}

    Parameters
    ----------
    pseudocount : float, default=0.01
        Number :math:`\epsilon` of further observations, whose logarithms have the means of the uniform distribution
        on the simplex (the conjugate prior). It keeps the estimate from equal points finite. Zero is plain maximum
        likelihood, which such points do not have.

    Attributes
    ----------
    model_ : Dirichlet

    Notes
    -----
    Solved to machine precision by Newton's method, in time linear in d.

    References
    ----------
    Minka (2000), Estimating a Dirichlet distribution, section 1.

    Examples
    --------
    >>> import numpy as np
    >>> from genkern import DirichletEstimator
    >>> DirichletEstimator(pseudocount=0).fit(np.array([[0.4, 0.6], [0.6, 0.4]])).model_.alpha.round(2)
    array([12.49, 12.49])
    """

    family = Dirichlet
    degenerate = (
        "all its points are equal, so that the likelihood grows with alpha without end. Give a pseudocount > 0."
    )

    def __init__(self, pseudocount: float = 0.01):
        self.pseudocount = pseudocount

    def check_parameters(self) -> None:
        """Raise for a negative pseudocount."""
        check_number(self.pseudocount, "pseudocount", "DirichletEstimator")

    def pseudo_sums(self, d: int) -> list[float]:
        """Return the logarithms and the number of the prior's observations."""
        return [self.pseudocount * float(digamma(1.0) - digamma(d)), self.pseudocount]

    def solve(self, sums: list[Floats]) -> list[Floats]:
        """Return alpha (M, d)."""
        logs, weight = sums
        mean_log = logs / weight.reshape(-1, 1)
        spread = -logsumexp(mean_log, axis=1)
        mean_log[spread <= EQUAL * (1.0 + np.abs(mean_log).max(axis=1))] = np.nan
        return [dirichlet_alpha(mean_log)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

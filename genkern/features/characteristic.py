"""Random features of models whose products estimate the mean map kernel: characteristic functions at random points."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from genkern.affinities.collection import Collection, Group, as_collection
from genkern.data.transformer import Transformer
from genkern.models.base import Model
from genkern.models.characteristic import Complexes, EmittingChain, Waves
from genkern.models.fit.streams import seed_of
from genkern.validation import Floats, check_bool, check_int, check_number

NUMBERS = 1 << 17  # complex numbers of a temporary array: a few of them should fit into the processor's cache
HIGHEST = 340.0  # logarithms of features whose squares neither underflow nor overflow
LOG_2 = math.log(2.0)


class CharacteristicFeatures(Transformer):
    r"""Features of models whose inner products estimate the mean map kernel: characteristic functions.

    .. math:: \phi_s(p) = \sqrt{\frac{N(\omega_s; 0, \lambda I)}{D\, g(\omega_s)}}\, [\mathrm{Re}\, \chi_p(\omega_s),
       \mathrm{Im}\, \chi_p(\omega_s)], \quad \chi_p(\omega) = E\, e^{i \sum_t \omega_t^T X_t}, \quad
       \omega_s \sim g, \qquad E\, \langle \phi(p), \phi(q) \rangle = E\, e^{-\frac\lambda2 \sum_t \|X_t - Y_t\|^2}

    with :math:`X \sim p` and :math:`Y \sim q` independent: that of ``MeanMap(lam, length)``. For a hidden Markov model
    :math:`\chi = \pi^T \mathrm{diag}(\chi_i(\omega_1))\, A\, \mathrm{diag}(\chi_i(\omega_2)) \cdots 1`, with
    :math:`\chi_i` those of its emissions. N models take O(N D L n^2), not O(N^2 L n^3), and are used with a linear
    learner; the error of a product is of order :math:`D^{-1/2}`.

    Parameters
    ----------
    lam : float, default=1.0
        Sharpness :math:`\lambda`, not negative.
    length : int, optional
        Number L of observations; needed for hidden Markov models. For other models it is a number of independent draws,
        by default one.
    n_components : int, default=512
        Number of columns, even: twice the number D of random frequencies.
    normalize : bool, default=True
        Scale every row to unit length, in logarithms, which gives ``MeanMap(lam, length).normalized()``. Otherwise
        features that leave the range of floating point are refused.
    random_state : int, default=0
        Seed of the frequencies.
    n_jobs : int, optional
        Threads, over batches of models.

    Attributes
    ----------
    frequencies_ : ndarray of shape (L, D, d)
        One independent vector for every observation; symbols are one-hot vectors.
    log_weights_ : ndarray of shape (D,)
        Logarithms of the factors of the features: half the log ratio of the densities :math:`N(0, \lambda I)` and g.

    Notes
    -----
    Models are hidden Markov models (also with end weights or stop probabilities), ``Gaussian``, ``Categorical``,
    ``Bernoulli``, ``KDE`` and ``Mixture`` of these, in one list or stack; Markov chains by their ``to_hmm()``. The
    matrix of products is positive semi-definite for any D. The longer the sequences, the more :math:`|\chi|` differs
    between frequencies, and the more of these it takes.

    Frequencies are drawn from the Gaussian g with precision :math:`1 / \lambda + 2 v_j` in dimension j, where v is the
    median variance within the states or components of all models given to ``fit`` (zero for symbols). Variances damp
    high frequencies, by :math:`e^{-\omega^T \Sigma\, \omega / 2}`: most of those drawn from :math:`N(0, \lambda I)`
    itself would contribute little, and for 20 observations the error would be several times as large.

    References
    ----------
    Mehta & Gray (2010), Generative and latent mean map kernels, section 2, for the kernel.
    Rahimi & Recht (2007), Random features for large-scale kernel machines, whose features these are in expectation.

    Examples
    --------
    >>> from genkern import CharacteristicFeatures, Gaussian, MeanMap
    >>> models = [Gaussian(0.0, 1.0), Gaussian(1.0, 0.5)]
    >>> features = CharacteristicFeatures(lam=1.0, n_components=8192, normalize=False).fit_transform(models)
    >>> (features @ features.T).round(2)
    array([[0.58, 0.52],
           [0.52, 0.71]])
    >>> MeanMap(lam=1.0)(models).round(2)
    array([[0.58, 0.52],
           [0.52, 0.71]])
    """

    _fitted = "log_weights_"
    _inputs: ClassVar[dict[str, bool]] = {"two_d_array": False}
    _refuses_y = False  # models have no positions that it could be of

    def __init__(
        self,
        lam: float = 1.0,
        length: int | None = None,
        n_components: int = 512,
        normalize: bool = True,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ):
        self.lam = lam
        self.length = length
        self.n_components = n_components
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _fit(self, X: Any, y: Any) -> None:
        who = "CharacteristicFeatures"
        check_bool(self.normalize, "normalize", who)
        lam = check_number(self.lam, "lam", who)
        length = 1 if self.length is None else check_int(self.length, "length", who, 1)
        if check_int(self.n_components, "n_components", who, 2) % 2:
            raise ValueError(f"The 'n_components' parameter of {who} must be even. Got {self.n_components}.")
        models = self._collect(X)
        self._kind = _kind(models.groups[0].stack)
        self._match(models)
        damping = 2.0 * np.median(np.concatenate([_waves(stack).damping for stack, _ in models.groups]), axis=0)
        rng = np.random.default_rng(seed_of(self.random_state))
        drawn = rng.standard_normal((length, self.n_components // 2, self._kind[0]))
        self.frequencies_ = np.sqrt(lam / (1.0 + lam * damping)) * drawn
        ratios = damping * self.frequencies_**2 - np.log1p(lam * damping)
        self.log_weights_: Floats = 0.25 * ratios.sum(axis=(0, 2))

    def _encode(self, X: Any) -> Collection:
        models = self._collect(X)
        self._match(models)
        return models

    def _transform(self, models: Collection) -> Floats:
        features = np.empty((len(models), self.n_components))
        parts = [part for group in models.groups for part in self._parts(group)]
        results = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(
            delayed(self._features)(*part) for part in parts
        )
        for (_, places), block in zip(parts, results, strict=True):
            features[places] = block
        return features

    def _names_out(self, given: Any) -> Any:
        """Return ``re[0]``, ``re[1]``, ..., ``im[0]``, ``im[1]``, ..."""
        return [f"{part}[{s}]" for part in ("re", "im") for s in range(self.frequencies_.shape[1])]

    def _collect(self, X: Any) -> Collection:
        """Return models sorted into stacks, refusing those without characteristic functions."""
        models = as_collection(X, "CharacteristicFeatures")
        if len(models.shape) != 1:
            raise ValueError(
                "CharacteristicFeatures: expected a list of models or a stack of batch (n,). Got batch "
                f"{models.shape}; put a single model into a list."
            )
        for stack, places in models.groups:
            if not isinstance(stack, Model) or stack.as_chain() is None:
                raise TypeError(
                    f"CharacteristicFeatures: expected hidden Markov models or leaf families. Got "
                    f"{type(stack).__name__} at index {places[0]}; convert chains by to_hmm(), or use "
                    "Gram(MeanMap(...))."
                )
            if stack.has_steps and self.length is None:
                raise ValueError(
                    "CharacteristicFeatures: hidden Markov models need length=, the number of observations to compare. "
                    "Try a small one, such as 10."
                )
        return models

    def _match(self, models: Collection) -> None:
        """Refuse models that are not over the space of those given to ``fit``."""
        for stack, places in models.groups:
            kind = _kind(stack)
            if kind != self._kind:
                raise ValueError(
                    f"CharacteristicFeatures: model {places[0]} is over another space than the first model of fit: "
                    f"dimension {kind[0]}, alphabet {kind[1]}, stop probabilities {kind[2]}; expected "
                    f"{self._kind[0]}, {self._kind[1]}, {self._kind[2]}."
                )

    def _parts(self, group: Group) -> list[tuple[Any, NDArray[np.int64]]]:
        """Return a stack in batches of bounded workspace."""
        states = _chain(group.stack).start.shape[1]
        size = max(1, NUMBERS // (self.frequencies_.shape[1] * states * _waves(group.stack).load))
        return [(group.stack[i : i + size], group.places[i : i + size]) for i in range(0, len(group.places), size)]

    def _features(self, stack: Any, places: NDArray[np.int64]) -> Floats:
        """Return the features (a, 2 D) of a stack of batch (a,)."""
        values, logs = log_characteristic(stack, self.frequencies_)
        with np.errstate(divide="ignore"):
            sizes = np.abs(values)
            logs = logs + np.log(sizes) + self.log_weights_
        tops = logs.max(axis=1, keepdims=True)
        wrong = np.isneginf(tops) if self.normalize else np.abs(tops) > HIGHEST
        if wrong.any():
            i = int(np.argmax(wrong))
            raise ValueError(
                f"CharacteristicFeatures: the features of model {places[i]} leave the range of floating point (the "
                f"largest is exp({tops[i, 0]:.4g})). Use normalize=True, a shorter length or a smaller lam."
            )
        directions = np.divide(values, sizes, out=np.zeros_like(values), where=sizes > 0)
        features = np.exp(logs - tops) * directions
        features = np.concatenate([features.real, features.imag], axis=1)
        if self.normalize:
            return features / np.sqrt((features**2).sum(axis=1, keepdims=True))
        return features * np.exp(tops - 0.5 * math.log(values.shape[1]))


def log_characteristic(stack: Any, frequencies: Floats) -> tuple[Complexes, Floats]:
    r"""Return :math:`E\, e^{i \sum_t \omega_t^T X_t}` of a stack of batch (a,) at frequencies (L, D, d).

    As numbers (a, D) and logarithms (a, D) of factors, which grow with L; the numbers are kept near one by powers of
    two.
    """
    leaf, start, steps, final = _chain(stack)
    turned = np.ascontiguousarray(steps.swapaxes(1, 2))
    (a, n), count = start.shape, frequencies.shape[1]
    paths = np.repeat(start.astype(np.complex128)[..., None], count, axis=2)
    logs = np.zeros((a, count))
    for t, waves in enumerate(frequencies):
        if t > 0 and n > 1:
            paths = (turned @ paths.view(np.float64)).view(np.complex128)
        factors, heights = leaf.characteristic(waves)
        if heights is not None:
            # The factors of states that no path has reached may be too large.
            top = np.where(paths != 0, heights, -np.inf).max(axis=1)
            top = np.where(np.isneginf(top), 0.0, top)
            factors = factors * np.exp(np.minimum(heights - top[:, None], 0.0))
            logs += top
        paths *= factors
        sizes = np.abs(paths.view(np.float64)).max(axis=1).reshape(a, count, 2).max(axis=2)
        exponents = np.maximum(np.frexp(sizes)[1], -1000)  # beyond it, the inverse is not finite
        paths *= np.ldexp(1.0, -exponents)[:, None]
        logs += exponents * LOG_2
    return (paths if final is None else final[..., None] * paths).sum(axis=1), logs


def _chain(stack: Any) -> EmittingChain:
    """Return a stack of batch (a,) as chains that emit."""
    chain: EmittingChain = stack.as_chain()
    return chain


def _waves(stack: Any) -> Waves:
    """Return the properties of the frequencies of the emissions of a stack, refusing unknown families."""
    leaf = _chain(stack).emissions
    found: Waves | None = leaf.waves()
    if found is None:
        part = getattr(leaf, "components", leaf)
        raise TypeError(
            f"CharacteristicFeatures: there is no characteristic function for {type(part).__name__}. It knows "
            "Gaussian, Categorical, Bernoulli and KDE, Mixture of these, and HMM over all of them; for others take "
            "Gram(MeanMap(...))."
        )
    return found


def _kind(stack: Any) -> tuple[Any, ...]:
    """Return what comparable models have in common: the dimension, the alphabet, and whether they stop."""
    chain = _chain(stack)
    stops = chain.final is not None and getattr(stack, "stop", None) is not None
    return _waves(stack).dimension, getattr(chain.emissions, "alphabet", None), stops

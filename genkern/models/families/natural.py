r"""Natural coordinates of mixtures of isotropic Gaussians.

.. math:: q(x) = \sum_{k<K} \beta_k g_k(x) + \Bigl(1 - \sum_{k<K} \beta_k\Bigr) g_K(x), \qquad
   g_k(x) = \exp(\eta^k \cdot t(x) - \psi(\eta^k)), \quad t(x) = (\|x\|^2, x), \quad
   \eta^k = \bigl(-\tfrac{1}{2\sigma_k^2}, \tfrac{\mu_k}{\sigma_k^2}\bigr)

.. math:: \partial_{\beta_k} \log q = (g_k - g_K) / q, \qquad \partial_{\eta^k} \log q = r_k (t(x) - E_k t), \quad
   E_k t = (d \sigma_k^2 + \|\mu_k\|^2, \mu_k)

with r the posterior of the components. The parameters are the K - 1 free weights, then the 1 + d of each component.

References
----------
Tsuda, Kawanabe, Rätsch, Sonnenburg & Müller (2002), A new discriminative kernel from probabilistic models, eq. 5.1-5.2.
"""

from __future__ import annotations

import numpy as np

from genkern.models.families.gaussian import Gaussian
from genkern.models.leaf import Leaf
from genkern.validation import Floats, check_array


def require_isotropic(components: Leaf) -> None:
    """Raise for other components than isotropic Gaussians."""
    if not isinstance(components, Gaussian) or components.covariance_type != "isotropic":
        kind = f"{components.covariance_type} " if isinstance(components, Gaussian) else ""
        raise ValueError(
            "Mixture: coordinates='natural' are those of isotropic Gaussians (a covariance of shape batch). Got "
            f"{kind}{type(components).__name__} components; use 'softmax', 'ratio', 'sqrt' or 'raw'."
        )


def parameters(weights: Floats, components: Gaussian) -> Floats:
    """Return the coordinates (K - 1 + K (1 + d),) of one mixture."""
    precision = 1.0 / components.cov[:, None]
    eta = np.concatenate([-0.5 * precision, components.mean * precision], axis=1)
    return np.concatenate([weights[:-1], eta.ravel()])


def parameter_names(components: Gaussian) -> list[str]:
    """Return the names of the coordinates: ``weights[k]``, and ``components.natural[k,j]`` with j = 0 for -1/(2 v)."""
    count, d = components.mean.shape
    natural = [f"components.natural[{k},{j}]" for k in range(count) for j in range(1 + d)]
    return [f"weights[{k}]" for k in range(count - 1)] + natural


def from_parameters(vector: Floats, components: Gaussian) -> tuple[Floats, Gaussian]:
    """Return weights and components at these coordinates."""
    count, d = components.mean.shape
    values = check_array(vector, "vector", "Mixture", shape=(count - 1 + count * (1 + d),))
    free, eta = values[: count - 1], values[count - 1 :].reshape(count, 1 + d)
    variance = -0.5 / eta[:, 0]
    return np.append(free, 1.0 - free.sum()), Gaussian._restore(eta[:, 1:] * variance[:, None], variance)


def gradient(blocks: dict[str, Floats], components: Gaussian) -> Floats:
    """Return derivatives (G, p) from the blocks (G, 1, K, ...) of one mixture: raw ones of weights, centred moments."""
    names = ("weights", "components.weight", "components.mean", "components.cov")
    raw, count, first, second = (blocks[name][:, 0] for name in names)
    # ||x||^2 - E ||x||^2 in terms of x - mu, which loses nothing where mu is large.
    square = second.sum(axis=-1) - components.mean.shape[-1] * components.cov * count
    square = square + 2.0 * (components.mean * first).sum(axis=-1)
    eta = np.concatenate([square[..., None], first], axis=-1)
    return np.concatenate([raw[:, :-1] - raw[:, -1:], eta.reshape(len(eta), -1)], axis=1)

"""
The probability product kernel
==============================

The overlap of two laws: the integral of the root of their product (Bhattacharyya), which is one if
they are equal.
"""

import matplotlib.pyplot as plt
import numpy as np

from genkern import Gaussian, ProbabilityProduct

kernel = ProbabilityProduct(rho=0.5)
grid = np.linspace(-4.0, 8.0, 300)
figure, panels = plt.subplots(1, 3, figsize=(9.0, 2.6), layout="constrained", sharey=True)
for axes, distance in zip(panels, (0.0, 2.0, 5.0)):
    p, q = Gaussian([0.0], [[1.0]]), Gaussian([distance], [[1.5]])
    densities = [np.exp([float(model.log_prob([[[x]]])[0]) for x in grid]) for model in (p, q)]
    root = np.sqrt(densities[0] * densities[1])
    value = float(kernel([p, q])[0, 1])
    axes.plot(grid, densities[0], color="#0072b2")
    axes.plot(grid, densities[1], color="#d55e00", linestyle="--")
    axes.fill_between(grid, root, color="0.8")
    axes.set(title=f"k = {value:.2f}", xlabel="x")
    np.testing.assert_allclose(root.sum() * (grid[1] - grid[0]), value, atol=1e-3)  # the shaded area
plt.show()

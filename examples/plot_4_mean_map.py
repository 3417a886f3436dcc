"""
The mean map kernel
===================

How alike is a draw of one law to a draw of the other? The scale is set by λ, not by the width of
the laws, so that laws which do not overlap can still be alike.
"""

import matplotlib.pyplot as plt
import numpy as np

from genkern import Gaussian, MeanMap, ProbabilityProduct

distances = np.linspace(0.0, 5.0, 60)
models = [Gaussian([x], [[0.05]]) for x in distances]  # narrow laws
figure, axes = plt.subplots(figsize=(6.0, 3.0), layout="constrained")
product = ProbabilityProduct(0.5).normalized()(models)[0]
axes.plot(distances, product, color="black", label="product, ρ = ½")
for lam, style in ((4.0, ":"), (1.0, "--"), (0.25, "-.")):
    axes.plot(distances, MeanMap(lam).normalized()(models)[0], style, label=f"mean map, λ = {lam:g}")
axes.set(xlabel="distance of the means (standard deviation 0.22)", ylabel="kernel")
axes.legend()
plt.show()

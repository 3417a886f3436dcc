"""
Tangents of posterior log-odds
==============================

With one model per class, an object has log-odds, and the log-odds have derivatives by the
parameters. A learner on both, the TOP features, can mend a boundary that badly estimated models
have put at the wrong place.
"""

import matplotlib.pyplot as plt
import numpy as np

from genkern import Gaussian, TopScore

models = {"first": Gaussian([-1.0], [[1.0]]), "second": Gaussian([1.5], [[0.4]])}
grid = np.linspace(-4.0, 4.0, 161)
top = TopScore(models, priors="uniform")
features = top.fit_transform([[[x]] for x in grid], np.where(grid < 0, "first", "second"))
names = top.get_feature_names_out()
print(names)

# %%
# The first feature is the log-odds, zero at the boundary; the others say how it changes with each
# parameter. A linear classifier draws the weighted sum of these curves.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.0), layout="constrained", sharex=True)
left.plot(grid, features[:, 0], color="black")
left.axhline(0.0, color="0.8")
left.set(xlabel="x", title="log-odds v(x)", ylim=(-10, 10))
for j, style in zip(range(1, features.shape[1]), ("-", "--", "-.", ":")):
    right.plot(grid, features[:, j], style, label=str(names[j]))
right.set(xlabel="x", title="tangents", ylim=(-6, 6))
right.legend(fontsize=7)
plt.show()

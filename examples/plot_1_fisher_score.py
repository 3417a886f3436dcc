"""
Fisher scores of points
=======================

The Fisher score of an object is the gradient of its log-likelihood by the parameters: in which
direction would the model have to move to make this object more probable? Here the model is a
Gaussian in one dimension, with two parameters.
"""

import matplotlib.pyplot as plt
import numpy as np

from genkern import Gaussian

model = Gaussian([0.0], [[1.0]])
points = np.linspace(-2.5, 2.5, 11)
scores = model.log_prob_grad([[[x]] for x in points])  # by the mean and the log-variance
print(model.parameter_names)

# %%
# A point right of the mean wants the mean moved to the right; a far one wants the variance larger,
# a near one smaller. The scores lie on a parabola, so that a linear rule on scores is a quadratic
# rule on points.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.0), layout="constrained")
grid = np.linspace(-3.5, 3.5, 200)
left.plot(grid, np.exp([float(model.log_prob([[[x]]])[0]) for x in grid]), color="0.3")
colours = plt.get_cmap("cividis")(np.linspace(0.0, 1.0, len(points)))
left.scatter(points, np.zeros(len(points)), c=colours, zorder=3)
left.set(xlabel="x", ylabel="p(x)", title="points and their model")
right.axhline(0.0, color="0.8")
right.axvline(0.0, color="0.8")
for score, colour in zip(scores, colours):
    right.plot([0.0, score[0]], [0.0, score[1]], color=colour, linewidth=1.0)
right.scatter(scores[:, 0], scores[:, 1], c=colours, zorder=3)
right.set(xlabel="by the mean", ylabel="by the log-variance", title="Fisher scores")
plt.show()

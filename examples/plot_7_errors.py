"""
Recipes side by side
====================

The same folds for all, intervals, and a paired test against the best; on a part of the splice
junctions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from genkern import FisherScore, PlugInClassifier, SiteEstimator, evaluate, recipes
from genkern.datasets import load_splice_junctions

data = load_splice_junctions().take(range(0, 3186, 12))
contenders = {
    "Fisher scores of a weight matrix": make_pipeline(FisherScore(SiteEstimator()), LinearSVC(C=1e-3)),
    "a weight matrix per class": PlugInClassifier(SiteEstimator()),
    "k-mer SVM": recipes.spectrum_svm(4, alphabet="dna"),
}
result = evaluate(data.X, data.y, contenders, folds=3)
print(result)

# %%
# The bars are 95 % intervals. Words without a position do not see what the task is about.

errors = np.array([row.error for row in result.rows])
ends = np.array([row.interval for row in result.rows])
figure, axes = plt.subplots(figsize=(7.0, 2.0), layout="constrained")
axes.errorbar(100 * errors, range(len(errors)), xerr=100 * np.abs(ends.T - errors), fmt="o", color="black", capsize=3)
axes.set_yticks(range(len(errors)), [row.name for row in result.rows])
axes.invert_yaxis()
axes.set(xlabel="error in %", xlim=(0, None))
plt.show()

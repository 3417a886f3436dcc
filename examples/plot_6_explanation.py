"""
What a classifier saw in a splice junction
==========================================

A weight matrix of all windows, the Fisher scores under it, and a linear SVM. Nobody told it where
the junction is.
"""

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from genkern import FisherScore, SiteEstimator, explain, plots
from genkern.datasets import load_splice_junctions

data = load_splice_junctions()
classifier = make_pipeline(FisherScore(SiteEstimator()), LinearSVC(C=1e-3)).fit(data.X[::3], data.y[::3])
why = explain(classifier, data.X[46])
print(why.label, why.top(3))
plots.explanation(why)
plt.show()

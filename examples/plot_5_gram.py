"""
A Gram matrix and its map
=========================

Binary sequences of two hidden Markov models that emit both symbols equally often: only the order
tells them apart. Each sequence gets a model of its own, and the models are compared.
"""

import matplotlib.pyplot as plt

from genkern import FitEach, Gram, HMMEstimator, MeanMap, plots
from genkern.datasets import make_two_hmms

X, y = make_two_hmms(n_per_class=40)
models = FitEach(HMMEstimator(n_states=3, tol=1e-3, random_state=0)).fit_transform(X)
K = Gram(MeanMap(1.0, length=10).normalized()).fit_transform(models)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
plots.gram_heatmap(K, y, left, title="Gram matrix, sorted by class")
plots.kernel_pca_map(K, y, right, title="kernel PCA map")
plt.show()

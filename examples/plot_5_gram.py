"""
A Gram matrix and its map
=========================

Utterances of three speakers, series of 12 channels and 7 to 26 frames. Each utterance gets a hidden Markov
model of its own, and the models are compared by the mean map kernel.
"""

import matplotlib.pyplot as plt

from genkern import plots, recipes
from genkern.datasets import load_japanese_vowels

data = load_japanese_vowels().part("train").take(range(90))
K = recipes.meanmap_svm(n_states=2)[:-1].fit_transform(data.X)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
plots.gram_heatmap(K, data.y, left, title="Gram matrix, sorted by class")
plots.kernel_pca_map(K, data.y, right, title="kernel PCA map")
plt.show()

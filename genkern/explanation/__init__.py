"""Explanations of linear classifiers: contributions of features and positions."""

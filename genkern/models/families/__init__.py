"""Leaf families: distributions of points, each with its estimator."""

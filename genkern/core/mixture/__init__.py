"""Mixtures, density estimates and k-means."""

"""Gaussian densities, moments and pairs."""

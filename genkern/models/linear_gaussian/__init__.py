"""Linear Gaussian networks."""

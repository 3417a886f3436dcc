"""What estimators share: EM, restarts, weights, units and floors."""

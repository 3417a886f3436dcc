"""Generative models: frozen values, and the estimators that fit them."""

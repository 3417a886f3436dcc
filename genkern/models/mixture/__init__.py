"""Mixtures of leaf families."""

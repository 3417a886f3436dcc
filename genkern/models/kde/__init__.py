"""Kernel density estimates."""

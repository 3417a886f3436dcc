"""Passes over sequences under profile models: match, insert and silent delete states by columns."""

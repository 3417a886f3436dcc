"""Graphs: which node depends on which, of networks of symbols and of numbers."""

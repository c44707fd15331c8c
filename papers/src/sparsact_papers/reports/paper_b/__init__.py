"""Figures of paper B's experiments: a module for each, of the same name."""

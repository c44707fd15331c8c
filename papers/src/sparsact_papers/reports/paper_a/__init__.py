"""Figures of paper A's experiments: a module for each, of the same name."""

"""Figures of the experiments in practice: a module for each, of the same name."""

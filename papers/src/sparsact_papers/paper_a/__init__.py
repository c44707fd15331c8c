"""Experiments of paper A, *Learning Neural Networks with Sparse Activations*: one a module."""

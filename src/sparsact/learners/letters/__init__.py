"""Functions of sites with letters: product kernels between letters, networks, and weights of both."""

from sparsact.learners.letters.regressor import LettersRegressor

__all__ = ["LettersRegressor"]

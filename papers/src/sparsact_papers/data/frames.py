"""Random orthonormal frames, which turn what is low-dimensional into a high-dimensional space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsact.validation.parameters import checked_generator, checked_size


def random_frame(ambient: int, dimension: int, *, rng: np.random.Generator) -> NDArray[np.float64]:
    """Orthonormal columns, uniform over all such frames (Haar measure): shape (ambient, dimension).

    Q of the QR decomposition of a normal matrix, with the signs that make R's diagonal positive.

    Raises
    ------
    ValueError
        Unless ``1 <= dimension <= ambient``.

    Examples
    --------
    >>> frame = random_frame(5, 2, rng=np.random.default_rng(0))
    >>> np.allclose(frame.T @ frame, np.eye(2))
    True
    """
    ambient, dimension = checked_dimensions(ambient, dimension)
    Q, R = np.linalg.qr(checked_generator(rng).normal(size=(ambient, dimension)))
    return Q * np.where(np.diag(R) < 0, -1.0, 1.0)


def checked_dimensions(ambient: int, dimension: int) -> tuple[int, int]:
    """Both as integers with ``1 <= dimension <= ambient``."""
    dimension = checked_size(dimension, "the dimension")
    ambient = checked_size(ambient, "the ambient dimension")
    if dimension > ambient:
        raise ValueError(f"{dimension} dimensions do not fit into an ambient dimension of {ambient}; raise the latter.")
    return ambient, dimension

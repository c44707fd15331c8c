"""The frozen bottom layer: random directions, or directions drawn as the rows vary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.threads import blas_threads

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bottom:
    r"""Pre-activations :math:`z = B x + c` of t units, and what they become: :math:`\phi(x) = \operatorname{act}(z)`.

    Attributes
    ----------
    B : ndarray of shape (t, d)
        Weights, a unit a row.
    c : ndarray of shape (t,)
        Biases; zeros for a layer without.
    activation : {"identity", "relu"}
        Of every unit.
    """

    B: Array
    c: Array
    activation: str

    @classmethod
    def random(cls, d: int, t: int, *, bias: bool, activation: str, rng: np.random.Generator) -> Self:
        r"""Glorot's uniform weights within :math:`\pm\sqrt{6 / (d + t)}`, and biases likewise or none."""
        limit = np.sqrt(6 / (d + t))
        B = rng.uniform(-limit, limit, size=(t, d))
        return cls(B, rng.uniform(-limit, limit, size=t) if bias else np.zeros(t), activation)

    @classmethod
    def principal(
        cls, X: Array, weights: Array, t: int, *, bias: bool, activation: str, rng: np.random.Generator
    ) -> Self:
        r"""Directions :math:`b \sim \mathcal{N}(0, C)` up to scale, over the covariance C of the rows.

        So b is a sum of principal components, each with a normal weight in proportion to the standard deviation along
        it: where the rows do not vary no unit looks. Pre-activations are centred and scaled to have variance 1 on
        average: the layer does not depend on where the rows lie or on their unit, nor (in distribution) on how they
        are rotated. Biases, if any, are uniform within :math:`\pm 1`.
        """
        mean = np.average(X, axis=0, weights=weights)
        centred = (X - mean) * np.sqrt(weights / weights.sum())[:, None]
        size = float(np.abs(centred).max(initial=0.0)) or 1.0  # squares neither overflow nor vanish
        spread, components = np.linalg.eigh((centred / size).T @ (centred / size))
        s = np.sqrt(np.maximum(spread, 0.0))
        scale = size * float(np.linalg.norm(s**2)) or 1.0
        # The symmetric root of C: no sign or basis of the components, which rounding may change, enters the layer.
        B = rng.normal(size=(t, len(s))) @ ((components * (s / scale)) @ components.T)
        c = rng.uniform(-1, 1, size=t) if bias else np.zeros(t)
        return cls(B, c - B @ mean, activation)

    @property
    def t(self) -> int:
        """Number of units."""
        return len(self.B)

    @property
    def d(self) -> int:
        """Number of inputs."""
        return int(self.B.shape[1])

    @property
    def biased(self) -> bool:
        """Whether any unit has a bias."""
        return bool(self.c.any())

    def preactivations(self, X: Array) -> Array:
        """Z (m, t), C-contiguous."""
        with blas_threads(X.size * len(self.B)):
            z: Array = X @ self.B.T
        if self.biased:
            z += self.c
        return z

    def activate(self, z: Array) -> Array:
        """Phi (m, t) of pre-activations, which are overwritten."""
        return np.maximum(z, 0.0, out=z) if self.activation == "relu" else z

    def same_as(self, other: Any) -> bool:
        """Whether the two are the same layer."""
        equal = np.array_equal(self.B, other.B) and np.array_equal(self.c, other.c)
        return equal and self.activation == other.activation

"""The units that correlate best with signs, among those that are active on one set of points."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import null_space

from sparsact.rademacher.dichotomies import boundaries, centred, dichotomies, spanned

ROUNDING = 1e-12
CELLS_AT_ONCE = 2**22
CONES_AT_ONCE = 2**10


@dataclass(frozen=True)
class Flat:
    """Units ``b * slope + basis @ a`` of threshold b for which some points lie on the boundary.

    ``slope`` is orthogonal to ``basis``; ``free`` is False where the threshold can only be 0.
    """

    on: NDArray[np.bool_]
    slope: NDArray[np.float64]
    basis: NDArray[np.float64]
    free: bool

    def best(
        self, gradients: NDArray[np.float64], W: float, B: float, noise: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""The most of :math:`\langle g, (w, b) \rangle` with :math:`\|w\| \le W`, :math:`|b| \le B`, and where it is.

        With :math:`\gamma` the gradient along b, p its length along ``basis`` and q the length of ``slope``, this is
        the maximum of :math:`b \gamma + p \sqrt{W^2 - b^2 q^2}` over b. Where many units reach it, any serves.
        """
        along = gradients[..., :-1] @ self.basis
        p, q = np.linalg.norm(along, axis=-1), float(np.linalg.norm(self.slope))
        p = np.where(p > noise, p, 0.0)
        gamma = gradients[..., :-1] @ self.slope + gradients[..., -1]
        gamma = np.where(self.free & (np.abs(gamma) > noise * (1 + q)), gamma, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            b = np.where(gamma == 0, 0.0, W * gamma / (q * np.hypot(gamma, p * q)))
            towards = np.where(p[..., None] > 0, along / p[..., None], 0.0)
        limit = min(B, W / q) if q > 0 else B
        b = np.clip(b, -limit, limit)
        length = np.sqrt(np.maximum(0.0, W**2 - (b * q) ** 2))
        w = b[..., None] * self.slope + (length[..., None] * towards) @ self.basis.T
        return b * gamma + p * length, np.concatenate([w, b[..., None]], axis=-1)


class Units:
    r"""Units of scale (W, B) on a few points, by the set of points on which they are active.

    Units with all points of a set on the active side, and all others on the other, form a cone, ties on both sides
    included. A best unit of the cone lies within one of its faces, and is a best one of all units of the flat that the
    face spans; there it has a closed form. So the maximum over the cone is the largest of the maxima over the flats of
    its faces that lie in the cone: exact up to rounding, with no iteration.

    Parameters
    ----------
    points : ndarray of shape (m, n)
        Distinct points.
    W, B : float
        Most :math:`\|w\|_2` and most :math:`|b|` of a unit, positive.

    Attributes
    ----------
    sets : ndarray of shape (N, m), bool
        Every set that a halfspace cuts from the points.
    """

    def __init__(self, points: NDArray[np.float64], W: float, B: float) -> None:
        self.sets = dichotomies(points)
        self._affine, centre, self._radius = centred(points)
        self._shift = centre / self._radius
        self._rows = np.hstack([points / self._radius, -np.ones((len(points), 1))])
        self._size = float(np.linalg.norm(self._rows, axis=1).max())
        self.W, self.B = W, B
        self._faces = [(self._flat(on), cones) for on, cones in faces(boundaries(spanned(self._affine)), self.sets)]

    def best(self, coefficients: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""The most of :math:`\sum_{i \in I} c_i (\langle w, x_i \rangle - b)` for each row c and set I, and the units.

        Values (draws, N), not negative, and units (w, b) that reach them, (draws, N, n + 1).
        """
        n = self._rows.shape[1] - 1
        values, units = (
            np.zeros((len(self.sets), len(coefficients))),
            np.zeros((len(self.sets), len(coefficients), n + 1)),
        )
        draws = max(1, CELLS_AT_ONCE // self.sets.size)
        for start in range(0, len(coefficients), draws):
            block = np.s_[:, start : start + draws]
            self._ascend(coefficients[start : start + draws], values[block], units[block])
        units[..., :-1] /= self._radius
        return values.T, units.swapaxes(0, 1)

    def _ascend(
        self, coefficients: NDArray[np.float64], values: NDArray[np.float64], units: NDArray[np.float64]
    ) -> None:
        gradients = (self.sets[:, None] * coefficients) @ self._rows
        noise = ROUNDING * self._size * np.abs(coefficients).sum(axis=1)
        W = self.W * self._radius
        for flat, cones in self._faces:
            found, at = flat.best(gradients[cones], W, self.B, noise)
            heights = np.where(self.sets[cones, None], 1, -1) * (at @ self._rows.T)
            inside = (heights[..., ~flat.on] >= -ROUNDING * self._size * (W + self.B)).all(axis=-1)
            better = inside & (found > values[cones])
            values[cones] = np.where(better, found, values[cones])
            units[cones] = np.where(better[..., None], at, units[cones])

    def _flat(self, on: NDArray[np.bool_]) -> Flat:
        n = len(self._shift)
        directions = null_space(self._affine[on], rcond=1e-10) if on.any() else np.eye(n + 1)
        thresholds = directions[-1] + self._shift @ directions[:-1]
        free = bool(np.linalg.norm(thresholds) > ROUNDING * self._size)
        if not free:
            return Flat(on, np.zeros(n), np.linalg.qr(directions[:-1])[0], free)
        turn = np.linalg.qr(thresholds[:, None], mode="complete")[0]
        turned = directions[:-1] @ turn
        slope, basis = turned[:, 0] / (thresholds @ turn[:, 0]), np.linalg.qr(turned[:, 1:])[0]
        return Flat(on, slope - basis @ (basis.T @ slope), basis, free)


def faces(rays: NDArray[np.int8], sets: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
    """The points on the boundary of each face of the cones, and the cones (rows of ``sets``) that have it.

    The face {0} is left out. Points on the boundary of a face are those common to its extreme rays, which are among
    the ``rays``: sides of the points to all hyperplanes that they span.
    """
    m = sets.shape[1]
    masks = np.array([int.from_bytes(row.tobytes(), "big") for row in np.packbits(rays == 0, axis=1)], dtype=object)
    cones: defaultdict[int, list[int]] = defaultdict(list)
    everything = int.from_bytes(np.packbits(np.ones(m, dtype=bool)).tobytes(), "big")
    sides, directions = np.where(sets, 1, -1).astype(np.float32), rays.T.astype(np.float32)
    strict = np.abs(directions).sum(axis=0)  # points off the boundary: all of them lie on the right side of a ray
    for start in range(0, len(sets), CONES_AT_ONCE):
        agree = sides[start : start + CONES_AT_ONCE] @ directions == strict
        for cone, extreme in enumerate(agree, start):
            found = {everything}
            for mask in set(masks[extreme]):
                found |= {mask & other for other in found}
            for on in found - {everything}:
                cones[on].append(cone)
    width = (m + 7) // 8
    return [
        (np.unpackbits(np.frombuffer(on.to_bytes(width, "big"), dtype=np.uint8), count=m).astype(bool), np.array(which))
        for on, which in cones.items()
    ]

"""The empirical Rademacher complexity of the sparse and of the dense class, exactly, on a few points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import null_space

from sparsact.fourier import Estimate
from sparsact.rademacher.argument_checks import (
    check_scale,
    checked_draws,
    checked_n_active,
    checked_sample,
    mean_of_draws,
)
from sparsact.rademacher.dichotomies import boundaries, centred, dichotomies, max_faces, max_sets, spanned

ROUNDING: Final = 1e-12
CELLS_AT_ONCE: Final = 2**22
CONES_AT_ONCE: Final = 2**10
NUMBERS_AT_ONCE: Final = 2**24
MAX_SETS: Final = 2**14
MAX_FACES: Final = 2**24
MAX_ENTRIES: Final = 2**28


@dataclass(frozen=True)
class Flat:
    """Units ``b * slope + basis @ a`` of threshold b, slope orthogonal to basis; b is 0 unless ``free``."""

    on: NDArray[np.bool_]
    slope: NDArray[np.float64]
    basis: NDArray[np.float64]
    free: bool

    def best(
        self, gradients: NDArray[np.float64], W: float, B: float, noise: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""Maximum of :math:`\langle g, (w, b) \rangle` with :math:`\|w\| \le W`, :math:`|b| \le B`, and its place."""
        # With gamma the gradient along b, p its length along the basis and q the length of the slope, this is the
        # maximum of b gamma + p sqrt(W^2 - b^2 q^2) over b.
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

    ``points`` (m, n) are distinct, W and B the largest :math:`\|w\|_2` and :math:`|b|`, and ``sets`` (N, m) every set
    that a halfspace cuts from the points.
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
        r"""Maxima of :math:`\sum_{i \in I} c_i (\langle w, x_i \rangle - b)` for each row c and set I, and the units.

        Values (draws, N), not negative, and units (w, b) that reach them, (draws, N, n + 1).
        """
        n = self._rows.shape[1] - 1
        values = np.zeros((len(self.sets), len(coefficients)))
        units = np.zeros((*values.shape, n + 1))
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
    """The points on the boundary of each face of the cones but {0}, and the cones (rows of ``sets``) that have it.

    They are common to its extreme rays, which are among ``rays``: sides of the points to all hyperplanes they span.
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


def packings(values: NDArray[np.float64], sets: NDArray[np.bool_], s: int, k: int) -> NDArray[np.float64]:
    """Largest total value of 0, 1, ..., s of the sets that cover no point more than k times, (draws, s + 1).

    ``values`` (draws, N), not negative, of ``sets`` (N, m); a set may be taken more than once. A table over how often
    each point may still be covered, ``(k + 1)**m`` entries per draw, is filled set by set.
    """
    places = (k + 1) ** np.arange(sets.shape[1])
    digits = np.arange((k + 1) ** sets.shape[1])[:, None] // places % (k + 1)
    rooms = [np.flatnonzero((digits[:, inside] > 0).all(axis=1)) for inside in sets]
    used = sets @ places
    totals = np.zeros((len(values), s + 1))
    draws = max(1, NUMBERS_AT_ONCE // len(digits))
    for start in range(0, len(values), draws):
        block = slice(start, start + draws)
        best = np.zeros((len(values[block]), len(digits)))
        for size in range(1, s + 1):
            fewer, best = best, best.copy()
            for value, room, cost in zip(values[block].T, rooms, used, strict=True):
                best[:, room] = np.maximum(best[:, room], fewer[:, room - cost] + value[:, None])
            totals[block, size] = best[:, -1]
    return totals


def exact_complexity(
    X: ArrayLike,
    s: int | Sequence[int],
    k: int | None = 1,
    *,
    W: float = 1.0,
    B: float = 1.0,
    signs: ArrayLike | None = None,
    support: ArrayLike | None = None,
) -> Estimate:
    r"""Empirical Rademacher complexity of the class of k-sparsely activated networks on the points ``X``.

    .. math:: \mathcal{R}(X) = \mathbb{E}_\zeta \max_{h \in \mathcal{H}_{n,s,k}^{W,B}}
        \frac1m \sum_{i=1}^m \zeta_i h(x_i)

    Parameters
    ----------
    X : array-like of shape (m, n)
        A few points, of the cube or real.
    s, k : int or sequence of int, and int or None
        Number of units; of a sequence, the complexity for each, on the same signs. Number of active units; None is the
        dense class, and so is every k >= s.
    W, B : float
        Scale of the class (Definition 2), positive.
    signs : array-like of shape (N, m), optional
        Sign vectors :math:`\zeta` to average over, N >= 2, drawn independently and uniformly. By default all
        :math:`2^m` of them, with no randomness (m <= 12).
    support : array-like of shape (l, n), optional
        Further points at which at most k units may be active; ``points(n)`` for the class on the whole cube. By default
        the class is that of networks k-sparse on ``X``.

    Returns
    -------
    complexity : Estimate
        With standard error 0 where all sign vectors were taken.

    Raises
    ------
    ValueError
        If there are too many points to be exact (see :func:`~sparsact.rademacher.lower_complexity`).

    Notes
    -----
    The output weights of a best network are +-1, and its units constrain one another only through the sets of points on
    which they are active. The sets that halfspaces cut from the points are listed; the best unit on each lies on a face
    of a cone and has a closed form there, ties included, since a unit at a tie is off; and the best s sets that cover
    no point more than k times come from a table of ``(k + 1)**points`` entries. Units of the dense class do not
    constrain one another: its complexity is exactly s times that of one unit.

    Maxima are exact up to rounding: in the tests a dual bound confirms each, with a relative gap below 1e-11. Of m
    distinct points of full dimension there are :math:`N \le 2 \sum_{i \le n} \binom{m-1}{i}` sets, at most
    :math:`2^{14}` here, whose cones may have :math:`2^{24}` faces together; each face takes about ``2 * m * n``
    operations per draw. The table costs ``N * (k + 1)**points``, at most :math:`2^{28}`, operations per draw and unit.
    All points of the 3-cube with all signs: 104 sets with 1848 faces.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Section 5.

    Examples
    --------
    Two points of a line: one unit gains at most 2 whatever the signs, and so does a second one, at the other point.

    >>> exact_complexity([[1.0], [-1.0]], s=[1, 2]).value.round(6)
    array([1., 2.])
    """
    return mean_of_draws(exact_maxima(X, s, k, W=W, B=B, signs=signs, support=support), exact=signs is None)


def exact_maxima(
    X: ArrayLike,
    s: int | Sequence[int],
    k: int | None = 1,
    *,
    W: float = 1.0,
    B: float = 1.0,
    signs: ArrayLike | None = None,
    support: ArrayLike | None = None,
) -> NDArray[np.float64]:
    r"""The maxima :math:`\max_h \frac1m \sum_i \zeta_i h(x_i)` over which :func:`exact_complexity` averages.

    Shape (N,), or (N, number of sizes) for a sequence of them; parameters and errors as there.

    >>> exact_maxima([[1.0], [-1.0]], s=[1, 2], signs=[[1, 1], [1, -1]]).round(6)
    array([[1., 2.],
           [1., 2.]])
    """
    rows, everywhere = checked_sample(X, support)
    distinct, place = np.unique(everywhere, axis=0, return_inverse=True)
    check_scale(W, B)
    sizes = np.asarray(s)
    if sizes.dtype.kind not in "iu" or not sizes.size or sizes.min() < 1:
        raise ValueError(f"`s` must be a number of units, 1 or more; got {s!r}.")
    largest = int(sizes.max())
    limit = checked_n_active(k, largest)
    useful = min(largest, limit * len(distinct))  # more units than these are off everywhere
    n_states = (limit + 1) ** len(distinct) if limit < largest else 1
    n_sets = max_sets(*distinct.shape)
    if n_sets > MAX_SETS or n_sets * n_states > MAX_ENTRIES or max_faces(*distinct.shape) > MAX_FACES:
        raise ValueError(
            f"{len(distinct)} distinct points in {distinct.shape[1]} dimensions are too many to be exact (up to "
            f"{n_sets} sets, a table of {n_states} states): use lower_complexity, or fewer points."
        )
    zeta = checked_draws(signs, len(rows))
    totals = np.zeros((len(distinct), len(zeta)))
    np.add.at(totals, place[: len(rows)], zeta.T)
    units = Units(distinct, W, B)
    cases, case = np.unique(np.concatenate([totals.T, -totals.T]), axis=0, return_inverse=True)
    values = units.best(cases)[0][case].reshape(2, len(zeta), -1).max(axis=0)
    if limit < largest:
        maxima = packings(values, units.sets, useful, limit)[:, np.minimum(sizes, useful)]
    else:
        maxima = np.multiply.outer(values.max(axis=1), sizes)
    return np.asarray(maxima / len(rows))

r"""Sums of doubles that never round: integer limbs on a fixed grid of exponents.

A double is an integer times a power of two. Its digits in base :math:`2^{32}`, on the grid
:math:`\dots, 2^{-32}, 1, 2^{32}, \dots` that is the same for everybody, are added as integers. Integer addition is
associative, so any order, split or machine gives the same sum, and no scale need be known in advance; a wider
range of exponents only adds limbs. The idea is that of reproducible summation [1]_, taken to its exact end.

References
----------
.. [1] J. Demmel and H. D. Nguyen, "Parallel reproducible summation", IEEE Trans. Computers 64(7), 2015.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact import kernels
from sparsact.transaction import uninterrupted

LIMB_BITS: Final = 32
_RADIX: Final = 1 << LIMB_BITS
_DIGITS_OF_ONE_ROW: Final = 1 << (LIMB_BITS + 3)  # the most that one product adds to any limb
_LARGEST: Final = 1 << 62
MAX_DIGIT: Final = _RADIX  # of a normalised sum, in magnitude
MAX_LIMBS: Final = 160  # limbs that products of doubles, and sums of them, can reach


class ExactSum:
    """An array of exact sums, of any shape.

    The value of an entry is ``sum_l limbs[l] * 2**(32 * (base + l))``.

    Attributes
    ----------
    base : int
        Place of the lowest limb on the grid.
    limbs : ndarray of shape (L, *shape), int64
        Digits; every method keeps them below ``2**62`` in magnitude by carrying in time.
    """

    def __init__(self, base: int, limbs: NDArray[np.int64], bound: int = _LARGEST) -> None:
        self.base = base
        self.limbs = limbs
        self._bound = bound  # no limb exceeds it in magnitude
        self._canonical = False

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> ExactSum:
        """An array of sums of nothing."""
        return cls(0, np.zeros((0, *shape), dtype=np.int64), 0)

    @classmethod
    def of(cls, a: NDArray[np.float64], b: NDArray[np.float64] | None = None) -> ExactSum:
        """One sum an entry: the exact products ``a * b`` (``a`` alone when b is None), in the shape of ``a``."""
        sums = cls.zeros(a.shape)
        sums.add(a.ravel(), None if b is None else b.ravel())
        return sums

    @classmethod
    def concatenated(cls, parts: Sequence[ExactSum]) -> ExactSum:
        """The parts one after another along the last axis."""
        some = [part for part in parts if len(part.limbs)] or [cls.zeros(parts[0].shape)]
        low = min(part.base for part in some)
        high = max(part.base + len(part.limbs) for part in some)
        for part in parts:
            part._cover(low, high)
        limbs = np.concatenate([part.limbs for part in parts], axis=-1)
        return cls(low, limbs, max(part._bound for part in parts))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array of sums."""
        return self.limbs.shape[1:]

    def replace(self, base: int, limbs: NDArray[np.int64]) -> None:
        """Become other sums, given by normalised limbs."""
        self.base, self.limbs, self._bound, self._canonical = base, limbs, MAX_DIGIT, False

    def copy(self) -> ExactSum:
        """An independent copy."""
        return ExactSum(self.base, self.limbs.copy(), self._bound)

    def add(
        self,
        a: NDArray[np.float64],
        b: NDArray[np.float64] | None = None,
        index: NDArray[np.uint64] | None = None,
        c: NDArray[np.float64] | None = None,
    ) -> None:
        """Add the exact ``a[i] * b[i] * c[i]`` to entry ``index[i]`` in C order (entry ``i`` when None), in place."""
        low, high = kernels.exponent_range(a)
        for factor in (b, c):
            if factor is not None:
                low_factor, high_factor = kernels.exponent_range(factor)
                low, high = low + low_factor, high + high_factor
        self._make_room(len(a) * _DIGITS_OF_ONE_ROW * (1 if c is None else 4))
        self._cover(low // LIMB_BITS, -(-high // LIMB_BITS))
        if len(self.limbs):
            kernels.add_products(self.limbs.reshape(len(self.limbs), -1), self.base, index, a, b, c)

    def add_multiples(self, other: ExactSum, factors: NDArray[np.float64], place: int = 0) -> None:
        """Add the exact products of other sums and of ``factors * 2**(32 * place)``, broadcast to this shape."""
        other.normalize()
        low, high = kernels.exponent_range(np.ascontiguousarray(factors).ravel())
        self._make_room(len(other.limbs) * _DIGITS_OF_ONE_ROW)
        place += other.base
        self._cover(place + low // LIMB_BITS, place + len(other.limbs) + 1 - (-high // LIMB_BITS))
        limbs, times = self.limbs.reshape(len(self.limbs), -1), _spread(factors, self.shape)
        for higher, limb in enumerate(other.limbs):
            kernels.add_products(limbs, self.base - place - higher, None, _spread(limb, self.shape), times)

    def merge(self, other: ExactSum, sign: int = 1) -> None:
        """Add (or, with sign -1, subtract) sums of the same shape, in place."""
        if other._bound > _LARGEST // 2:
            other.normalize()
        self._make_room(other._bound)
        self._cover(other.base, other.base + len(other.limbs))
        place = other.base - self.base
        self.limbs[place : place + len(other.limbs)] += sign * other.limbs

    def plus(self, other: ExactSum, sign: int = 1) -> ExactSum:
        """New sums: these and (or, with sign -1, less) others of the same shape."""
        sums = self.copy()
        sums.merge(other, sign)
        return sums

    def _cover(self, low: int, high: int) -> None:
        """Have limbs for the places low..high - 1."""
        if not len(self.limbs):
            self.base, self.limbs = low, np.zeros((max(0, high - low), *self.shape), dtype=np.int64)
        below = max(0, self.base - low)
        above = max(0, high - self.base - len(self.limbs))
        if below or above:
            empty = np.zeros((below + above, *self.shape), dtype=np.int64)
            limbs = np.concatenate([empty[:below], self.limbs, empty[below:]])
            self.base, self.limbs, self._canonical = self.base - below, limbs, False  # no call in between: no signal

    def _make_room(self, growth: int) -> None:
        if self._bound + growth > _LARGEST:
            self.normalize()
            if self._bound + growth > _LARGEST:
                raise OverflowError(
                    f"one batch may add {growth:.1e} to a limb, more than int64 holds; pass smaller batches."
                )
        self._bound += growth
        self._canonical = False

    def normalize(self) -> None:
        """Carry, in place, to the one representation of these sums with the fewest limbs.

        All limbs but the top are in [0, 2**32), the top is in (-2**32, 2**32), and no end limb is all zero.
        """
        if not self._canonical:
            with uninterrupted():
                self._normalize()

    def _normalize(self) -> None:
        self._carry()
        while len(self.limbs) > 1 and _only_signs(self.limbs[-1], self.limbs[-2]):
            self.limbs[-2] += self.limbs[-1] * _RADIX
            self.limbs = self.limbs[:-1]
        first = next((place for place, limb in enumerate(self.limbs) if limb.any()), len(self.limbs))
        self.limbs = self.limbs[first:]
        self.base = self.base + first if len(self.limbs) else 0
        self._bound, self._canonical = _RADIX, True

    def _carry(self) -> None:
        place, carried = 0, np.empty(self.shape, dtype=np.int64)
        while place < len(self.limbs) - 1 or (len(self.limbs) and _outside(self.limbs[-1])):
            if place == len(self.limbs) - 1:
                self.limbs = np.concatenate([self.limbs, np.zeros((1, *self.shape), dtype=np.int64)])
            self.limbs[place + 1] += np.right_shift(self.limbs[place], LIMB_BITS, out=carried)
            self.limbs[place] &= _RADIX - 1
            place += 1

    def to_float(self) -> NDArray[np.float64]:
        """The sums as float64: a fixed function of their exact values, within 2 units in the last place."""
        self.normalize()
        total = np.zeros(self.shape) if not len(self.limbs) else self._limb_to_float(len(self.limbs) - 1)
        for place in range(len(self.limbs) - 2, -1, -1):
            total += self._limb_to_float(place)
        return total

    def _limb_to_float(self, place: int) -> NDArray[np.float64]:
        digits = self.limbs[place].astype(np.float64)
        exponent = LIMB_BITS * (self.base + place)
        return np.asarray(np.ldexp(digits, exponent, out=digits)) if exponent else digits

    def modulo(self, prime: int) -> NDArray[np.float64]:
        """The sums as residues modulo an odd prime below 2**23; a power of two below the point is inverted."""
        self.normalize()
        total = np.zeros(self.shape, dtype=np.int64)
        for limb in self.limbs[::-1]:
            total = (total * (_RADIX % prime) + limb) % prime
        return (total * pow(2, LIMB_BITS * self.base, prime) % prime).astype(np.float64)

    def to_fractions(self) -> list[Fraction]:
        """The sums as rationals, in C order; for the few totals that need exact arithmetic."""
        columns = self.limbs.reshape(len(self.limbs), prod(self.shape)).T.tolist()
        scale = Fraction(2) ** (LIMB_BITS * self.base)
        return [scale * sum(limb << (LIMB_BITS * place) for place, limb in enumerate(column)) for column in columns]

    def take(self, index: NDArray[np.intp] | slice) -> ExactSum:
        """The entries at ``index`` of the last axis."""
        return ExactSum(self.base, np.array(self.limbs[..., index], order="C"), self._bound)

    def rescaled(self, place: int) -> ExactSum:
        """The sums over ``2**(32 * place)``, exactly; it shares the limbs, so leave it as it is."""
        self.normalize()
        view = ExactSum(self.base - place, self.limbs, self._bound)
        view._canonical = True
        return view

    def times(self, sign: int) -> ExactSum:
        """The sums times 1 or -1."""
        return ExactSum(self.base, sign * self.limbs, self._bound)

    def repeated(self, count: int) -> ExactSum:
        """The one sum there is, ``count`` times."""
        return ExactSum(self.base, np.repeat(self.limbs, count, axis=-1), self._bound)

    def grouped(self, order: NDArray[np.intp], first: NDArray[np.intp]) -> ExactSum:
        """Sums over groups of the last axis: put in ``order``, the groups begin at the increasing places ``first``."""
        self.normalize()
        if not len(first):
            return ExactSum.zeros((*self.shape[:-1], 0))
        limbs = np.add.reduceat(self.limbs[..., order], first, axis=-1) if len(self.limbs) else self.limbs[..., first]
        return ExactSum(self.base, limbs, _RADIX * max(1, len(order)))

    def scattered(self, index: NDArray[np.intp], size: int) -> ExactSum:
        """Entry ``i`` of the last axis put at the distinct places ``index[i]`` of an axis of the given size."""
        limbs = np.zeros((*self.limbs.shape[:-1], size), dtype=np.int64)
        limbs[..., index] = self.limbs
        return ExactSum(self.base, limbs, self._bound)

    def nonzero(self) -> NDArray[np.bool_]:
        """Where a sum is not zero."""
        self.normalize()
        return np.asarray(self.limbs.any(axis=0))

    def walsh_hadamard(self, chosen: NDArray[np.intp] | None = None, *, n_threads: int = 1) -> ExactSum:
        """The exact unnormalised transform over the last axis, of length 2**n, n <= 30; all of it or some places."""
        self.normalize()
        size = self.limbs.shape[-1]
        rows = self.limbs.reshape(-1, size)
        if chosen is None:
            found = rows.copy()
            kernels.walsh_hadamard(found, n_threads=n_threads)
        else:
            found = np.empty((len(rows), len(chosen)), dtype=np.int64)
            table = np.empty((1, size), dtype=np.int64)  # one for all limbs: fresh memory takes longer than a transform
            for limb, transformed in zip(rows, found, strict=True):
                table[0] = limb
                kernels.walsh_hadamard(table, n_threads=n_threads)
                table[0].take(chosen, out=transformed, mode="clip")  # which needs no buffer
        return ExactSum(self.base, found.reshape(*self.limbs.shape[:-1], found.shape[-1]), _RADIX * size)


def _outside(limb: NDArray[np.int64]) -> bool:
    return bool(limb.size and (limb.max() >= _RADIX or limb.min() <= -_RADIX))


def _only_signs(limb: NDArray[np.int64], below: NDArray[np.int64]) -> bool:
    """Whether a top limb can be folded into the one below, which then stays above -2**32."""
    return not limb.size or bool(limb.max() <= 0 and limb.min() >= -1 and below[limb < 0].all())


def _spread(values: NDArray[np.float64] | NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Values broadcast to a shape, in C order."""
    return np.ascontiguousarray(np.broadcast_to(values, shape), dtype=np.float64).ravel()

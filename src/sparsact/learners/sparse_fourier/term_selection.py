r"""Least squares on few monomials out of a pool: forward selection, pruning and exchanges by exact Gram columns.

With the monomials A of the model, their Gram matrix G and the residual r, monomial k of the pool has

.. math:: b_k = \langle r, \chi_k \rangle, \quad h_k = G^{-1} \langle \chi_A, \chi_k \rangle, \quad
          a_k = 1 - \langle \chi_A, \chi_k \rangle^\top h_k, \qquad t_k^2 = \frac{b_k^2}{a_k} \frac{m}{\sigma^2},

so :math:`\chi_k` counts by its part outside of the model, whatever the law of the rows. All inner products are means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from sparsact.hypercube import Masks, sizes
from sparsact.learners.sparse_fourier.integer_sample import IntegerSample

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

LEAST_NEW: Final = 1e-3  # share of a monomial outside of the model, below which it is an alias of what is there
RESEMBLING: Final = 0.2  # correlation of monomials that may be taken for one another
NEAREST: Final = 32  # monomials that a term is tested with
SAME: Final = 0.01  # share of a term that these leave, below which they are another way to write it
MOST_CHANGES: Final = 300  # in all trials without a term: copies of rows give models of hundreds of terms
LEAST_VARIANCE: Final = 1.0  # of a target of integers that were rounded at random


@dataclass(frozen=True)
class Moves:
    """What each change of the model does to the squared error, in means.

    Attributes
    ----------
    gain : ndarray of shape (K,)
        Residual sum removed by adding each monomial of the pool; -1 for monomials in the model and for banned ones.
    loss : ndarray of shape (s,)
        Residual sum added by dropping each monomial of the model.
    squared_error : float
        Squared error of the model.
    beta, inverse : ndarray of shape (s,), (s, s)
        Coefficients, and the inverse of the Gram matrix.
    h, a, b : ndarray of shape (K, s), (K,), (K,)
        As above.
    """

    gain: Array
    loss: Array
    squared_error: float
    beta: Array
    inverse: Array
    h: Array
    a: Array
    b: Array

    def exchanges(self) -> Array:
        """Taken off by putting each monomial of the pool in place of each of the model but the constant, (K, s - 1)."""
        share = self.h[:, 1:] / self.inverse.diagonal()[1:]
        b = self.b[:, None] + self.beta[1:] * share
        a = self.a[:, None] + self.h[:, 1:] * share
        return np.where(a > LEAST_NEW, b**2 / np.maximum(a, LEAST_NEW), 0.0) - self.loss[1:]


class TermPool:
    """Monomials that a model may hold, and the model: some of them, the constant first."""

    def __init__(self, sample: IntegerSample, masks: Masks, n_chosen: int, critical: Callable[[int], Array]) -> None:
        self.sample = sample
        self.masks = masks  # the model's first
        self.chosen = list(range(n_chosen))
        self.critical = critical  # t of monomials by their sizes, in a model of s monomials
        self.sizes = sizes(masks)
        self.banned: set[int] = set()
        self.means = sample.means(masks)
        self.square = float(np.mean(sample.target**2))
        self._columns = dict(enumerate(sample.products(masks, masks[:n_chosen]).T))

    def cross(self) -> Array:
        """Gram columns of the model, (K, s)."""
        for k in self.chosen:
            if k not in self._columns:
                self._columns[k] = self.sample.products(self.masks, self.masks[k : k + 1])[:, 0]
        return np.stack([self._columns[k] for k in self.chosen], axis=1)

    def moves(self) -> Moves:
        """What each change would do."""
        cross = self.cross()
        factor = cho_factor(cross[self.chosen])
        inverse = cho_solve(factor, np.eye(len(self.chosen)))
        beta = inverse @ self.means[self.chosen]
        h = cross @ inverse
        a, b = 1 - (h * cross).sum(axis=1), self.means - cross @ beta
        gain = np.where(a > LEAST_NEW, b**2 / np.maximum(a, LEAST_NEW), 0.0)
        gain[[*self.chosen, *self.banned]] = -1.0
        error = self._floor(self.square - float(beta @ self.means[self.chosen]))
        return Moves(gain, beta**2 / inverse.diagonal(), error, beta, inverse, h, a, b)

    def _floor(self, squared_error: float) -> float:
        return max(squared_error, LEAST_VARIANCE)

    def _worth(self, change: Array, squared_error: Array | float, size: int, which: Any = slice(None)) -> Array:
        """By how much the squares of the t of changes, to this squared error and size, exceed the least."""
        freedom = max(1, self.sample.n_rows - size)
        t2 = np.maximum(change, 0.0) * freedom / np.maximum(squared_error, LEAST_VARIANCE)
        return np.asarray(np.where(change >= 0, t2 - self.critical(size)[self.sizes[which]] ** 2, -np.inf))

    def _addition(self, gain: Array, squared_error: float, size: int) -> int | None:
        """The monomial most worth adding to a model of ``size``, if any is."""
        worth = self._worth(gain, squared_error - gain, size + 1)
        k = int(worth.argmax())
        return k if gain[k] > 0 and worth[k] >= 0 else None

    def select(self, most: int) -> None:
        """Add the monomial most worth it, as long as one is significant: Gram-Schmidt on the columns of the pool."""
        moves = self.moves()
        a, b, error = moves.a.copy(), moves.b.copy(), moves.squared_error
        gain = moves.gain
        old = self.cross() @ np.linalg.cholesky(moves.inverse)
        basis = np.empty((len(self.masks), max(most + 1, old.shape[1])), order="F")  # only what is used takes memory
        basis[:, : old.shape[1]] = old
        for size in range(len(self.chosen), most + 1):
            k = self._addition(gain, error, size)
            if k is None:
                return
            self.chosen.append(k)
            error = self._floor(error - gain[k])
            self._columns[k] = self.sample.products(self.masks, self.masks[k : k + 1])[:, 0]
            new = (self._columns[k] - basis[:, :size] @ basis[k, :size]) / np.sqrt(a[k])
            basis[:, size] = new
            b -= new * (b[k] / np.sqrt(a[k]))
            a -= new**2
            gain = np.where(a > LEAST_NEW, b**2 / np.maximum(a, LEAST_NEW), 0.0)
            gain[[*self.chosen, *self.banned]] = -1.0

    def retry(self, most: int) -> None:
        """Do without each monomial that resembles another of the pool, and keep what then fits better, if anything.

        One monomial may stand where two others belong, or two in place of one.
        """
        left = MOST_CHANGES
        for k in [k for k in self.chosen[1:] if self._resembles(k)]:
            if k not in self.chosen or not left:
                continue
            before, score = [*self.chosen], self.score()
            self.banned = {k}
            self.chosen.remove(k)
            self.select(most)
            left -= self.polish(most, min(left, 20))
            self.banned = set()
            if self.score() >= score - 1e-9:
                self.chosen = before

    def beside_two_more(self, rarity: Array) -> Array:
        """Least square of t of each term of the model, were any one or two monomials that resemble it there, (s - 1,).

        The square grows by how much the ``rarity`` of their sizes exceeds that of the term. What a term and these
        others share, up to ``SAME``, counts as one function: no rows could distinguish them.
        """
        rare = rarity[self.sizes]
        moves, cross, least = self.moves(), self.cross(), np.empty(len(self.chosen) - 1)
        others = np.flatnonzero((moves.gain >= 0) & (moves.a > LEAST_NEW))
        scale = moves.squared_error / max(1, self.sample.n_rows - len(self.chosen))
        for place in range(1, len(self.chosen)):
            h, own = moves.h[:, place], moves.inverse[place, place]
            outside = (self.masks[others] & ~self.masks[self.chosen[place]]).any(axis=1)
            far = np.where(outside, -(h[others] ** 2) / moves.a[others], -np.inf)  # parts of the term come first
            near = others[np.argsort(far, kind="stable")[:NEAREST]]
            one, two = np.tril_indices(len(near))
            a = self.sample.products(self.masks[near], self.masks[near]) - moves.h[near] @ cross[near].T
            # The inverse of the 2 x 2 matrix of each pair; of the pair of one with itself, that of one.
            apart = np.where(one == two, 0.0, a[one, two])
            diagonal = a.diagonal()
            determinant = diagonal[one] * diagonal[two] - apart**2
            usable = determinant > LEAST_NEW * diagonal[one] * diagonal[two]
            one, two, apart, determinant = one[usable], two[usable], apart[usable], determinant[usable]
            second = np.where(one == two, 0.0, 1.0)
            (h1, h2), (b1, b2) = (h[near][one], second * h[near][two]), (moves.b[near][one], moves.b[near][two])
            w1, w2 = diagonal[two] * h1 - apart * h2, diagonal[one] * h2 - apart * h1
            variance = own + (h1 * w1 + h2 * w2) / determinant
            t2 = (moves.beta[place] - (b1 * w1 + b2 * w2) / determinant) ** 2 / (variance * scale)
            t2 += np.maximum(rare[near[one]] + second * rare[near[two]] - rare[self.chosen[place]], 0)
            least[place - 1] = t2[own > SAME * variance].min(initial=np.inf)
        return least

    def _resembles(self, k: int) -> bool:
        """Whether another monomial of the pool has a correlation of some size with this one."""
        similar = np.abs(self._columns[k])
        similar[k] = 0
        return bool(similar[1:].max(initial=0.0) > RESEMBLING)

    def score(self) -> float:
        """Twice the negative log-likelihood of the model, with a price of the square of its critical t a monomial."""
        price = float((self.critical(len(self.chosen))[self.sizes[self.chosen]] ** 2).sum())
        return self.sample.n_rows * float(np.log(self.moves().squared_error)) + price

    def polish(self, most: int, most_changes: int) -> int:
        """Drop what is not significant, exchange what fits worse, and add, until no change lowers the error enough.

        Returns how many models it looked at.
        """
        for number in range(1, most_changes + 1):
            moves, size = self.moves(), len(self.chosen)
            if size > 1:
                worth = self._worth(moves.loss[1:], moves.squared_error, size, self.chosen[1:])
                weakest = int(worth.argmin())
                if worth[weakest] < 0:
                    del self.chosen[1 + weakest]
                    continue
            k = self._addition(moves.gain, moves.squared_error, size) if size <= most else None
            if k is not None:
                self.chosen.append(k)
                continue
            if size == 1:
                return number
            unit, price = moves.squared_error / self.sample.n_rows, self.critical(size)[self.sizes] ** 2
            exchanges = moves.exchanges() / unit + price[self.chosen[1:]] - price[:, None]
            exchanges[[*self.chosen, *self.banned]] = -np.inf
            better, worse = divmod(int(exchanges.argmax()), size - 1)
            if exchanges[better, worse] <= 1e-2:
                return number
            self.chosen[1 + worse] = better
        return most_changes

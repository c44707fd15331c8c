r"""Least squares on few monomials out of a pool: forward selection, pruning and exchanges by exact Gram columns.

With the monomials A of the model, their Gram matrix G and the residual r, monomial k of the pool has

.. math:: b_k = \langle r, \chi_k \rangle, \quad h_k = G^{-1} \langle \chi_A, \chi_k \rangle, \quad
          a_k = 1 - \langle \chi_A, \chi_k \rangle^\top h_k, \qquad t_k^2 = \frac{b_k^2}{a_k} \frac{m}{\sigma^2},

so :math:`\chi_k` counts by its part outside of the model, whatever the law of the rows. All inner products are means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from sparsact.hypercube import Masks, masks_of, subsets_of
from sparsact.learners.sparse_fourier.integer_sample import IntegerSample

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

LEAST_NEW = 1e-3  # share of a monomial outside of the model, below which it is an alias of what is there
RESEMBLING = 0.2  # correlation of monomials that may be taken for one another
LEAST_VARIANCE = 1.0  # of a target of integers that were rounded at random


@dataclass(frozen=True)
class Moves:
    """What each change of the model does to the squared error, in means.

    Attributes
    ----------
    gain : ndarray of shape (K,)
        Taken off by adding each monomial of the pool; -1 for those of the model and those banned.
    loss : ndarray of shape (s,)
        Put on by dropping each monomial of the model.
    squared_error : float
        Of the model.
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

    def beside_one_more(self, n_rows: int) -> Array:
        """Least t of each monomial of the model but the constant, were any other of the pool added, (s - 1,)."""
        usable = (self.gain >= 0) & (self.a > LEAST_NEW)
        h, a, b = self.h[usable, 1:], self.a[usable, None], self.b[usable, None]
        beta, variance = self.beta[1:] - h * b / a, self.inverse.diagonal()[1:] + h**2 / a
        t = np.abs(beta) / np.sqrt(variance * self.squared_error / n_rows)
        return np.asarray(t.min(axis=0, initial=np.inf))


class TermPool:
    """Monomials that a model may hold, and the model: some of them, the constant first."""

    def __init__(self, sample: IntegerSample, masks: Masks, n_chosen: int, critical: Callable[[int], float]) -> None:
        self.sample = sample
        self.masks = masks  # those of the model first
        self.chosen = list(range(n_chosen))
        self.critical = critical  # t of s monomials
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

    def _t(self, change: float, squared_error: float, size: int) -> float:
        """Size of the t of a change of the squared error to this one, of a model of ``size`` monomials."""
        freedom = max(1, self.sample.n_rows - size)
        return float(np.sqrt(max(change, 0.0) * freedom / self._floor(squared_error)))

    def select(self, most: int) -> None:
        """Add the monomial of largest t, as long as it is significant: Gram-Schmidt on the columns of the pool."""
        moves = self.moves()
        a, b, error = moves.a.copy(), moves.b.copy(), moves.squared_error
        gain = moves.gain
        old = self.cross() @ np.linalg.cholesky(moves.inverse)
        basis = np.empty((len(self.masks), max(most + 1, old.shape[1])), order="F")  # only what is used takes memory
        basis[:, : old.shape[1]] = old
        for size in range(len(self.chosen), most + 1):
            k = int(gain.argmax())
            if gain[k] <= 0 or self._t(gain[k], error - gain[k], size + 1) < self.critical(size + 1):
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
        for k in [k for k in self.chosen[1:] if self._resembles(k)]:
            if k not in self.chosen:
                continue
            before, score = [*self.chosen], self.score()
            self.banned = {k}
            self.chosen.remove(k)
            self.select(most)
            self.polish(most)
            self.banned = set()
            if self.score() >= score - 1e-9:
                self.chosen = before

    def beside_its_parts(self, mask: Masks, squared_error: float, freedom: int) -> float:
        """Size of the t of a monomial of the model, were all products of some of its coordinates in it."""
        (members,), n = subsets_of(mask[None]), self.sample.points.n
        parts = [part for size in range(1, len(members)) for part in combinations(members, size)]
        others = self.masks[[k for k in self.chosen if (self.masks[k] != mask).any()]]
        others = np.unique(np.concatenate([others, masks_of(parts, n)]), axis=0)
        cross, means = self.sample.products(others, mask[None])[:, 0], self.sample.means(others)
        share, beta = np.linalg.lstsq(self.sample.products(others, others), np.stack([cross, means], 1), 1e-9)[0].T
        a, b = 1 - cross @ share, self.sample.means(mask[None])[0] - cross @ beta
        return float(abs(b) * np.sqrt(freedom / (a * squared_error))) if a > LEAST_NEW else 0.0

    def _resembles(self, k: int) -> bool:
        """Whether another monomial of the pool has a correlation of some size with this one."""
        similar = np.abs(self._columns[k])
        similar[k] = 0
        return bool(similar[1:].max(initial=0.0) > RESEMBLING)

    def score(self) -> float:
        """Twice the negative log-likelihood of the model, with a price of the square of the critical t a monomial."""
        size = len(self.chosen)
        return self.sample.n_rows * float(np.log(self.moves().squared_error)) + size * self.critical(size) ** 2

    def polish(self, most: int) -> None:
        """Drop what is not significant, exchange what fits worse, and add, until no change lowers the error enough."""
        for _ in range(20 + 10 * len(self.chosen)):
            moves, size = self.moves(), len(self.chosen)
            if size > 1:
                weakest = 1 + int(moves.loss[1:].argmin())
                if self._t(moves.loss[weakest], moves.squared_error, size) < self.critical(size):
                    del self.chosen[weakest]
                    continue
            k = int(moves.gain.argmax())
            if size <= most and self._t(moves.gain[k], moves.squared_error - moves.gain[k], size + 1) >= self.critical(
                size + 1
            ):
                self.chosen.append(k)
                continue
            if size == 1:
                return
            exchanges = moves.exchanges()
            exchanges[[*self.chosen, *self.banned]] = -np.inf
            better, worse = divmod(int(exchanges.argmax()), size - 1)
            if exchanges[better, worse] * self.sample.n_rows <= 1e-2 * moves.squared_error:
                return
            self.chosen[1 + worse] = better

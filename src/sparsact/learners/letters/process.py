"""Gaussian processes on letters: kernels that are each learned without a fold, and means of the fits to all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.cube_gp.likelihood import Cholesky
from sparsact.learners.letters.grid import Grid
from sparsact.learners.letters.kernel import Array, Codes, LetterKernel
from sparsact.learners.letters.likelihood import most_probable

DENSE_ROWS = 1_200  # whose matrix is factorized even where the grid is small
MOST_DENSE_ROWS = 5_000  # that a process has where the grid is too large
LARGEST_GRID = 1 << 23  # cells
CELLS_A_ROW = 2_000  # beyond so many, a matrix of the rows is less work
AT_ONCE = 1 << 24  # covariances
ROWS_FOR_FACTORS = 2_000
FACTORS = (0.4, 0.16)  # by which the noise is multiplied, if that predicts better


@dataclass(frozen=True, eq=False)
class LetterProcess:
    """The posterior mean under a kernel: dual coefficients (m,) of rows of letters (m, n)."""

    kernel: LetterKernel
    codes: Codes
    alpha: Array

    def values(self, codes: Codes) -> Array:
        """Posterior means (m',) at rows of letters (m', n)."""
        if not on_grid(self.codes):
            return self._by_rows(codes)
        grid = Grid(self.kernel, self.codes)
        cells = grid.cells_of(codes)
        found = np.asarray(grid.values(self.alpha[None].astype(np.float32))[0, cells], dtype=np.float64)
        found[cells < 0] = self._by_rows(codes[cells < 0])
        return found

    def _by_rows(self, codes: Codes) -> Array:
        """The same, by a covariance of each two rows."""
        size = max(1, AT_ONCE // len(self.codes))
        blocks = [codes[start : start + size] for start in range(0, len(codes), size)]
        pieces = [self.kernel.covariance(block, self.codes) @ self.alpha for block in blocks]
        return np.concatenate([np.empty(0), *pieces])


def on_grid(codes: Codes) -> bool:
    """Whether products with all combinations of the rows' letters are less work than a matrix of the rows."""
    cells = float(np.prod([float(len(np.unique(letters))) for letters in codes.T]))
    return len(codes) > DENSE_ROWS and cells <= min(LARGEST_GRID, CELLS_A_ROW * len(codes))


def dual_coefficients(kernel: LetterKernel, codes: Codes, y: Array, weights: Array, kept: NDArray[np.bool_]) -> Array:
    """Dual coefficients (k, m) of those rows that are kept (k, m), zero for the others."""
    noise = kernel.noise_variance / weights
    if on_grid(codes):
        targets = np.broadcast_to(y.astype(np.float32), kept.shape)
        return Grid(kernel, codes).solve(targets, kept.astype(np.float32), noise)[0].astype(np.float64)
    matrix = np.asfortranarray(kernel.covariance(codes, codes))
    matrix[np.diag_indices(len(y))] += noise
    found = np.zeros(kept.shape)
    for alpha, rows in zip(found, kept, strict=True):
        alpha[rows] = Cholesky.of(np.asfortranarray(matrix[np.ix_(rows, rows)])).solve(y[rows])
    return found


@dataclass(frozen=True, eq=False)
class ProcessEnsemble:
    """The mean of processes, in the units of the targets."""

    members: tuple[LetterProcess, ...]
    centre: float
    scale: float

    def values(self, codes: Codes) -> Array:
        """Means (m,) of the members' posterior means."""
        return np.asarray(self.centre + self.scale * np.mean([one.values(codes) for one in self.members], axis=0))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Standardized rows of a process, and the fold that is left out."""

    codes: Codes
    z: Array
    weights: Array
    others: NDArray[np.bool_]  # rows outside of the fold

    def learned(self, features: Sequence[Array], rng: np.random.Generator) -> LetterKernel:
        """The most probable kernel by the rows outside of the fold."""
        start, others = LetterKernel.start(features), self.others
        return most_probable(start, self.codes[others], self.z[others], self.weights[others], rng)

    def fitted(self, kernel: LetterKernel) -> tuple[LetterProcess, Array, float]:
        """The process of all rows, values of the fold by that of the others, and the mean square of their errors."""
        chosen = np.arange(len(self.z))
        if not on_grid(self.codes):
            chosen = chosen[:MOST_DENSE_ROWS]  # rows come in random order
        codes, others, fold = self.codes[chosen], self.others[chosen], ~self.others
        kept = np.stack([np.ones(len(chosen), dtype=bool), others])
        alpha = dual_coefficients(kernel, codes, self.z[chosen], self.weights[chosen], kept)
        held_out = LetterProcess(kernel, codes, alpha[1]).values(self.codes[fold])
        error = float(np.average((held_out - self.z[fold]) ** 2, weights=self.weights[fold]))
        return LetterProcess(kernel, codes, alpha[0]), held_out, error


def fitted_processes(
    features: Sequence[Array], codes: Codes, y: Array, weights: Array, folds: NDArray[np.intp], rng: np.random.Generator
) -> tuple[ProcessEnsemble, Array]:
    """Processes of all rows, which come in random order, and values (m,) of each by one that has not seen its fold.

    A kernel that has seen a fold makes its rows look easier than others. So each is learned without one, predicts that
    fold from the other rows, and then is fitted to all rows. With many rows the first chooses less noise for all, if it
    predicts its fold better so.
    """
    centre = float(np.average(y, weights=weights))
    scale = float(np.sqrt(np.average((y - centre) ** 2, weights=weights))) or 1.0
    z, left_out = (y - centre) / scale, np.empty(len(y))
    members: list[LetterProcess] = []
    factor = 1.0
    for fold in range(folds.max() + 1):
        rows = _Rows(codes, z, weights, folds != fold)
        kernel = rows.learned(features, rng)
        member, held_out, error = rows.fitted(kernel.with_noise_times(factor))
        for smaller in FACTORS if fold == 0 and len(y) > ROWS_FOR_FACTORS else ():
            other = rows.fitted(kernel.with_noise_times(smaller))
            if other[2] >= error:
                break
            factor, (member, held_out, error) = smaller, other
        members.append(member)
        left_out[folds == fold] = held_out
    return ProcessEnsemble(tuple(members), centre, scale), centre + scale * left_out

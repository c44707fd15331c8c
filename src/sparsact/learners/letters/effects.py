"""Effects of letters under a product kernel, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from sparsact.learners.gp.kernel import Array, Codes
from sparsact.learners.gp.prospects import Quantities
from sparsact.learners.gp.systems.kronecker_grid import ProductKernel


def letter_effects(kernel: ProductKernel, site_sets: Sequence[tuple[int, ...]]) -> Quantities:
    r"""Effects of all letters at some sites, or of all their combinations at several: sum-to-zero components.

    Letters are equally frequent. With the kernel :math:`v \prod_i F_i` and means :math:`\bar F_i(b)` of its columns,
    the effect of letter a at site i has the covariance :math:`v\, (F_i(a, x_i) - \bar F_i(x_i)) \prod_{j \ne i} \bar
    F_j(x_j)` with f(x); an effect of several sites has such a factor for each.
    """

    def products(first: Array, of_sites: Sequence[Array]) -> Array:
        """A factor (m,) times one (q_i, m) for each site of a set, for every set, (q, m)."""

        def with_site(before: Array, site: int) -> Array:
            return np.asarray(before[:, None] * of_sites[site]).reshape(-1, len(first))

        return np.concatenate([reduce(with_site, sites, first[None]) for sites in site_sets])

    factors, means = kernel.factors, [factor.mean(axis=0) for factor in kernel.factors]
    overall = np.array([mean.mean() for mean in means])
    own = [
        (factor.diagonal() - 2 * mean + total)[:, None] / total
        for factor, mean, total in zip(factors, means, overall, strict=True)
    ]

    def covariances(points: Codes) -> Array:
        there = [mean[letters] for mean, letters in zip(means, points.T, strict=True)]
        ratios = [factor[:, letters] / mean - 1 for factor, letters, mean in zip(factors, points.T, there, strict=True)]
        return products(kernel.variance * np.prod(there, axis=0), ratios)

    return Quantities(products(kernel.variance * overall.prod(keepdims=True), own)[:, 0], covariances)

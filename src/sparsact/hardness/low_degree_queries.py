"""The low-degree algorithm with statistical queries in the place of examples."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sparsact.fourier import Spectrum
from sparsact.hardness.queries import StatisticalQueries
from sparsact.hypercube import Masks, n_subsets, subset_masks
from sparsact.validation.arrays import checked_masks
from sparsact.validation.parameters import checked_size


def low_degree_by_queries(
    oracle: StatisticalQueries, degree: int, *, subsets: Iterable[Iterable[int]] | Masks | None = None
) -> Spectrum:
    r"""All correlations of degree at most d, asked one by one, as the coefficients of a hypothesis.

    .. math:: h(x) = \sum_{|T| \le d} a_T\, \chi_T(x), \qquad |a_T - \mathbb{E}[y\, \chi_T(x)]| \le \tau

    Parameters
    ----------
    oracle : StatisticalQueries
        The oracle; its ledger counts one query a coefficient.
    degree : int
        Largest size of a subset, from 0 to n.
    subsets : tuples of coordinates or masks, optional
        Only these, of size at most ``degree``, in place of all.

    Returns
    -------
    hypothesis : Spectrum
        The answers that are not 0.

    Raises
    ------
    QueryBudgetError
        If the ledger has no room for all coefficients; none is asked then.

    Notes
    -----
    On uniform points this is the textbook algorithm: the error is the tail above d plus at most N tau^2 for N
    coefficients ([1]_). On other distributions, such as a lifted one, characters are not orthogonal, and the answers
    are correlations still, but coefficients of nothing.

    References
    ----------
    .. [1] N. Linial, Y. Mansour, N. Nisan, "Constant depth circuits, Fourier transform, and learnability", 1993.

    Examples
    --------
    >>> from sparsact.hardness import LiftedFunction, StatisticalQueryOracle
    >>> majority = LiftedFunction([1, 1, 1, -1, 1, -1, -1, -1], 3)
    >>> low_degree_by_queries(StatisticalQueryOracle(majority, 0.01, "exact"), degree=1)
    <Spectrum on 3 coordinates, degree 1: 0.5 x0 + 0.5 x1 + 0.5 x2>
    """
    checked_size(degree, "`degree`", minimum=0, maximum=oracle.n)
    if subsets is None:
        oracle.ledger.admit(n_subsets(oracle.n, degree))  # before the masks take memory
        masks = subset_masks(oracle.n, degree)
    else:
        masks = checked_masks(subsets, oracle.n)
        if (np.bitwise_count(masks).sum(axis=1) > degree).any():
            raise ValueError(f"`subsets` must have at most {degree} members each, the degree; raise `degree`.")
    answers = oracle.correlations(masks, f"characters of degree at most {degree}")
    return Spectrum.from_coefficients(answers[answers != 0], masks[answers != 0], oracle.n)

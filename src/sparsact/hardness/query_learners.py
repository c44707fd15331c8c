r"""Learners by queries: the low-degree algorithm by statistical ones, heavy coefficients by membership queries.

Heavy coefficients are found by the search of Goldreich and Levin ([GL]_), and Kushilevitz and Mansour ([KM]_, [O]_).
The subsets that agree with S on the coordinates J form a bucket of weight

.. math:: W(S, J) = \sum_{T \cap J = S} \hat f(T)^2
    = \mathbb{E}_{x, d}\bigl[f(x)\, f(x \oplus d)\, \chi_S(d)\bigr], \qquad d \text{ uniform on } J, 0 \text{ off it},

which two values of f estimate without bias. Heavy buckets are split further; the sum of all weights is at most 1, so
few are heavy. Here J grows by several coordinates at a time: the weights of all parts of a bucket are one
Walsh-Hadamard transform of the products, summed by the values of d on the new coordinates.

References
----------
.. [GL] O. Goldreich, L. Levin, "A hard-core predicate for all one-way functions", 1989.
.. [KM] E. Kushilevitz, Y. Mansour, "Learning decision trees using the Fourier spectrum", 1993.
.. [LMN] N. Linial, Y. Mansour, N. Nisan, "Constant depth circuits, Fourier transform, and learnability", 1993.
.. [O] R. O'Donnell, "Analysis of Boolean Functions", 2014, Section 3.5.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fourier import Spectrum, walsh_hadamard
from sparsact.hardness.queries import MembershipOracle, StatisticalQueries
from sparsact.hardness.statistical_oracle import hoeffding_samples
from sparsact.hypercube import Masks, bits_to_signs, masks_of, n_subsets, n_words, subset_masks
from sparsact.learners.points import pack
from sparsact.validation.parameters import checked_generator, checked_probability, checked_size

ROWS_AT_ONCE: Final = 2**16
MIN_THRESHOLD: Final = 1e-3  # at which a round takes more than 1e15 queries


def low_degree_by_queries(oracle: StatisticalQueries, degree: int) -> Spectrum:
    r"""All correlations of degree at most d, asked one by one, as the coefficients of a hypothesis.

    .. math:: h(x) = \sum_{|T| \le d} a_T\, \chi_T(x), \qquad |a_T - \mathbb{E}[y\, \chi_T(x)]| \le \tau

    Parameters
    ----------
    oracle, degree : StatisticalQueries, and int
        The oracle, asked once per coefficient, and the largest size of a subset, from 0 to n.

    Returns
    -------
    hypothesis : Spectrum
        The answers that are not 0. :class:`QueryBudgetError` if the budget is too small for all; none is asked then.

    Notes
    -----
    On uniform points this is the textbook algorithm [LMN]_: the error is the tail above d plus at most N tau^2 for N
    coefficients. On other distributions, such as a lifted one, characters are not orthogonal, and the correlations are
    not coefficients.

    Examples
    --------
    >>> from sparsact.hardness import LiftedFunction, StatisticalQueryOracle
    >>> majority = LiftedFunction([1, 1, 1, -1, 1, -1, -1, -1], 3)
    >>> low_degree_by_queries(StatisticalQueryOracle(majority, 0.01, "exact"), degree=1)
    <Spectrum on 3 coordinates, degree 1: 0.5 x0 + 0.5 x1 + 0.5 x2>
    """
    checked_size(degree, "`degree`", minimum=0, maximum=oracle.n)
    oracle.ledger.admit(n_subsets(oracle.n, degree))  # before the masks take memory
    masks = subset_masks(oracle.n, degree)
    answers = oracle.correlations(masks, f"characters of degree at most {degree}")
    return Spectrum.from_coefficients(answers[answers != 0], masks[answers != 0], oracle.n)


def heavy_coefficients(
    oracle: MembershipOracle,
    threshold: float,
    *,
    rng: np.random.Generator,
    failure_probability: float = 0.01,
    split: int = 8,
) -> Spectrum:
    r"""All coefficients of magnitude at least :math:`\theta` of a function with values in [-1, 1].

    With probability at least ``1 - failure_probability`` the result holds every S with
    :math:`|\hat f(S)| \ge \theta` and none with :math:`|\hat f(S)| < \theta / \sqrt 2`, each coefficient within
    :math:`\theta / 4`.

    Parameters
    ----------
    oracle, threshold : MembershipOracle, and float
        Values of f, in [-1, 1], and :math:`\theta`, from 0.001 to 1.
    rng, failure_probability : numpy.random.Generator, and float
        Source of the points. The probability is over their choice alone; f is fixed.
    split : int
        Coordinates by which J grows at a time, from 1 to 16.

    Returns
    -------
    spectrum : Spectrum
        The coefficients found. :class:`QueryBudgetError` if the ledger has no room for the next round.

    Notes
    -----
    ``2 ceil(n / split)`` times :math:`32 \ln(2 N / \delta) / \theta^4` queries, N the number of estimated weights (a
    union bound over all of them is part of the stated probability), and :math:`32 \ln(2 N / \delta) / \theta^2` for the
    coefficients at the end. A weight is estimated within :math:`\theta^2 / 4` and kept from :math:`\frac34 \theta^2`
    on, so a kept one is at least :math:`\theta^2 / 2`, and at most :math:`2 / \theta^2` buckets live at a time. [KM]_
    splits by one coordinate and draws new points for every bucket; here all buckets of a round share them, which the
    union bound allows.

    Examples
    --------
    A parity of 19 bits among 40, out of reach of statistical queries:

    >>> hidden = MembershipOracle(lambda X: X[:, 3:22].prod(axis=1), n=40)
    >>> found = heavy_coefficients(hidden, 0.9, rng=np.random.default_rng(0))
    >>> found.subsets == [tuple(range(3, 22))]
    True
    """
    if not MIN_THRESHOLD <= threshold <= 1:
        raise ValueError(
            f"`threshold` must lie in (0, 1], as f has values in [-1, 1], and be at least {MIN_THRESHOLD}, as its "
            f"fourth power divides the number of queries; got {threshold}."
        )
    checked_probability(failure_probability, "`failure_probability`")
    checked_size(split, "`split`", maximum=16)
    checked_generator(rng)
    n = oracle.n
    rounds = [range(start, min(start + split, n)) for start in range(0, n, split)]
    max_alive = int(2 / threshold**2)
    n_weights = sum(min(max_alive, 2**new.start) * 2 ** len(new) for new in rounds)
    chance = failure_probability / (n_weights + max_alive)  # of each estimate
    pairs = hoeffding_samples(threshold**2 / 4, chance)
    buckets = np.zeros((1, n_words(n)), dtype=np.uint64)
    for new in rounds:
        if not len(buckets):
            break
        weights = _weights(oracle, buckets, new, pairs, rng)
        parent, part = np.nonzero(weights >= 0.75 * threshold**2)
        # More than can be heavy means that an estimate has failed; the heaviest are then the best that is left.
        strongest = np.argsort(-weights[parent, part], kind="stable")[:max_alive]
        bits = part[strongest, None] >> np.arange(len(new)) & 1
        buckets = buckets[parent[strongest]] | masks_of([np.flatnonzero(row) + new.start for row in bits], n)
    n_points = hoeffding_samples(threshold / 4, chance) if len(buckets) else 0
    return _estimated(oracle, buckets, n_points, rng)


def _weights(
    oracle: MembershipOracle, buckets: Masks, new: range, pairs: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Estimated weight of each bucket's parts by the ``new`` coordinates, (buckets, 2**len(new)), in table order."""
    oracle.ledger.admit(2 * pairs)  # the whole round, before its first query
    totals = np.zeros((len(buckets), 2 ** len(new)))
    for rows in _batches(pairs):
        x, d = (rng.integers(2, size=(rows, oracle.n), dtype=np.int8) for _ in range(2))
        d[:, new.stop :] = 0
        what = f"pairs that differ in coordinates below {new.stop}"
        products = _values(oracle, x, what) * _values(oracle, x ^ d, what)
        part = d[:, new.start : new.stop].astype(np.intp) @ (1 << np.arange(len(new)))
        for total, character in zip(totals, pack(d, "bits").characters(buckets).T, strict=True):
            total += np.bincount(part, weights=products * character, minlength=len(total))
    return walsh_hadamard(totals, normalize=False) / pairs


def _estimated(oracle: MembershipOracle, subsets: Masks, n_points: int, rng: np.random.Generator) -> Spectrum:
    """The coefficients of subsets, estimated at fresh points."""
    oracle.ledger.admit(n_points)
    totals = np.zeros(len(subsets))
    for rows in _batches(n_points):
        bits = rng.integers(2, size=(rows, oracle.n), dtype=np.int8)
        values = _values(oracle, bits, "points for the coefficients")
        totals += values @ pack(bits, "bits").characters(subsets)
    return Spectrum.from_coefficients(totals / max(n_points, 1), subsets, oracle.n)


def _values(oracle: MembershipOracle, bits: NDArray[np.int8], description: str) -> NDArray[np.float64]:
    values = oracle(bits_to_signs(bits), description)
    largest = float(np.abs(values).max())
    if largest > 1:
        raise ValueError(f"the function must have values in [-1, 1]; the largest is {largest}: divide it by its bound.")
    return values


def _batches(n_rows: int) -> list[int]:
    return [min(ROWS_AT_ONCE, n_rows - start) for start in range(0, n_rows, ROWS_AT_ONCE)]

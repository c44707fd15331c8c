"""Size a hash table for a given error: Theorems 4.1 and C.1 with their constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, e, exp, inf, log, sqrt
from typing import Final

from sparsact import bounds
from sparsact.kernels.bucket_statistics import n_sums
from sparsact.learners.lsh.layout import MAX_LOCAL, MAX_POSITIONS
from sparsact.learners.lsh.regressor import LSHRegressor
from sparsact.validation.parameters import check_named, checked_positive

PARTS: Final = 3  # of the error: two diameters of a bucket and a distance to the nearest row
KEY, COUNT, SLOT = 8, 8, 16  # bytes
SLOTS: Final = 3.0  # of an index for each key: it is between a quarter and half full


@dataclass(frozen=True)
class TablePlan:
    """Sizes of an LSH table for a uniform error; see :func:`plan_table` for what is proved.

    Attributes
    ----------
    theorem : str
        ``"4.1"`` or ``"C.1"``.
    intrinsic, ambient : int
        Dimensions k and d.
    epsilon, lipschitz, confidence : float
        What was asked for.
    n_hashes, n_tables : int
        Directions of a table, and tables.
    bucket_width : float
        Distance of the hyperplanes of a direction.
    samples : float
        Rows to learn from; ``inf`` beyond the floats.
    n_buckets : float
        Most buckets that can hold rows, over all tables.
    bytes : float
        Approximate memory of buckets, index and remembered rows at these numbers.
    query_flops : float
        Additions and multiplications of one query.
    paper_buckets, paper_samples : float
        The theorem's own expressions, with every open constant 1: shapes to set beside.
    """

    theorem: str
    intrinsic: int
    ambient: int
    epsilon: float
    lipschitz: float
    confidence: float
    n_hashes: int
    n_tables: int
    bucket_width: float
    samples: float
    n_buckets: float
    bytes: float
    query_flops: float
    paper_buckets: float
    paper_samples: float

    def estimator(self, random_state: int | None = None) -> LSHRegressor:
        """The learner of the theorem: a constant in each Euclidean bucket; the nearest bucket if one is empty."""
        return LSHRegressor(
            self.n_tables,
            self.n_hashes,
            self.bucket_width,
            0,
            "euclidean",
            "nearest",
            random_state,
            directions="principal",
        )


def plan_table(
    intrinsic: int,
    epsilon: float,
    *,
    ambient: int,
    lipschitz: float = 1.0,
    theorem: str = "4.1",
    confidence: float = 0.9,
    distortion: float = e,
) -> TablePlan:
    r"""Hyperplanes, width, tables, rows and memory of an LSH learner with an error of at most epsilon everywhere.

    The function is L-Lipschitz, and rows are uniform on a k-dimensional subspace (Theorem 4.1) or manifold
    (Theorem C.1) within :math:`[-1, 1]^d`, without noise. The error is kept with the ``confidence`` that is asked for.

    Parameters
    ----------
    intrinsic : int
        k, at most 8 (the nearest bucket is found in as many local coordinates).
    epsilon : float
        Largest error.
    ambient : int
        d; of manifolds at most 64.
    lipschitz : float, default=1.0
        L.
    theorem : {"4.1", "C.1"}, default="4.1"
        Subspace, or manifold of bounded distortion.
    confidence : float, default=0.9
        Probability, over hash functions and rows, that the error is kept.
    distortion : float, default=e
        Theorem C.1 only: a number c such that a ball of radius :math:`\rho` about any point of the manifold holds at
        least the share :math:`(\rho / (2 c \sqrt d))^k` of it. For the image of a convex part of the cube under a map
        with singular values in [a, b] that is :math:`b^2/a`; for a circle of radius R, :math:`\pi R / (2 \sqrt d)`.
        The paper assumes a constant and lets volumes change by :math:`e^k`.

    Returns
    -------
    plan : TablePlan

    Raises
    ------
    ValueError
        If a parameter means nothing, k exceeds d or 8, or a manifold's d exceeds 64.

    Notes
    -----
    *Error, width, samples and buckets are proved*, with constants that the paper leaves open. Let every bucket
    have diameter D and every point a row within r. A bucket's mean errs by at most LD, and so does the average over
    tables. An empty bucket takes the mean of the bucket whose mean position is nearest: it lies within r + D of the
    query, so that mean errs by at most L(r + 2D). Both are at most epsilon with :math:`D = r = \epsilon / (3L)`.

    - *Width*: :func:`~sparsact.bounds.bucket_diameter` in p dimensions with
      :math:`K = \lceil (3 (\sqrt p + t) / 2)^2 \rceil` directions, which minimises :math:`K / \text{width}` and so the
      buckets. Within a subspace p = k; between points of a manifold any direction can occur, so that p = d, the
      paper's O(d) hyperplanes. Half of the failure probability, divided among the tables.
    - *Samples*: let a ball of radius :math:`\rho` about any point hold at least the share :math:`(\rho / E)^k`: a
      convex part of the cube shrunk towards the point shows it for :math:`E = 2 \sqrt d`, and E is c times that on a
      manifold. With :math:`\rho = r / 2`, at most :math:`N = (2 E / \rho)^k` points are :math:`\rho` apart, their balls
      of radius :math:`\rho` meet every ball of radius r, and :math:`\ln(2 N / \delta)` over the share of one is enough
      rows to meet each with the other half of the probability.
    - *Buckets*: :func:`~sparsact.bounds.bucket_count_of_cuts` of each table, proved with the probability of the width;
      never more than rows. A bound, not an estimate: measured numbers are several times smaller.

    *What the constants cost*: rows grow as :math:`(12 L \sqrt d / \epsilon)^k` times a logarithm; the factor 12 comes
    from three parts of the error, balls of half the reach, and the cube's side. For L = 1, an error of 0.25 takes
    1.7 thousand rows where k = 1 and d = 16, 59 thousand where k = d = 2, and 10 million where k = d = 3; an error
    of 0.1 takes 4 * 10^11 where k = 4 and d = 8. These sizes are proved; do not fit by them. :class:`LSHRegressor`
    chooses sizes by held-out error, which are smaller by orders of magnitude.

    Theorem C.1 averages :func:`~sparsact.bounds.manifold_tables` tables with constant 1, which smooths the error; its
    own numbers of samples and buckets with constants 1 stand beside. On a circle of the plane
    these are 14 rows for an error of 0.2, with which no table keeps it.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Theorems 4.1 and C.1, Lemma B.1.

    Examples
    --------
    >>> plan = plan_table(1, 0.25, ambient=16)
    >>> plan.n_hashes, plan.n_tables, round(plan.bucket_width, 4), plan.samples
    (27, 1, 0.028, 1718.0)
    """
    check_named(intrinsic=intrinsic, ambient=ambient, epsilon=epsilon, L=lipschitz, confidence=confidence)
    if intrinsic > MAX_LOCAL:
        raise ValueError(f"`intrinsic` must be at most {MAX_LOCAL}, the local coordinates of a table; got {intrinsic}.")
    if theorem not in ("4.1", "C.1"):
        raise ValueError(f"`theorem` must be '4.1' or 'C.1'; got {theorem!r}.")
    k, d, scale = int(intrinsic), int(ambient), float(epsilon) / float(lipschitz)
    if theorem == "4.1":
        n_tables, within, extent = 1, k, 2 * sqrt(d)
        paper = bounds.table_size(d, k, lipschitz, epsilon), bounds.table_samples(d, k, lipschitz, epsilon)
    else:
        if d > MAX_POSITIONS:
            raise ValueError(
                f"`ambient` must be at most {MAX_POSITIONS} for a manifold, the coordinates in which the nearest "
                f"bucket is found; got {d}. Project the rows on the principal directions that they span."
            )
        checked_positive(distortion, "`distortion`")
        n_tables, within, extent = ceil(bounds.manifold_tables(d, k, scale)), d, 2 * distortion * sqrt(d)
        paper = bounds.manifold_table_size(d, k, scale), bounds.manifold_samples(d, k, scale)
    failure = (1 - float(confidence)) / 2
    spread = sqrt(within) + sqrt(2 * log(n_tables / failure))
    n_hashes = ceil((1.5 * spread) ** 2)
    width = scale / PARTS / bounds.bucket_diameter(1.0, within, n_hashes, 1 - failure / n_tables)
    samples = _covering_samples(k, extent, scale / PARTS, failure)
    cuts = ceil(min(2 * sqrt(d) * (sqrt(n_hashes) + spread) / width, 1e300)) + 1
    n_buckets = n_tables * min(bounds.bucket_count_of_cuts(within, n_hashes, cuts), samples)
    held = KEY + COUNT + SLOTS * SLOT
    return TablePlan(
        theorem,
        k,
        d,
        float(epsilon),
        float(lipschitz),
        float(confidence),
        n_hashes,
        n_tables,
        width,
        samples,
        n_buckets,
        n_buckets * (held + 8 * n_sums(k, 0, 1)) + samples * held,
        2.0 * d * (n_tables * n_hashes + k + 1),
        *paper,
    )


def _covering_samples(k: int, extent: float, reach: float, delta: float) -> float:
    """Number of rows among which, with probability 1 - delta, every point has one within ``reach``.

    A ball of radius r about a point holds at least ``(r / extent)**k`` of the probability.
    """
    radius = min(reach / 2, extent)
    exponent = k * log(extent / radius)
    if exponent > 600:
        return inf
    n_balls = k * log(2 * extent / radius)
    return float(ceil((n_balls + log(1 / delta)) * exp(exponent)))

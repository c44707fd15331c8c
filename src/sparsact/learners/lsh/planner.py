"""From a wanted error to the hash table that reaches it: Theorems 4.1 and C.1 with their constants."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt
from typing import Any

from sparsact import bounds
from sparsact.bounds.parameters import check
from sparsact.kernels.buckets import n_sums
from sparsact.learners.lsh.layout import MOST_LOCAL
from sparsact.learners.lsh.regressor import LSHRegressor

PARTS = 3  # of the error: two diameters of a bucket and a distance to the nearest row
KEY, COUNT, SLOT = 8, 8, 16  # bytes
SLOTS = 3.0  # of an index for each key: it is between a quarter and half full


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
    width : float
        Distance of the hyperplanes of a direction.
    samples : float
        Rows to learn from; ``inf`` beyond the floats.
    n_buckets : float
        Most buckets that can hold rows, over all tables.
    bytes : float
        Memory of buckets, index and remembered rows at those numbers, about.
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
    width: float
    samples: float
    n_buckets: float
    bytes: float
    query_flops: float
    paper_buckets: float
    paper_samples: float

    def estimator(self, random_state: Any = None) -> LSHRegressor:
        """The learner of the theorem: constants in Euclidean buckets, the nearest one for an empty one."""
        return LSHRegressor(
            self.n_tables, self.n_hashes, self.width, 0, "euclidean", random_state=random_state, directions="principal"
        )


def plan_table(
    intrinsic: int,
    epsilon: float,
    *,
    ambient: int,
    lipschitz: float = 1.0,
    theorem: str = "4.1",
    confidence: float = 0.9,
) -> TablePlan:
    r"""Hyperplanes, width, tables, rows and memory with which an LSH learner errs by at most epsilon anywhere.

    The function is L-Lipschitz, and rows are uniform on a k-dimensional subspace (Theorem 4.1) or manifold
    (Theorem C.1) within :math:`[-1, 1]^d`, without noise.

    Parameters
    ----------
    intrinsic : int
        k, at most 8 (the nearest bucket is found in as many local coordinates).
    epsilon : float
        Largest error.
    ambient : int
        d.
    lipschitz : float, default=1.0
        L.
    theorem : {"4.1", "C.1"}, default="4.1"
        Subspace, or manifold of bounded curvature.
    confidence : float, default=0.9
        Probability, over hash functions and rows, that the error is kept.

    Returns
    -------
    plan : TablePlan

    Raises
    ------
    ValueError
        If a parameter means nothing, or k exceeds d or 8.

    Notes
    -----
    *Theorem 4.1: error, width and samples are proved*, with constants that the paper leaves open. Let every bucket
    have diameter D and every point a row within r. A bucket's mean errs by at most LD; the mean of the bucket nearest
    to an empty one, of which a row is within r + D of the query by its mean position, by L(r + 2D): the two add up to
    epsilon with :math:`D = r = \epsilon / (3L)`.

    - *Width*: :func:`~sparsact.bounds.bucket_diameter` with :math:`K = \lceil (3 (\sqrt k + t) / 2)^2 \rceil`
      directions, which minimises :math:`K / \text{width}` and so the buckets; the paper's "Ck, C large enough". Half of
      the failure probability.
    - *Samples*: a point x of the convex region P has :math:`(\rho / 2 \sqrt d)^k` of the volume of P within
      :math:`\rho`, that of P shrunk towards x. With :math:`\rho = r / 2`, at most :math:`(4 \sqrt d / \rho)^k` balls
      cover P, and :math:`\ln(2 N / \delta)` over that share of rows meets each with the other half.
    - *Buckets*: :func:`~sparsact.bounds.bucket_count_of_cuts`, proved with the probability of the width; never more
      than rows. The bound, not an estimate: measured numbers are several times smaller.

    *Theorem C.1: shapes.* Tables, samples and buckets are :func:`~sparsact.bounds.manifold_tables`,
    :func:`~sparsact.bounds.manifold_samples` and :func:`~sparsact.bounds.manifold_table_size` with constants 1; there
    are at least d directions, and the width is proved for flat pieces only. Statement and proof disagree about buckets.

    References
    ----------
    .. [B] "A Theoretical View on Sparsely Activated Networks", 2022, Theorems 4.1 and C.1, Lemma B.1.

    Examples
    --------
    >>> plan = plan_table(1, 0.25, ambient=16)
    >>> plan.n_hashes, plan.n_tables, round(plan.width, 4), plan.samples
    (27, 1, 0.028, 1718.0)
    """
    check(intrinsic=intrinsic, ambient=ambient, epsilon=epsilon, L=lipschitz, confidence=confidence)
    if intrinsic > MOST_LOCAL:
        raise ValueError(
            f"`intrinsic` must be at most {MOST_LOCAL}, the local coordinates of a table; got {intrinsic}."
        )
    if theorem not in ("4.1", "C.1"):
        raise ValueError(f"`theorem` must be '4.1' or 'C.1'; got {theorem!r}.")
    k, d, scale = int(intrinsic), int(ambient), float(epsilon) / float(lipschitz)
    half = 1 - (1 - float(confidence)) / 2
    spread = sqrt(k) + sqrt(2 * log(1 / (1 - half)))
    n_hashes = max(ceil((1.5 * spread) ** 2), d if theorem == "C.1" else 1)
    width = scale / PARTS / bounds.bucket_diameter(1.0, k, n_hashes, half)
    if theorem == "4.1":
        n_tables, samples = 1, _covering_samples(k, d, scale / PARTS, 1 - half)
        cuts = ceil(min(2 * sqrt(d) * (sqrt(n_hashes) + spread) / width, 1e300)) + 1
        buckets = bounds.bucket_count_of_cuts(k, n_hashes, cuts)
        paper = bounds.table_size(d, k, lipschitz, epsilon), bounds.table_samples(d, k, lipschitz, epsilon)
    else:
        n_tables, samples = ceil(bounds.manifold_tables(d, k, scale)), bounds.manifold_samples(d, k, scale)
        samples = float(ceil(samples)) if samples < inf else inf
        paper = bounds.manifold_table_size(d, k, scale), samples
        buckets = paper[0]
    n_buckets = n_tables * min(buckets, samples)
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


def _covering_samples(k: int, d: int, reach: float, delta: float) -> float:
    """Rows of which, but for probability delta, one is within ``reach`` of every point of a convex part of the cube."""
    radius = min(reach / 2, 2 * sqrt(d))
    exponent = k * log(2 * sqrt(d) / radius)
    if exponent > 600:
        return inf
    n_balls = k * log(4 * sqrt(d) / radius)
    return float(ceil((n_balls + log(1 / delta)) * exp(exponent)))

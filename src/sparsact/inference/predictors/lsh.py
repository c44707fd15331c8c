"""A predictor by locality-sensitive hashing: an input computes the units whose weights share a bucket with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf, isinf
from typing import Any, ClassVar, Final

import torch
from torch import Tensor

from sparsact.inference.block_weights import BlockWeights, plain
from sparsact.inference.predictors.conformal import level_for_recall
from sparsact.inference.predictors.low_rank import metric, moments, square_root
from sparsact.inference.predictors.predictor import Reads, switch_layer
from sparsact.routing import HyperplaneLSH, hash_generator
from sparsact.validation.parameters import checked_size

HASHES: Final = (2, 3, 4, 6, 8)  # hyperplanes per table that are tried if the number is not given


@dataclass(frozen=True, eq=False)
class LSH:
    r"""The units that share a bucket with the input in at least one of several tables of hyperplane hashes.

    A unit is on where an inner product is large, but hyperplanes meet at angles. One more coordinate gives all
    units the same norm M, the larger inner product is the smaller angle [1]_, [2]_:

    .. math:: \langle w_j, x \rangle + b_j - t_j = \langle (P^{-1/2} w_j,\ \beta_j / \kappa,\ p_j),\
              (P^{1/2} (x - \mu),\ \kappa,\ 0) \rangle, \qquad \|(P^{-1/2} w_j,\ \beta_j / \kappa,\ p_j)\| = M,

    with :math:`\mu` the mean of sample inputs and :math:`\beta_j = b_j - t_j + \langle w_j, \mu \rangle`. The metric P
    is ours: where inputs lie near a subspace, most of a weight's norm meets none, and angles would be near 90 degrees.
    Of all P, that with :math:`P C P = W^T W / s`, C the inputs' covariance, makes the mean squared norms of both sides
    the smallest for the same inner products; likewise :math:`\kappa`. A call has no cost for it, as it is folded into
    the hyperplanes.

    Attributes
    ----------
    router : HyperplaneLSH
        Hyperplanes per table, and tables.
    directions : Tensor of shape (tables, hashes, d + 1)
        The hyperplanes for inputs with a 1 appended.
    codes : Tensor of shape (s, tables), int64
        The bucket of each unit in each table.
    units, starts : Tensor of shape (tables * s,) and (tables * buckets + 1,), int64
        Units of all buckets one after another, and where each bucket begins.
    level : float
        Number of tables, the first ones, that are looked up.

    References
    ----------
    .. [1] A. Shrivastava, P. Li, "Asymmetric LSH (ALSH) for Sublinear Time Maximum Inner Product Search", 2014.
    .. [2] B. Neyshabur, N. Srebro, "On Symmetric and Asymmetric LSHs for Inner Product Search", 2015, Section 4.
    """

    name: ClassVar[str] = "lsh"
    reads: ClassVar[Reads] = "inputs"
    router: HyperplaneLSH
    directions: Tensor
    codes: Tensor
    units: Tensor
    starts: Tensor
    level: float

    @classmethod
    def of(cls, weights: BlockWeights, x: Tensor, *, random_state: int, n_hashes: int, n_tables: int) -> LSH:
        """Tables for the units, scaled by the rows ``x``; all of them looked up."""
        router = HyperplaneLSH(n_hashes, n_tables, random_state)
        units, transform = hash_vectors(weights, x)
        normals = torch.from_numpy(router.initial_state(units.shape[1], rng=hash_generator(random_state))["directions"])
        codes = _buckets(router, units, normals)
        n_buckets = router.width(0)
        tables = torch.arange(n_tables) * 2**n_hashes
        order = (codes + tables).T.flatten().argsort(stable=True)
        counts = torch.bincount((codes + tables).flatten(), minlength=n_buckets)
        starts = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
        directions = (normals @ transform).to(weights.weight.dtype)
        return cls(router, directions, codes, order % len(units), starts, float(n_tables))

    @classmethod
    def fit(
        cls,
        weights: BlockWeights,
        x: Tensor,
        *,
        random_state: int,
        n_hashes: int | None = None,
        n_tables: int = 64,
        recall: float = 0.9,
    ) -> LSH:
        """Up to ``n_tables`` tables; by default with the number of hyperplanes that computes fewest units."""
        checked_size(n_tables, "`n_tables`")
        counts = HASHES if n_hashes is None else (checked_size(n_hashes, "`n_hashes`"),)
        made = [cls.of(weights, x, random_state=random_state, n_hashes=count, n_tables=n_tables) for count in counts]
        return made[0] if len(made) == 1 else min(made, key=lambda one: one._share(weights, x, recall))

    def _share(self, weights: BlockWeights, x: Tensor, recall: float) -> float:
        """Share of the units computed on ``x`` at the recall; all of them if that is out of reach."""
        on, unit_levels = weights.on(weights.pre_activations(x)), self.unit_levels(x)
        level = level_for_recall(unit_levels, on, recall)
        return 1.0 if isinf(level) else float((unit_levels < level).double().mean())

    @property
    def nbytes(self) -> int:
        """The hyperplanes of the tables in use, and all their buckets, of which a call reads some."""
        used = int(self.level)
        return self.directions[:used].nbytes + used * len(self.codes) * self.units.itemsize

    def unit_levels(self, x: Tensor) -> Tensor:
        """Number of the first table in which unit and input meet, counted from 0; infinite if in none."""
        codes = _buckets(self.router, _with_one(x, self.directions), self.directions)
        first = torch.full((len(codes), len(self.codes)), inf)
        for t in reversed(range(self.router.n_tables)):
            first.masked_fill_(codes[:, t, None] == self.codes[:, t], float(t))
        return first

    def with_level(self, level: float) -> LSH:
        """With the first tables only, those numbered below the level."""
        n_tables = self.router.n_tables
        return replace(self, level=float(n_tables if isinf(level) else min(max(ceil(level), 0), n_tables)))

    def active(self, x: Tensor) -> Tensor:
        """Units to compute, (m, s) uint8; all of them for an input that is not finite."""
        used, (s, _) = int(self.level), self.codes.shape
        rows = _with_one(x, self.directions)
        mask = torch.zeros(len(rows), s, dtype=torch.uint8)
        mask[~rows.isfinite().all(1)] = 1
        if not used:
            return mask
        router = replace(self.router, n_tables=used)
        buckets = _buckets(router, rows, self.directions[:used]) + torch.arange(used) * 2**router.n_hashes
        starts = self.starts[buckets].flatten()
        counts = self.starts[buckets + 1].flatten() - starts
        shift = (starts - counts.cumsum(0) + counts).repeat_interleave(counts)
        row = torch.arange(len(rows)).repeat_interleave(used).repeat_interleave(counts)
        mask.view(-1)[row * s + self.units[shift + torch.arange(len(shift))]] = 1
        return mask

    def to_dict(self) -> dict[str, Any]:
        """Hyperplanes per table, and tables in use."""
        return {"predictor": self.name, "n_hashes": self.router.n_hashes, "n_tables": int(self.level)}


def hash_vectors(weights: BlockWeights, x: Tensor) -> tuple[Tensor, Tensor]:
    """Units (s, d + 2) of equal norm, and the map (d + 2, d + 1) from inputs with a 1 to what they meet."""
    W, b, t = switch_layer(weights)
    d = W.shape[1]
    mean, second = moments(x)
    root, inverse = square_root(metric(second - torch.outer(mean, mean), W.T @ W / len(W)))
    seen, offset = W @ inverse, torch.where(t.isfinite(), b - t + W @ mean, 0)  # an infinite one says nothing of angles
    spread, size = seen.square().sum(1).mean().sqrt(), offset.square().mean().sqrt()
    length = ((x.double() - mean) @ root).square().sum(1).mean().sqrt()
    kappa = (size / spread.clamp(min=1e-30) * length).sqrt().clamp(min=1e-6)
    rows = torch.cat([seen, offset[:, None] / kappa], dim=1)
    squares = rows.square().sum(1)
    units = torch.cat([rows, (squares.max() - squares).clamp(min=0).sqrt()[:, None]], dim=1)
    transform = torch.zeros(d + 2, d + 1, dtype=torch.float64)
    transform[:d, :d], transform[:d, d], transform[d, d] = root, -root @ mean, kappa
    return units, transform


def _buckets(router: HyperplaneLSH, rows: Tensor, directions: Tensor) -> Tensor:
    """The bucket of each row in each table, from 0 in every table, (m, tables)."""
    chosen: Tensor = router.select(rows, {"directions": directions}).indices
    return chosen.remainder(2**router.n_hashes)


def _with_one(x: Tensor, directions: Tensor) -> Tensor:
    rows = plain(x).to(directions.dtype)
    return torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1)

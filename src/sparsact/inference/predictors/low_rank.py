"""Pre-activations through a low-rank factorisation, fitted to the second moments of the inputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Final

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 # as torch writes it

from sparsact.inference.block_weights import BlockWeights, plain
from sparsact.inference.predictors.predictor import MarginPredictor, spreads, switch_layer
from sparsact.validation.parameters import checked_size

CHUNK: Final = 1024


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (d,) and second moment E[x x^T] (d, d) in float64, in one pass over ``x`` (m, d) in chunks."""
    d = x.shape[1]
    first, second = torch.zeros(d, dtype=torch.float64), torch.zeros(d, d, dtype=torch.float64)
    for part in torch.split(x, CHUNK):
        rows = part.double()
        first += rows.sum(0)
        second.addmm_(rows.T, rows)
    return first / len(x), second / len(x)


def square_root(second: Tensor) -> tuple[Tensor, Tensor]:
    r"""Symmetric C^{1/2} and its pseudo-inverse, of a positive semidefinite C; null directions stay null.

    Eigenvalues below d times the rounding error of the largest count as null.
    """
    values, vectors = torch.linalg.eigh(second)
    least = values[-1].clamp(min=0) * len(values) * torch.finfo(torch.float32).eps ** 2
    roots = values.clamp(min=0).sqrt() * (values > least)
    inverse = torch.where(roots > 0, 1 / roots, torch.zeros_like(roots))
    return (vectors * roots) @ vectors.T, (vectors * inverse) @ vectors.T


def metric(inputs: Tensor, units: Tensor) -> Tensor:
    r"""The P with :math:`P C P = M`, of second moments C of inputs and M of weights, (d, d) each.

    It minimises :math:`\mathbb{E}\|P^{1/2} x\|^2 \, \mathbb{E}\|P^{-1/2} w\|^2`, with the minimum
    :math:`(\operatorname{tr} (C^{1/2} M C^{1/2})^{1/2})^2`: both factors then have the same second moment, as in
    a balanced realisation [1]_. Directions that inputs or weights lack are null.

    References
    ----------
    .. [1] B. Moore, "Principal component analysis in linear systems", 1981.
    """
    root, inverse = square_root(inputs)
    middle, _ = square_root(root @ units @ root)
    product = inverse @ middle @ inverse
    return (product + product.T) / 2


@dataclass(frozen=True, eq=False)
class LowRank(MarginPredictor):
    r"""Units whose pre-activation is not far below its threshold, as an affine map of rank r estimates it.

    Unit j is computed if :math:`(A B x)_j + c_j > t_j - \lambda \sigma_j`. Of all affine maps of rank r this one has
    the smallest mean square error on the sample: with mean :math:`\mu` and covariance C,

    .. math:: \min_{A, B, c} \mathbb{E} \|W x + b - A B x - c\|^2 = \min_{A B} \|(W - A B) C^{1/2}\|_F^2
              \quad \text{at} \quad c = b + (W - A B) \mu,

    and :math:`A B C^{1/2}` is the truncated singular value decomposition of :math:`W C^{1/2}` [1]_. Trained
    predictors of rank r before the layers of a language model are due to [2]_; this one has a closed form.

    Attributes
    ----------
    A, B : Tensor of shape (s, r) and (r, d)
        The factors.
    bias, threshold, spread : Tensor of shape (s,)
        c, t, and the root mean square error sigma of the map on sample inputs.
    level : float
        The margin lambda, in units of sigma.

    Notes
    -----
    A call costs r (d + s) multiplications. Fitting costs an eigendecomposition of (d, d) twice.

    References
    ----------
    .. [1] C. Eckart, G. Young, "The approximation of one matrix by another of lower rank", 1936.
    .. [2] Z. Liu et al., "Deja Vu: Contextual Sparsity for Efficient LLMs at Inference Time", 2023, Section 4.
    """

    name: ClassVar[str] = "low_rank"
    A: Tensor
    B: Tensor
    bias: Tensor
    threshold: Tensor
    spread: Tensor
    level: float = inf

    @classmethod
    def fit(cls, weights: BlockWeights, x: Tensor, *, random_state: int, rank: int | None = None) -> LowRank:
        """The best map for the rows ``x``, of rank d / 16 by default (at most d and s). Its level is to be set."""
        d, s, _ = weights.sizes
        r = min(d, s, max(1, d // 16) if rank is None else checked_size(rank, "`rank`"))
        W, b, _ = switch_layer(weights)
        mean, second = moments(x)
        root, inverse = square_root(second - torch.outer(mean, mean))
        seen = W @ root
        directions = torch.linalg.eigh(seen.T @ seen).eigenvectors[:, -r:]  # right singular vectors of W C^{1/2}
        A, B = seen @ directions, directions.T @ inverse
        bias = b + (W - A @ B) @ mean
        dtype = weights.weight.dtype
        made = cls(A.to(dtype), B.to(dtype), bias.to(dtype), weights.threshold, weights.threshold)
        return replace(made, spread=spreads(made.scores(x), weights.pre_activations(x)))

    @property
    def nbytes(self) -> int:
        """Bytes of both factors, and of three numbers per unit."""
        return sum(array.nbytes for array in (self.A, self.B, self.bias, self.threshold, self.spread))

    def scores(self, x: Tensor) -> Tensor:
        """A B x + c for each row."""
        return F.linear(F.linear(plain(x).to(self.B.dtype), self.B), self.A, self.bias)

    def margins(self, x: Tensor) -> Tensor:
        """:meth:`scores` minus thresholds."""
        return self.scores(x) - self.threshold

    def to_dict(self) -> dict[str, Any]:
        """The rank and the margin."""
        return {"predictor": self.name, "rank": self.B.shape[0], "level": self.level}

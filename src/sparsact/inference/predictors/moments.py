"""First and second moments of inputs: what a linear layer can see of them."""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK = 1024


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (d,) and second moment E[x x^T] (d, d) in float64, in one pass over pieces of ``x`` (m, d)."""
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

    It makes :math:`\mathbb{E}\|P^{1/2} x\|^2 \, \mathbb{E}\|P^{-1/2} w\|^2` least, at
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

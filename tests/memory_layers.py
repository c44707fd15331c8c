"""Memories with rows that are not 0, and inputs for them."""

from __future__ import annotations

import torch

from sparsact.layers import HashMemory, ProductKeyMemory

d = 6


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def texts(*shape, seed=0, high=9):
    return torch.randint(high, shape, generator=seeded(seed))


def states(*shape, seed=1):
    return torch.randn(*shape, d, generator=seeded(seed))


def filled(layer):
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, generator=seeded(5))
    return layer


def hashing(n_slots=200, **options):
    return filled(HashMemory(n_slots, d, generator=seeded(2), **options))


def products(n_keys=5, n_active=3, n_heads=2, **options):
    return filled(ProductKeyMemory(n_keys, d, n_active, n_heads, generator=seeded(2), **options))


BOTH = {
    "n-grams": lambda **options: (hashing(**options), texts(3, 8), {"context": states(3, 8)}),
    "product keys": lambda **options: (products(**options), states(3, 8), {}),
}

"""Numbers as no model has them, for bounds that must hold for all."""

from __future__ import annotations

import numpy as np
import torch

LARGEST, TINY = 3.4e38, 1.4e-45


def hostile(rng, shape, kind):
    """Numbers as no model has them."""
    normal = rng.normal(size=shape)
    scales = 10.0 ** rng.uniform(-44, 38, size=shape)
    values = {
        "normal": normal,
        "spread": np.sign(normal) * scales,
        "huge": np.sign(normal) * LARGEST,
        "denormal": np.sign(normal) * TINY * rng.integers(0, 9, size=shape),
        "integers": rng.integers(-2, 3, size=shape) * 1.0,
        "outliers": normal * np.where(rng.random(shape) < 0.1, 1e4, 1),
        "common": 1 + 1e-3 * normal,
        "zero": np.zeros(shape),
    }[kind]
    return torch.from_numpy(np.clip(values, -LARGEST, LARGEST).astype(np.float32))


KINDS = ["normal", "spread", "huge", "denormal", "integers", "outliers", "common", "zero"]

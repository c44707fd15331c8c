"""Tables of six bits and a function of them."""

import numpy as np
import pyarrow as pa

NAMES = tuple("abcdef")


def bits(m=300, seed=1):
    return np.random.default_rng(seed).integers(0, 2, (m, len(NAMES)))


def signal(X):
    s = 1 - 2 * X
    return s[:, 0] + 2 * s[:, 1] * s[:, 2] - s[:, 3]


def table(X, **columns):
    return pa.table({name: X[:, i] for i, name in enumerate(NAMES)} | columns)

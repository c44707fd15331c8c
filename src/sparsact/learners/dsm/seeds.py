"""Streams of random numbers of one model, none of which is that of a data generator with the same seed."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

_STREAMS = ("bottom", "router", "top", "order")


def entropy(random_state: int | np.random.RandomState | None) -> tuple[int, ...]:
    """What all streams of a model follow from; scikit-learn's None means a fresh one, not the global state."""
    if random_state is None:
        return tuple(int(word) for word in np.random.SeedSequence().generate_state(4))
    return tuple(check_random_state(random_state).randint(2**31 - 1, size=4).tolist())


def stream(seed: tuple[int, ...], name: str, place: int = 0) -> np.random.Generator:
    """The generator of one purpose; ``place`` numbers those of the same name."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAMS.index(name), place)))

"""Random numbers of a hash, apart from those of the data that is hashed."""

from __future__ import annotations

import numpy as np

# The branch of every seed's tree that hashes draw from. `Generator.spawn` counts its branches from 0.
HASHING = int.from_bytes(b"hash", "big")


def hash_generator(seed: int) -> np.random.Generator:
    """Generator that a hash with this seed draws from, independent of ``numpy.random.default_rng(seed)``.

    Data that was drawn with seed 0 and then hashed with directions of seed 0 would be hashed by its own values.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(HASHING,)))

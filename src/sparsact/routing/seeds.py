"""Generators for hash functions."""

from __future__ import annotations

import numpy as np

HASHING = 0x5A5  # a branch of the seed's tree that no caller's own generator stands on


def hash_generator(seed: int) -> np.random.Generator:
    """A generator for hash functions, never in step with ``numpy.random.default_rng(seed)``.

    Data drawn from a seed and hash functions drawn from the same number would else be the same normal deviates.

    Parameters
    ----------
    seed : int
        Any whole number from 0.

    Returns
    -------
    rng : numpy.random.Generator
        The same one for the same seed.

    Examples
    --------
    >>> float(hash_generator(0).normal()) == float(np.random.default_rng(0).normal())
    False
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(HASHING,)))

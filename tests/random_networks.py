"""Random networks of every kind of weights, for tests."""

from sparsact.network import SparselyActivatedNetwork

KINDS = ("integers", "eighths", "tenths", "reals", "wide", "faint", "far", "subnormal", "enormous", "alike")


def random_network(kind, s, n, rng):
    """Random weights with many ties, and thresholds low enough that units are on somewhere."""
    W, b = rng.integers(-3, 4, (s, n)).astype(float), rng.integers(-2, 5, s).astype(float)
    if kind == "eighths":
        W, b = W / 8, b / 8
    if kind == "tenths":  # 0.1 + 0.2 is not 0.3: rounding decides signs wrongly
        W, b = W * 0.1, b * 0.1
    if kind == "reals":
        W, b = rng.normal(size=(s, n)), rng.normal(size=s) + 1
    if kind == "wide":  # a million steps of the smallest: beyond what a solver's tolerance can tell
        W, b = W * 1e6 + rng.integers(-1, 2, (s, n)), b * 1e6
    if kind == "faint":  # weights that a solver would drop
        W, b = rng.choice([1e-12, 1.0, -1.0, -1e-12, 0.0], (s, n)), rng.choice([0, 1.0, 1e-12], s)
    if kind == "far":  # more digits apart than two float64 hold together
        W, b = rng.choice([1e-45, 1.0, -1.0, -1e-45, 0.0], (s, n)), rng.choice([0, 1.0, 1e-45], s)
    if kind == "subnormal":
        W, b = W * 5e-324, b * 5e-324
    if kind == "enormous":
        W, b = W * 1e306, b * 1e306
    if kind == "alike":
        W = W[:, rng.integers(0, min(2, n), n)] * rng.choice([-1, 1], n)
    return SparselyActivatedNetwork(rng.normal(size=s), W, b)

"""Every router, with inputs that fit it, as NumPy arrays and as torch tensors."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from sparsact import routing
from sparsact.routing.array_functions import Array, namespace, ones
from sparsact.routing.router import State

D, M = 6, 37


@dataclass(frozen=True)
class BySign(routing.Router):
    """One of two units, by the sign of a column: a router that the library lacks, with all that one must have."""

    name: ClassVar[str] = "by_sign"
    column: int = 0

    def width(self, in_features: int) -> int:
        return 2

    def select(self, x: Array, state: State, *, training: bool = False) -> routing.Selection:
        units = namespace(x).astype(x[:, self.column, None] > 0, namespace(x).int64)
        return routing.Selection.of(units, ones(tuple(units.shape), x), 2)

    def flops(self, in_features: int) -> int:
        return 1


ROUTERS = [
    routing.TopK(2),
    routing.TopK(3, absolute=True),
    routing.HyperplaneLSH(3, n_tables=2, random_state=1),
    routing.EuclideanLSH(4, 1.5, n_tables=3, n_buckets=11, random_state=2),
    routing.RandomHash(3, 7, random_state=3),
    routing.NGramHash(60, ngram=(1, 3), n_hashes=2, random_state=4),
    routing.ProductKeys(4, 5),
    routing.ProductKeys(3, 2, n_heads=3, random_state=4),
    routing.Switch(4, capacity_factor=0.75, eval_capacity_factor=1.0, z_loss=0.001),
    routing.SoftmaxTopK(6, 3, capacity_factor=0.75, eval_capacity_factor=1.0),
    routing.SoftmaxTopK(5, 2, normalise="all", priority="arrival", capacity_factor=1.0),
    routing.SigmoidTopK(6, 2, load_balance=0.5, z_loss=0.25, scale=2.5),
    routing.SoftmaxTopK(5, 2, group_size=8, capacity_factor=0.75, eval_capacity_factor=1.0),
    routing.ExpertChoice(4, capacity_factor=1.5),
    routing.HashTable(9, 4, 2, random_state=5),
    routing.LearnedLSH(3, n_tables=2, random_state=1),
    routing.BlockTop1(3, 4, rank=2),
    routing.Nearest(2, n_centres=6),
    routing.Interpolation(n_points=8),
    routing.Tree(3),
    BySign(1),
]
# A router without a record above is tested by its record in docs/routers.toml.
_RECORDS = tomllib.loads((Path(__file__).parents[1] / "docs" / "routers.toml").read_text(encoding="utf-8"))["router"]
_TESTED = {type(router).__name__ for router in ROUTERS}
ROUTERS += [routing.from_dict(one["record"]) for one in _RECORDS if one["kind"] not in _TESTED]
KINDS = [(np, "float32"), (np, "float64"), (torch, "float32"), (torch, "float64")]


def inputs(m: int = M, d: int = D, seed: int = 0) -> np.ndarray:
    """Numbers on a grid of 1 / 64: products of them with such numbers are exact in single precision."""
    return np.round(64 * np.random.default_rng(seed).standard_normal((m, d))) / 64


def state_of(router: routing.Router, d: int = D, seed: int = 1) -> dict[str, np.ndarray]:
    """A state on the same grid; some inputs are points of an interpolation."""
    fresh = router.initial_state(d, rng=np.random.default_rng(seed))
    state = {name: np.round(64 * values) / 64 for name, values in fresh.items()}
    if isinstance(router, routing.Interpolation):
        state["points"][:3] = inputs()[[4, 1, 30]]
    return state


def made(array: np.ndarray, kind: tuple[object, str]) -> object:
    """The array as one of a kind."""
    library, dtype = kind
    array = array.astype(dtype)
    return torch.tensor(array) if library is torch else array


def plain(array: object) -> np.ndarray:
    """Any array as one of NumPy."""
    return array.detach().cpu().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)

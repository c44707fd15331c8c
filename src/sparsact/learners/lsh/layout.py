"""What an LSH model chooses once, from its first rows, and keeps: hashes, local coordinates, trend, units."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.kernels.bucket_statistics import n_features, n_sums
from sparsact.kernels.hashing import Hashes
from sparsact.saving.schema import ArrayField, check_array, read_arrays

Array = NDArray[np.float64]
MAX_POSITIONS = 64  # coordinates of the mean position of a bucket's rows, where its polynomial is a constant
MAX_LOCAL = 8  # local coordinates: a cube of p sides has 2**p corners, and rows to fill them grow with it

_ARRAYS = {
    "centre": ArrayField("d", finite=True),
    "local": ArrayField("d p", finite=True),
    "directions": ArrayField("side codes", finite=True),
    "offsets": ArrayField("codes", finite=True),
    "seeds": ArrayField("tables", np.uint64),
    "trend": ArrayField("d T", finite=True),
    "level": ArrayField("T", finite=True),
    "unit": ArrayField("T", finite=True),
}


@dataclass(frozen=True)
class Layout:
    """The frozen part of a table of buckets: two tables can be merged if and only if theirs are the same.

    Attributes
    ----------
    hashes : Hashes
        Centre, local coordinates, directions, offsets and seeds of the hash functions.
    degree : int
        Degree of the polynomial in each bucket.
    trend : (d, targets)
        Slopes of the linear function that is taken off the targets first.
    level, unit : (targets,)
        Targets are stored as ``(y - level - (x - centre) @ trend) / unit``.
    """

    hashes: Hashes
    degree: int
    trend: Array
    level: Array
    unit: Array

    @property
    def n_tables(self) -> int:
        """Number of hash tables."""
        return len(self.hashes.seeds)

    @property
    def n_hashes(self) -> int:
        """Codes of one table."""
        return int(self.hashes.directions.shape[1]) // self.n_tables

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return len(self.hashes.centre)

    @property
    def n_local(self) -> int:
        """Local coordinates."""
        return int(self.hashes.local.shape[1])

    @property
    def n_targets(self) -> int:
        """Columns of Y."""
        return len(self.level)

    @property
    def n_features(self) -> int:
        """Coefficients of a bucket's polynomial."""
        return n_features(self.n_local, self.degree)

    @property
    def n_sums(self) -> int:
        """Sums of a bucket."""
        return n_sums(self.n_local, self.degree, self.n_targets)

    def residual(self, X: Array, Y: Array) -> Array:
        """Targets in the table's own units: without level and trend."""
        return np.ascontiguousarray((Y - self.level - (X - self.hashes.centre) @ self.trend) / self.unit)

    def differences(self, other: Layout) -> list[str]:
        """Names of the parts in which another layout is not the same."""
        mine, theirs = self.arrays(), other.arrays()
        return [name for name in mine if not np.array_equal(mine[name], theirs[name])]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every part as an array, for files and comparison."""
        plain = {"grid": self.hashes.grid, "signs": self.hashes.signs, "degree": self.degree}
        parts = {name: np.asarray(part) for name, part in self.hashes._asdict().items() if name not in plain}
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("hashes", "degree")}
        return parts | own | {name: np.array([value], dtype=np.int64) for name, value in plain.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Layout:
        """The layout that :meth:`arrays` took apart."""
        grid, signs, degree = (
            int(check_array(arrays, name, np.int64, (1,))[0]) for name in ("grid", "signs", "degree")
        )
        d, p = arrays["local"].shape
        read = read_arrays(_ARRAYS, arrays, d=d, p=p, side=p if grid else d)
        n_tables, codes = len(read["seeds"]), len(read["offsets"])
        if not n_tables or codes % n_tables or not codes or (grid and codes != p * n_tables) or degree not in (0, 1, 2):
            raise ValueError("the hash functions do not fit together")
        if n_sums(p, degree, len(read["level"])) > 2**24:
            raise ValueError("a bucket holds too many sums")
        own = {name: read.pop(name) for name in ("trend", "level", "unit")}
        return cls(Hashes(**read, grid=bool(grid), signs=bool(signs)), degree, **own)


def random_rotation(p: int, rng: np.random.Generator) -> Array:
    """A rotation or reflection of R^p, uniform (Haar)."""
    Q, R = np.linalg.qr(rng.normal(size=(p, p)))
    rotation: Array = Q * np.sign(np.diag(R))
    return rotation


def grid_hashes(centre: Array, local: Array, width: float, n_tables: int, rng: np.random.Generator) -> Hashes:
    """Randomly rotated and shifted grids of cubes of side ``width`` in the local coordinates."""
    p = local.shape[1]
    rotations = np.concatenate([random_rotation(p, rng) for _ in range(n_tables)], axis=1)
    return Hashes(
        centre, local, _scaled(rotations, width), rng.random(n_tables * p), _seeds(n_tables, rng), True, False
    )


def euclidean_hashes(
    centre: Array, local: Array, width: float, n_hashes: int, n_tables: int, rng: np.random.Generator
) -> Hashes:
    """Codes floor((<a, x> + b) / width), a standard normal in R^d and b uniform on [0, width] (Datar et al., 2004).

    Codes are those of x - centre: the centre's share joins b, which is uniform modulo the width all the same.
    """
    directions = _scaled(rng.normal(size=(len(centre), n_tables * n_hashes)), width)
    offsets = rng.random(n_tables * n_hashes)
    return Hashes(centre, _scaled(local, width), directions, offsets, _seeds(n_tables, rng), False, False)


def hyperplane_hashes(centre: Array, local: Array, n_hashes: int, n_tables: int, rng: np.random.Generator) -> Hashes:
    """Sign patterns of standard normal directions: hyperplanes through the origin of X (Section 2.2)."""
    directions = rng.normal(size=(len(centre), n_tables * n_hashes))
    return Hashes(centre, local, directions, centre @ directions, _seeds(n_tables, rng), False, True)


def _scaled(directions: Array, width: float) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: Array = directions / width
    if not np.isfinite(scaled).all():
        raise ValueError(f"`bucket_width`={width:g} has no inverse among the floats; raise it.")
    return scaled


def _seeds(n_tables: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    return rng.integers(0, 2**64, n_tables, dtype=np.uint64)

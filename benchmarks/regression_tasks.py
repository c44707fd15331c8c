"""Tables of numbers for regression: measured ones by their own folds, and functions of physics and geometry.

A generated table is drawn anew for each fold, from a seed that no choice of the library was made with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from sparsact_papers.data import LowerEnvelope, load_tabular, random_subspace

Array = NDArray[np.float64]
SEED: Final = 2_901  # of the generated tables
TEST_ROWS: Final = 5_000
FOLDS: Final = 10  # of whole groups, as the measured tables have of rows


def robot_arm(m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Torque at the shoulder of a planar arm of two links: angles, velocities and accelerations of both joints.

    Rigid bodies in gravity (Spong, Hutchinson and Vidyasagar, Robot Modeling and Control, 2006, section 7.3).
    """
    length, middle, mass, inertia = 1.0, 0.5, (2.0, 1.5), (0.17, 0.12)
    X = rng.uniform(-1, 1, (m, 6)) * (np.pi / 2, 2.5, 2, 2, 5, 5)
    q1, q2, v1, v2, a1, a2 = X.T
    coupled = mass[1] * (middle**2 + length * middle * np.cos(q2)) + inertia[1]
    own = mass[0] * middle**2 + inertia[0] + mass[1] * length * (length + middle * np.cos(q2)) + coupled
    coriolis = -mass[1] * length * middle * np.sin(q2) * (2 * v1 * v2 + v2**2)
    lever = (mass[0] * middle + mass[1] * length) * np.cos(q1) + mass[1] * middle * np.cos(q1 + q2)
    return X, own * a1 + coupled * a2 + coriolis + 9.81 * lever


def swiss_roll(m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A wave on a rolled sheet in three of fifty dimensions, rotated; a little noise in every one."""
    angle, height = rng.uniform(1.5 * np.pi, 4.5 * np.pi, m), rng.uniform(0, 21, m)
    sheet = np.column_stack((angle * np.cos(angle), height, angle * np.sin(angle)))
    frame = np.linalg.qr(rng.normal(size=(50, 3)))[0]
    y = np.sin(angle / 1.5) + 0.1 * angle * np.cos(height / 4)
    return sheet @ frame.T + 0.05 * rng.normal(size=(m, 50)), y


def terrain(m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Heights at points of a square: waves of up to 12 periods whose amplitudes fall off as k^-2; 1 % of noise."""
    X = rng.uniform(0, 1, (m, 2))
    size, way = 12 ** rng.uniform(0, 1, 300), rng.uniform(0, np.pi, 300)
    waves = 2 * np.pi * size * np.array([np.cos(way), np.sin(way)])
    y = np.cos(X @ waves + rng.uniform(0, 2 * np.pi, 300)) @ (size**-2.0 * rng.normal(size=300))
    return X, y + 0.01 * y.std() * rng.normal(size=m)


def smooth_12(m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """A Gaussian process on [-1, 1]^12 in which all columns matter alike, by 500 random waves; 1 % of noise."""
    X = rng.uniform(-1, 1, (m, 12))
    waves = rng.normal(size=(12, 500)) / 1.2
    y = np.cos(X @ waves + rng.uniform(0, 2 * np.pi, 500)) @ rng.normal(size=500)
    return X, y + 0.01 * y.std() * rng.normal(size=m)


def photovoltaics(m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Power of a tilted panel from the sun's place, irradiances, air and wind, limited by its inverter; 1 % of noise.

    Isotropic sky and the cell temperature of Faiman (Progress in Photovoltaics 16:307, 2008).
    """
    elevation, azimuth = np.radians(rng.uniform(3, 65, m)), np.radians(rng.uniform(-110, 110, m))
    clear = rng.beta(2, 1.5, m)
    direct = 950 * clear * np.exp(-0.14 / np.sin(elevation))
    diffuse = (60 + 250 * (1 - clear) * np.sin(elevation)) * rng.uniform(0.7, 1.3, m)
    air, wind = rng.normal(15, 9, m), rng.gamma(2, 1.5, m)
    tilt = np.radians(35)
    incidence = np.cos(tilt) * np.sin(elevation) + np.sin(tilt) * np.cos(elevation) * np.cos(azimuth)
    whole = direct * np.sin(elevation) + diffuse
    panel = direct * np.maximum(incidence, 0) + diffuse * (1 + np.cos(tilt)) / 2 + 0.2 * whole * (1 - np.cos(tilt)) / 2
    cell = air + panel / (25 + 6.84 * wind)
    power = np.minimum(panel * (1 - 0.004 * (cell - 25)), 750)
    X = np.column_stack((elevation, azimuth, direct, diffuse, air, wind))
    return X, power + 0.01 * power.std() * rng.normal(size=m)


def noisy_photovoltaics(m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The same beside 194 columns of noise."""
    X, y = photovoltaics(m, rng)
    return np.column_stack((X, rng.normal(size=(m, 194)))), y


def cones(m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """min_j (|z - c_j| + h_j), 64 cones on a subspace of 4 dimensions in 64: exactly 1-Lipschitz, as in paper B."""
    domain = random_subspace(64, 4, rng=rng)
    f = LowerEnvelope(domain.coordinates(domain.sample(64, rng=rng)), rng.uniform(0, 0.5, 64))
    X = domain.sample(m, rng=rng)
    return X, f(domain.coordinates(X))


@dataclass(frozen=True)
class RegressionTable:
    """Where rows come from, what is asked of ours, and how many principal directions its rivals are given."""

    kind: str  # "smooth" in 8 directions at most, "wide", or "tabular"
    draw: Callable[[int, np.random.Generator], tuple[Array, Array]] | None = None  # None: measured
    m: int = 0
    components: int | None = None
    groups_of: str = ""  # a measured table; its first column numbers groups, and whole groups are left out


TABLES: Final = {
    "airfoil": RegressionTable("tabular"),
    "parkinsons": RegressionTable("tabular"),
    "parkinsons, new patients": RegressionTable("tabular", groups_of="parkinsons"),
    "terrain, 2-d": RegressionTable("smooth", terrain, 20_000),
    "swiss roll in 50-d": RegressionTable("smooth", swiss_roll, 10_000, 3),
    "robot arm": RegressionTable("smooth", robot_arm, 20_000),
    "photovoltaics": RegressionTable("smooth", photovoltaics, 20_000),
    "elevators": RegressionTable("tabular"),
    "bike": RegressionTable("tabular"),
    "pol": RegressionTable("tabular"),
    "smooth, 12-d": RegressionTable("wide", smooth_12, 20_000),
    "kin40k": RegressionTable("smooth"),
    "cones": RegressionTable("smooth", cones, 65_536, 4),
    "photovoltaics + 194": RegressionTable("smooth", noisy_photovoltaics, 20_000),
}


@dataclass(frozen=True)
class RegressionTask:
    """A fold of a table."""

    table: str
    fold: int
    most: int | None = None  # rows to learn from, for quick runs

    def split(self, *, reduced: bool) -> tuple[Array, Array, Array, Array]:
        """Rows and targets to learn from, and new ones, all standardised by the former.

        ``reduced`` keeps the principal directions alone, where the table names their number: the rivals are favoured.
        """
        X, y, new, truth = _split(self.table, self.fold)
        X, y = X[: self.most], y[: self.most]
        X, new, y, truth = *_standard(X, new), *_standard(y, truth)
        if reduced and (components := TABLES[self.table].components):
            pca = PCA(components, random_state=0).fit(X)
            X, new = pca.transform(X), pca.transform(new)
        return X, y, new, truth


@cache
def _split(name: str, fold: int) -> tuple[Array, Array, Array, Array]:
    table = TABLES[name]
    if table.groups_of:
        data = load_tabular(table.groups_of)
        numbers, group = np.unique(data.X[:, 0], return_inverse=True)
        test = np.random.default_rng(SEED).permutation(len(numbers))[group] % FOLDS == fold
        return data.X[~test, 1:], data.y[~test], data.X[test, 1:], data.y[test]
    if table.draw is None:
        data = load_tabular(name)
        test = data.test_masks[fold]
        return data.X[~test], data.y[~test], data.X[test], data.y[test]
    X, y = table.draw(table.m + TEST_ROWS, np.random.default_rng([SEED, fold]))
    return X[: table.m], y[: table.m], X[table.m :], y[table.m :]


def _standard(rows: Array, new: Array) -> tuple[Any, Any]:
    centre, deviation = rows.mean(axis=0), rows.std(axis=0)
    unit = np.where(deviation > 0, deviation, 1.0)
    return (rows - centre) / unit, (new - centre) / unit

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
TIES: Final = {
    "seen": "test rows whose inputs are learned from",
    "neighbours": "test rows that differ from one in a column at most",
    "runs": "runs of equal values of a column, beyond chance",
    "order": "correlation of a target with that of the row before",
}  # what ties test rows to those learned from, in words


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

    kind: str  # "smooth" in 8 directions at most, "wide", "tabular", or "held out": no choice was made with it
    draw: Callable[[int, np.random.Generator], tuple[Array, Array]] | None = None  # None: measured
    m: int = 0
    components: int | None = None
    source: str = ""  # a measured table under another name
    group: tuple[int, ...] = ()  # its columns that tell groups apart; whole groups are left out
    names: bool = False  # whether these columns are names, which are left out too


TABLES: Final = {
    "airfoil": RegressionTable("tabular"),
    "airfoil, new settings": RegressionTable("tabular", source="airfoil", group=tuple(range(1, 5))),
    "parkinsons": RegressionTable("tabular"),
    "parkinsons, new patients": RegressionTable("tabular", source="parkinsons", group=(0,), names=True),
    "terrain, 2-d": RegressionTable("smooth", terrain, 20_000),
    "swiss roll in 50-d": RegressionTable("smooth", swiss_roll, 10_000, 3),
    "robot arm": RegressionTable("smooth", robot_arm, 20_000),
    "photovoltaics": RegressionTable("smooth", photovoltaics, 20_000),
    "elevators": RegressionTable("tabular"),
    "bike": RegressionTable("tabular"),
    "bike, new days": RegressionTable("tabular", source="bike", group=(0, 1, 2)),
    "pol": RegressionTable("tabular"),
    "smooth, 12-d": RegressionTable("wide", smooth_12, 20_000),
    "kin40k": RegressionTable("smooth"),
    "cones": RegressionTable("smooth", cones, 65_536, 4),
    "photovoltaics + 194": RegressionTable("smooth", noisy_photovoltaics, 20_000),
    "concrete": RegressionTable("held out"),
    "concrete, new mixes": RegressionTable("held out", source="concrete", group=tuple(range(7))),
    "pumadyn32nm": RegressionTable("held out"),
    "sml": RegressionTable("held out"),
    "sml, new days": RegressionTable("held out", source="sml", group=(0, 1)),
    "gas": RegressionTable("held out"),
    "keggdirected": RegressionTable("held out"),
    "keggdirected, new inputs": RegressionTable("held out", source="keggdirected", group=tuple(range(20))),
    "protein": RegressionTable("held out"),
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

    @property
    def is_measured(self) -> bool:
        """Whether the rows were measured, not drawn."""
        return TABLES[self.table].draw is None

    def leaks(self) -> dict[str, float]:
        """What ties the test rows of a measured table to those learned from; see :func:`leaks_of`."""
        return leaks_of(*_measured(self.table, self.fold))


def leaks_of(X: Array, y: Array, test: NDArray[np.bool_]) -> dict[str, float]:
    """How test rows (m,) of a table are tied to the others, by which a mean over them may be too good.

    ``seen`` is the share of test rows whose columns all stand together in another row; ``neighbours`` the largest share
    where one column, ``but``, may differ. ``runs`` says how much more often than in random order two rows in sequence
    share a value of a column, ``of``, the one with most: 0 in random order, 1 where it is constant. ``order`` is the
    correlation of the target with that of the row before.
    """
    rng = np.random.default_rng(SEED)
    codes = [np.unique(column, return_inverse=True)[1] for column in X.T]
    tags = np.stack([rng.integers(2**64, size=len(X), dtype=np.uint64)[code] for code in codes])
    whole: NDArray[np.uint64] = tags.sum(axis=0)  # a row's fingerprint; less a tag, that of its other columns

    def seen(keys: NDArray[np.uint64]) -> float:
        return float(np.isin(keys[test], keys[~test]).mean())

    but_one = [seen(whole - tag) for tag in tags]
    alike = [float(np.mean((np.bincount(code) / len(X))[code])) for code in codes]
    runs = [
        (np.mean(code[1:] == code[:-1]) - by) / (1 - by) if by < 1 else 0.0
        for code, by in zip(codes, alike, strict=True)
    ]
    but, of = int(np.argmax(but_one)), int(np.argmax(runs))
    order = float(np.corrcoef(y[1:], y[:-1])[0, 1])
    return {
        "seen": seen(whole),
        "neighbours": but_one[but],
        "but": but,
        "runs": float(runs[of]),
        "of": of,
        "order": order,
    }


@cache
def _split(name: str, fold: int) -> tuple[Array, Array, Array, Array]:
    table = TABLES[name]
    if table.draw is None:
        X, y, test = _measured(name, fold)
        return X[~test], y[~test], X[test], y[test]
    X, y = table.draw(table.m + TEST_ROWS, np.random.default_rng([SEED, fold]))
    return X[: table.m], y[: table.m], X[table.m :], y[table.m :]


def _measured(name: str, fold: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Rows and targets of a measured table, and which of them are tested on."""
    table = TABLES[name]
    data = load_tabular(table.source or name)
    if not table.group:
        return data.X, data.y, data.test_masks[fold]
    found, group = np.unique(data.X[:, table.group], axis=0, return_inverse=True)
    test = np.random.default_rng(SEED).permutation(len(found))[group.ravel()] % FOLDS == fold
    return np.delete(data.X, table.group, axis=1) if table.names else data.X, data.y, test


def _standard(rows: Array, new: Array) -> tuple[Any, Any]:
    centre, deviation = rows.mean(axis=0), rows.std(axis=0)
    unit = np.where(deviation > 0, deviation, 1.0)
    return (rows - centre) / unit, (new - centre) / unit

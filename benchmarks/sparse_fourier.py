"""Significant terms among up to 170 million: terms found, false terms and time, compared with other estimators.

The kernel runs over all pairs and triples of 1,000 columns, packing included. The learner fits planted data at level
0.05. Its detection limit is (tau + 1.64) sigma / sqrt(m). Targets with uniform columns and terms of at least 1.2 times
the limit: at most 5 % of the runs miss a term or have a false one. Targets with columns that are correlated by 0.5,
biased, or both, and terms of at least the limit: at most 7 % of the runs have a false term, and 95 % of the terms above
1.5 times the limit are found. Seconds are CPU time on one thread; the table shows their targets. Memory is the peak of
a fit in a fresh process, with its rows.

The other estimators read a matrix of all monomials: scikit-learn's pursuit (given the true number of terms) and lasso,
skglm's MCP, and LightGBM, whose exact spectrum is cut to its largest terms and refitted (as in ProxySPEX). The last two
run if they are installed; they choose on a quarter of the rows. Errors are on fresh rows, over the variance of the
target without noise.
"""

from __future__ import annotations

from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LassoCV, LinearRegression, OrthogonalMatchingPursuit

from benchmarks.figures import CallSeconds, Check, Figure
from benchmarks.harness import alone, timed
from benchmarks.opponents import random_signs
from benchmarks.program import option, program
from sparsact import SparseFourierRegressor
from sparsact.hypercube import Subset, characters, n_subsets, subset_masks, subsets_of
from sparsact.kernels.monomial_scan import MonomialTable, quantised, strongest_monomials
from sparsact.learners.points import pack
from sparsact.memory import peak_memory

Array = NDArray[np.float64]
Rows = NDArray[np.int8]

BARS: Final = {(2, 10_000): 0.15, (2, 20_000): 0.3, (3, 10_000): 12.0, (3, 20_000): 25.0}  # seconds by degree and rows
CORRELATED: Final = ("biased", "chain", "blocks", "equal", "chain, biased", "blocks, biased")
FAMILIES: Final[list[Any]] = [  # law of the columns, n, degree, m, terms, least size in limits, seconds
    ("uniform", 60, 3, 5_000, 12, 1.2, 0.1),
    ("uniform", 200, 3, 20_000, 50, 1.2, 6.0),
    ("uniform", 1_000, 2, 20_000, 40, 1.2, 5.0),
    *((law, 60, 3, 5_000, 12, 1.0, None) for law in CORRELATED),
    *((law, 150, 2, 3_000, 20, 1.0, None) for law in CORRELATED),
]
LARGE: Final = ("uniform", 1_000, 3, 20_000, 20, 3.0, 60.0)
COMPARED: Final = ("uniform", "chain", "biased", "junta", "many small terms", "trees")


def rows(law: str, m: int, n: int, rng: np.random.Generator) -> Rows:
    """Signs (m, n) of normal variables: neighbours, blocks of ten or all correlated by .5; cut at 0 or biased."""
    normal, share = rng.standard_normal((m, n)), 0.5**0.5  # sin(pi / 4): signs then correlate by .5
    if law.startswith("chain"):
        for i in range(1, n):
            normal[:, i] = share * normal[:, i - 1] + (1 - share**2) ** 0.5 * normal[:, i]
    if law.startswith(("blocks", "equal")):
        size = 10 if law.startswith("blocks") else n
        common = np.repeat(rng.standard_normal((m, -(-n // size))), size, 1)[:, :n]
        normal = share**0.5 * common + (1 - share) ** 0.5 * normal
    cuts = norm.isf(rng.uniform(0.1, 0.9, n)) if law.endswith("biased") else np.zeros(n)
    return np.where(normal > cuts, -1, 1).astype(np.int8)


def random_subsets(n: int, degree: int, s: int, rng: np.random.Generator) -> list[Subset]:
    """About s distinct monomials, of each size alike."""
    drawn = (rng.choice(n, rng.integers(1, degree + 1), replace=False).tolist() for _ in range(s))
    return sorted({tuple(sorted(each)) for each in drawn})


def limit(n: int, degree: int, m: int) -> float:
    """Detection limit of a coefficient beside noise of variance 1."""
    return float(norm.isf(0.025 / n_subsets(n, degree, 1)) + 1.64) / m**0.5


def family(law: str, n: int, degree: int, m: int, s: int, least: float, bar: Any, arguments: Any) -> list[Figure]:
    """Faults and seconds over some draws; sizes, signs and members of the terms differ."""
    n = min(n, 24) if arguments.quick else n
    repeats = arguments.repeats if n <= 150 else (arguments.repeats + 1) // 2
    faults, false, missed, strong, took = 0, 0, 0, 0, []
    for draw in range(repeats):
        rng = np.random.default_rng([n, s, draw])
        terms = random_subsets(n, degree, s, rng)
        X, sizes = rows(law, m, n, rng), rng.uniform(least, 3 * least, len(terms))
        beta = sizes * rng.choice([-1, 1], len(terms)) * limit(n, degree, m)
        y = characters(X, terms) @ beta + rng.standard_normal(m)
        model, its = timed(lambda X=X, y=y: SparseFourierRegressor(degree, random_state=0).fit(X, y))
        took.append(its)
        found = set(model.subsets_)
        faults, false = faults + (found != set(terms)), false + bool(found - set(terms))
        missed += sum(size > 1.5 and term not in found for size, term in zip(sizes, terms, strict=True))
        strong += int((sizes > 1.5).sum())
    work = f"{law}: n={n} degree {degree} m={m:,} s={s}"
    most = 0.05 if law == "uniform" else None
    return [
        Figure.of(work, "seconds", CallSeconds(took), "s", most=bar),
        Figure(work, "runs with a fault", faults / repeats, "", most=most),
        Figure(work, "runs with a false term", false / repeats, "", most=0.07),
        Figure(work, "found of 1.5 limits", 1 - missed / max(1, strong), "", least=0.95),
    ]


JUNTAS: Final[dict[str, Callable[[Rows, np.random.Generator], NDArray[Any]]]] = {  # of signs (m, 5)
    "random": lambda Z, rng: rng.choice([-1, 1], 32)[(Z < 0) @ (1 << np.arange(5))],
    "majority": lambda Z, rng: np.sign(Z.sum(axis=1)),
    "parity of 4, or the fifth": lambda Z, rng: np.minimum(Z[:, :4].prod(axis=1), Z[:, 4]),
    "two addresses, three data": lambda Z, rng: np.where(Z[:, 0] > 0, Z[:, 2], np.where(Z[:, 1] > 0, Z[:, 3], Z[:, 4])),
    "and": lambda Z, rng: Z.min(axis=1),
}


def junta(kind: str, arguments: Any) -> list[Figure]:
    """Five of 60 columns, a function of them, 20 % of the labels flipped."""
    found, took = 0, []
    for draw in range(arguments.repeats):
        rng = np.random.default_rng([5, draw])
        X, columns = rows("uniform", 20_000, 60, rng), np.sort(rng.choice(60, 5, replace=False))
        y = JUNTAS[kind](X[:, columns], rng) * np.where(rng.random(20_000) < 0.2, -1, 1)
        model, its = timed(lambda X=X, y=y: SparseFourierRegressor(4, random_state=0).fit(X, y))
        took.append(its)
        found += model.variables_.tolist() == columns.tolist()
    work = f"junta, {kind}: 5 of 60, 20 % flipped, m=20,000"
    seconds = Figure.of(work, "seconds", CallSeconds(took), "s", most=5)
    return [seconds, Check(work, "found", found / len(took), "", least=0.9)]


def kernel(degree: int, m: int, arguments: Any) -> Figure:
    """Seconds of a scan of 1,000 columns, packing included."""
    n, rng = 100 if arguments.quick else 1_000, np.random.default_rng(m)
    columns, q = pack(rows("uniform", m, n, rng), "signs").columns, quantised(rng.standard_normal(m))
    least = int(4.2 * np.sqrt((q.astype(float) ** 2).sum()))
    taken = CallSeconds(
        [
            timed(lambda: strongest_monomials(MonomialTable.of(columns, m, degree), q, 4_000, least))[1]
            for _ in range(5 if degree == 2 else 2)
        ]
    )
    return Figure.of(f"kernel: n={n:,}, m={m:,}", f"degree {degree}", taken, "s", most=BARS[degree, m])


def fit_peak(law: str, n: int, degree: int, m: int, s: int, least: float, bar: Any) -> float:
    """Peak memory of a process that draws rows and fits them, in megabytes."""
    rng = np.random.default_rng(0)
    X, terms = random_signs(n, m, rng=rng), random_subsets(n, degree, s, rng)
    y = characters(X, terms).sum(axis=1) * least * limit(n, degree, m) + rng.standard_normal(m)
    SparseFourierRegressor(degree, certify=False, random_state=0).fit(X, y)
    return peak_memory() / 1e6


def tree_spectrum(node: dict[str, Any]) -> dict[frozenset[int], float]:
    """Fourier coefficients of a tree on signs: (left + right) / 2 + x_i (right - left) / 2 at each split."""
    if "leaf_value" in node:
        return {frozenset(): node["leaf_value"]}
    spectrum, column = defaultdict[frozenset[int], float](float), frozenset([node["split_feature"]])
    for sign, child in ((-1, "left_child"), (1, "right_child")):
        for subset, value in tree_spectrum(node[child]).items():
            spectrum[subset] += value / 2
            spectrum[subset ^ column] += sign * value / 2
    return spectrum


def by_validation(fit: Callable[..., Any], choices: list[Any], X: Any, y: Array) -> Any:
    """What fits best of some choices on the last quarter of the rows, fitted to all of them."""
    rest = 3 * len(y) // 4
    scores = [np.mean((fit(choice, X[:rest], y[:rest])(X[rest:]) - y[rest:]) ** 2) for choice in choices]
    return fit(choices[int(np.argmin(scores))], X, y)


def boosted_spectrum(X: Rows, y: Array) -> Callable[[Rows], Array]:
    """The largest terms of boosted trees, refitted; depth, and how many terms, by validation."""
    from lightgbm import LGBMRegressor

    def fit(choice: tuple[int, int], X: Rows, y: Array) -> Callable[[Rows], Array]:
        depth, number = choice
        trees = LGBMRegressor(
            n_estimators=400, max_depth=depth, num_leaves=2**depth, learning_rate=0.05, n_jobs=1, verbose=-1
        )
        total = defaultdict[frozenset[int], float](float)
        for tree in trees.fit(X.astype(np.float64), y).booster_.dump_model()["tree_info"]:
            for subset, value in tree_spectrum(tree["tree_structure"]).items():
                total[subset] += value
        largest = [tuple(sorted(each)) for each in sorted(total, key=lambda each: -abs(total[each])) if each][:number]
        linear = LinearRegression().fit(characters(X, largest), y)
        return lambda new: np.asarray(linear.predict(characters(new, largest)))

    return by_validation(fit, list(product((3, 5), (8, 16, 32, 64, 128))), X, y)


def mcp(monomials: Callable[[Rows], Any], X: Rows, y: Array) -> Callable[[Rows], Array]:
    """Skglm's minimax concave penalty on the monomials; its weight by validation."""
    from skglm import MCPRegression

    M = monomials(X).astype(np.float64)
    largest = float(np.abs(M.T @ (y - y.mean())).max()) / len(y)
    alphas = (largest * np.geomspace(0.8, 0.02, 15)).tolist()
    predict = by_validation(lambda alpha, M, y: MCPRegression(alpha=alpha).fit(M, y).predict, alphas, M, y)
    return lambda new: predict(monomials(new).astype(np.float64))


def compared_target(kind: str, rng: np.random.Generator) -> tuple[int, Callable[[int], tuple[Rows, Array, Array]]]:
    """True number of terms, and m rows of 30 columns with targets without and with noise."""
    columns, law = rng.choice(30, 5, replace=False), kind if kind in CORRELATED else "uniform"
    s = {"junta": 32, "many small terms": 150}.get(kind, 12)
    terms = random_subsets(30, 3, s, rng)
    beta = rng.choice([-1, 1], len(terms)) * rng.uniform(1.2, 3.6, len(terms)) * limit(30, 3, 2_000)
    if kind == "many small terms":
        beta = rng.standard_normal(len(terms)) / np.arange(1, len(terms) + 1)
    splits, values = rng.integers(0, 30, (6, 15)), rng.standard_normal((6, 16))
    junta_rng = rng.integers(2**32)

    def draw(m: int) -> tuple[Rows, Array, Array]:
        X = rows(law, m, 30, rng)
        if kind == "junta":
            clean = JUNTAS["random"](X[:, columns], np.random.default_rng(junta_rng)).astype(np.float64)
            return X, 0.6 * clean, clean * np.where(rng.random(m) < 0.2, -1, 1)
        if kind == "trees":
            clean = np.zeros(m)
            for split, value in zip(splits, values, strict=True):
                node = np.zeros(m, dtype=int)
                for _ in range(4):
                    node = 2 * node + 1 + (X[np.arange(m), split[node]] > 0)
                clean += value[node - 15]
        else:
            clean = characters(X, terms) @ beta
        return X, clean, clean + (0.5 if kind == "trees" else 1.0) * rng.standard_normal(m)

    return len(terms), draw


def sides(s: int, X: Rows, y: Array) -> dict[str, Callable[[], Callable[[Rows], Any]]]:
    """What fits rows, and then predicts."""
    monomials = partial(characters, subsets=subsets_of(subset_masks(X.shape[1], 3, 1)))

    def explicit(model: Any) -> Callable[[Rows], Any]:
        fitted = model.fit(monomials(X), y)
        return lambda new: fitted.predict(monomials(new))

    both: dict[str, Callable[[], Callable[[Rows], Any]]] = {
        "SparseFourierRegressor": lambda: SparseFourierRegressor(3, random_state=0).fit(X, y).predict,
        "OMP, given s": lambda: explicit(OrthogonalMatchingPursuit(n_nonzero_coefs=s)),
        "LassoCV": lambda: explicit(LassoCV(cv=3, alphas=40, selection="random", tol=1e-3)),
        "HistGradientBoosting": lambda: HistGradientBoostingRegressor().fit(X, y).predict,
    }
    if find_spec("skglm"):
        both["skglm, MCP"] = lambda: mcp(monomials, X, y)
    if find_spec("lightgbm"):
        both["LightGBM, its spectrum"] = lambda: boosted_spectrum(X, y)
    return both


def compared(kind: str, arguments: Any) -> list[Figure]:
    """Errors and seconds of all sides on one kind of target, n = 30, degree 3 (4,525 monomials), 2,000 rows."""
    errors, took = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for draw in range(1 if arguments.quick else 3):
        s, rows_of = compared_target(kind, np.random.default_rng([30, draw]))
        X, _, y = rows_of(2_000)
        new, truth, _ = rows_of(4_000)
        for side, fit in sides(s, X, y).items():
            predict, its = timed(fit)
            took[side].append(its)
            errors[side].append(float(np.mean((predict(new) - truth) ** 2) / truth.var()))
    work = f"compared, {kind}: n=30 degree 3 m=2,000"
    return [
        Figure.of(work, f"{side}: {what}", samples[side], unit)
        for side in errors
        for what, samples, unit in (("error", errors, ""), ("seconds", took, "s"))
    ]


PARTS: Final = ("kernel", "planted", "junta", "compared", "large")


@program(option("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure"), repeats=100)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    arguments.repeats = 2 if arguments.quick else arguments.repeats
    figures: list[Figure] = []
    if "kernel" in arguments.only:
        figures += [kernel(degree, m, arguments) for degree, m in product((2, 3), (10_000, 20_000))]
    if "planted" in arguments.only:
        for each in FAMILIES[:1] + FAMILIES[3:9] if arguments.quick else FAMILIES:
            figures += family(*each, arguments=arguments)
            if each[0] == "uniform":
                work = f"uniform: n={each[1]} degree {each[2]} m={each[3]:,} s={each[4]}"
                figures.append(Figure(work, "peak memory", alone(fit_peak, *each), "MB", most=500))
    if "junta" in arguments.only:
        for kind in JUNTAS:
            figures += junta(kind, arguments)
    if "compared" in arguments.only:
        for kind in COMPARED:
            figures += compared(kind, arguments)
    if "large" in arguments.only and not arguments.quick:
        arguments.repeats = min(arguments.repeats, 3)
        figures += family(*LARGE, arguments=arguments)
    return figures

"""Rademacher complexity of the sparse and of the dense class against the number of units: Section 5 of paper A.

For each vector of signs the best network of the class is found exactly (:mod:`sparsact.rademacher`), so that classes
of s = 1, ..., 8 units are compared on the same signs. On orthogonal points a network of the class bounds its
complexity from below.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from sparsact import bounds
from sparsact.hypercube import points
from sparsact.rademacher.comparison import orthogonal_network
from sparsact.rademacher.exact import exact_maxima
from sparsact_papers.charts import Chart, Frame, curve_frame, curve_plot
from sparsact_papers.claims import Claim
from sparsact_papers.experiment import Experiment, Rows, Scale
from sparsact_papers.intervals import Interval, mean_of, range_of
from sparsact_papers.paper_a import rademacher_families as families
from sparsact_papers.paper_a.rademacher_claims import (
    ROUNDING,
    cases,
    complexities,
    judge_bound,
    judge_conjecture,
    judge_dense,
    judge_explicit_bound,
    judge_growth,
    judge_orthogonal,
    judge_power,
    maxima_of,
    shares,
)

CUBE, DENSE, ORTHOGONAL = "cube", "dense", "orthogonal"
W = 1.0
SIZES: Final = tuple(range(1, 9))
BIASES: Final = {Scale.SMOKE: (0.5, 1.0), Scale.QUICK: (0.5, 1.0), Scale.FULL: (0.25, 0.5, 1.0, 2.0)}  # B / (W R)
USUAL: Final = 1.0  # of these, where only one is taken
WHOLE: Final = {Scale.SMOKE: (2,), Scale.QUICK: (2, 3), Scale.FULL: (2, 3)}  # cubes with all signs
BLOCKS: Final = {Scale.SMOKE: 2, Scale.QUICK: 2, Scale.FULL: 10}
DRAWS: Final = {Scale.SMOKE: 4, Scale.QUICK: 10, Scale.FULL: 12}
LARGE_BLOCKS, LARGE_DRAWS = {Scale.SMOKE: 0, Scale.QUICK: 0, Scale.FULL: 10}, 4  # on the 4-cube
PAIRS: Final = {Scale.SMOKE: (2,), Scale.QUICK: (2,), Scale.FULL: (2, 3)}  # cubes that also get k = 2
TOGETHER: Final = {Scale.SMOKE: (2, 3), Scale.QUICK: (2,), Scale.FULL: (2, 3, 4)}  # units of the dense class
SAMPLES: Final = {Scale.SMOKE: (4, 16), Scale.QUICK: (4, 8, 16, 64), Scale.FULL: (2, 4, 8, 16, 32, 64, 128, 256)}
MOST_EXACT: Final = 8  # orthogonal points


def parameters(scale: Scale) -> Iterator[dict[str, str | int | float | None]]:
    """The large tasks first; ``draws`` None takes all signs."""
    n = WHOLE[scale][-1]
    for seed in range(LARGE_BLOCKS[scale]):
        yield {"sample": CUBE, "n": 4, "s": SIZES[-1], "k": 1, "bias": USUAL, "draws": LARGE_DRAWS, "seed": seed}
    for seed in range(BLOCKS[scale]):
        common: dict[str, str | int | float | None] = {"n": n, "draws": DRAWS[scale], "seed": seed}
        for s in TOGETHER[scale]:
            yield {**common, "sample": DENSE, "s": s, "k": s, "bias": USUAL}
        for bias in BIASES[scale]:
            yield {**common, "sample": CUBE, "s": SIZES[-1], "k": 1, "bias": bias}
    for n in WHOLE[scale]:
        for k, bias in [(2, USUAL)] * (n in PAIRS[scale]) + [(1, bias) for bias in BIASES[scale]]:
            yield {"sample": CUBE, "n": n, "s": SIZES[-1], "k": k, "bias": bias, "draws": None, "seed": 0}
    for m in SAMPLES[scale]:
        yield {"sample": ORTHOGONAL, "n": m, "s": 2, "k": 1, "bias": None, "draws": DRAWS[scale], "seed": 0}
    yield from families.parameters(scale)


def measure(
    *,
    sample: str,
    n: int,
    s: int,
    k: int,
    bias: float | None,
    draws: int | None,
    seed: int,
    blocks: int = 1,
    copies: int = 1,
) -> dict[str, Any]:
    """Exact maxima for every sign vector; of the cube for 1 to ``s`` units, beside the bounds."""
    if sample == families.DIRECTIONS:
        return families.on_directions(n, copies, k, seed)
    if sample in (families.BLOCKS, families.CUBES):
        return families.on_blocks(sample, n, blocks, s, k, int(draws or 0), seed)
    m = n if sample == ORTHOGONAL else 2**n
    signs = None if draws is None else np.random.default_rng([seed, 1]).choice([-1, 1], size=(draws, m))
    if sample == ORTHOGONAL:
        return on_orthogonal_points(np.asarray(signs))
    R, B = np.sqrt(n), W * np.sqrt(n) * float(bias or USUAL)
    scale: dict[str, Any] = {"W": W, "B": B, "signs": signs}
    if sample == DENSE:
        # Asked for s + 1 units too, the library cannot use that units of the dense class decouple: it searches.
        together = exact_maxima(points(n), [s, s + 1], s, **scale)[:, 0]
        return {"maxima": together.tolist(), "one_unit": exact_maxima(points(n), 1, 1, **scale).tolist()}
    sizes = range(1, s + 1)
    active = [(size, min(k, size)) for size in sizes]
    return {
        "maxima": exact_maxima(points(n), sizes, k, **scale).tolist(),
        "conjecture": [bounds.sparse_complexity_conjecture(*pair, W, B, R, m) for pair in active],
        "bound": [bounds.sparse_complexity_bound(n, *pair, W, B, R, m) for pair in active],
        "explicit_bound": [bounds.sparse_complexity_bound_explicit(n, *pair, W, B, R, m) for pair in active],
    }


def on_orthogonal_points(signs: NDArray[np.int_]) -> dict[str, Any]:
    """What two units reach on the rows of a Hadamard matrix, and whether their networks belong to the class."""
    m = signs.shape[1]
    X, R = hadamard(m), np.sqrt(m)
    B = W * R / np.sqrt(m)
    networks = [orthogonal_network(X, draw, W=W) for draw in signs]
    scales = [network.scale() for network in networks]
    exact = exact_maxima(X, 2, 1, W=W, B=B, signs=signs).tolist() if m <= MOST_EXACT else []
    return {
        "reached": [float(draw @ network(X)) / m for draw, network in zip(signs, networks, strict=True)],
        "exact": exact,
        "conjecture": bounds.sparse_complexity_conjecture(2, 1, W, B, R, m),
        "most_active": max(int(network.n_active(X).max()) for network in networks),
        "is_of_the_class": all(scale.W <= W and scale.B <= B for scale in scales),
    }


SPARSE, PAIR, DENSE_CLASS = "1-sparse class", "2-sparse class", "dense class"
UNITS_ALONE, BOUND, CONJECTURE = "s × one unit", "(15), constant 1", "Conjecture 20"
REACHED, LIMIT = "networks of two units", "limit √2"
Point = tuple[str, int, Interval]


def _line(name: str, values: list[float]) -> list[Point]:
    return [(name, s, range_of([value])) for s, value in enumerate(values, start=1)]


def _frame(rows: Rows, n: int) -> Frame:
    on_cube = rows.where(n=n, bias=USUAL)
    found = cases(on_cube) if on_cube.where(sample=CUBE) else {}
    points: list[Point] = []
    for (_, k, _), group in found.items():
        over = complexities(group)
        points += [(SPARSE if k == 1 else PAIR, s, over[s - 1]) for s in range(k, len(over) + 1)]
    for (s,), group in on_cube.where(sample=DENSE).groups("s").items():
        points.append((DENSE_CLASS, s, mean_of(maxima_of(group))))
    for (_, k, _), group in found.items():
        if k == 1:
            one = complexities(group)[0].estimate
            points += _line(UNITS_ALONE, [one * s for s in range(1, len(group[0]["bound"]) + 1)])
            for name, column in ((CONJECTURE, "conjecture"), (BOUND, "bound")):
                points += _line(name, group[0][column])
    return curve_frame(points, "units s", "Rademacher complexity")


def _orthogonal_frame(rows: Rows) -> Frame:
    found = sorted(rows.where(sample=ORTHOGONAL), key=lambda row: row["n"])
    points = [(REACHED, row["n"], range_of(np.array(row["reached"]) / row["conjecture"])) for row in found]
    exact = [row for row in found if row["exact"]]
    points += [("exact maximum", row["n"], mean_of(np.array(row["exact"]) / row["conjecture"])) for row in exact]
    return curve_frame(points, "orthogonal points m", "complexity / Conjecture 20")


CAPTION: Final = (
    "Points: over all vectors of signs where n is below 4, else over drawn ones with the 95 % interval of the mean, as "
    "for the dense class, whose units are searched for together. Lines: the bounds of 1-sparse networks, and s times "
    "one unit, which the dense class equals. B = WR."
)


EXPERIMENT: Final = Experiment(
    name="rademacher",
    paper="A",
    place="Section 5, Theorem 19, equation (15), Conjecture 20",
    title="Rademacher complexity against the number of units",
    summary="Exact maxima over all networks with W = 1 on all points of the cube, by enumeration of the sets that "
    "halfspaces cut from it (104 for n = 3, 1882 for n = 4), for all sign vectors (n = 2 and 3) and for drawn ones (n "
    "= 3 and 4); classes of 1 to 8 units on the same signs. The paper fixes no B: it is taken as several multiples of "
    "WR, the largest value that a unit can give to the product with its weights. On rows of a Hadamard matrix a "
    "network of two units, one active at each point, bounds the complexity from below. Blocks of such points, and of "
    "cubes, are searched for networks of up to 64 units with B = W = 1, from below too. On repeated directions the "
    "mean over all signs is exact.",
    version=2,
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="growth",
            place="Section 5",
            statement="From one unit to eight the complexity of the 1-sparse class grows at most to sqrt(8) times.",
            printed="sqrt(s), which is 2.8; the dense class grows 8-fold",
            rule="holds if, for every B, the 95 % interval of the ratio of means over drawn signs (delta method, "
            "paired) and the ratio over all signs lie below sqrt(8); holds only if B is among those for which they "
            "do, where all others fail",
            refuted_if="the ratio is significantly above the limit for every B",
            judge=judge_growth,
        ),
        Claim(
            name="power",
            place="Theorem 19",
            statement="The complexity of the 1-sparse class grows no faster than sqrt(s).",
            printed="power 1/2",
            rule="holds if, for each cube and B, the 95 % interval over blocks of signs of the power fitted to s = 1 "
            "to 8 lies below 1/2",
            refuted_if="the power is significantly above 1/2 for some cube and B",
            judge=judge_power,
        ),
        Claim(
            name="dense",
            statement="Units of the dense class decouple: its maximum is s times that of one unit, for all signs.",
            printed="Theorem 5 states that the dense class needs s^2 / epsilon^2 samples, without a proof",
            rule=f"holds if units searched for together reach s times one unit on every draw, to {ROUNDING:g} of it",
            refuted_if="units searched for together reach another value than s times one unit on some draw",
            judge=judge_dense,
        ),
        Claim(
            name="bound",
            place="Theorem 19 and equation (15)",
            statement="The complexity is at most (WR + B) sqrt(s n k log(k m (R + B)) / m).",
            printed="constant 1",
            rule="complexity / bound is at most 1 for every cube, B, k and s: over all signs without error, over "
            "drawn ones the 95 % interval; consistent if nowhere above 0.9",
            refuted_if="complexity / bound is significantly above 1 for some cube, B, k and s",
            judge=judge_bound,
        ),
        Claim(
            name="explicit-bound",
            statement="Equation (15) holds with every constant: (WR + B) (1 + sqrt(2 ln N)) sqrt(s k / m).",
            rule="as for equation (15)",
            refuted_if="complexity / bound is significantly above 1 for some cube, B, k and s",
            judge=judge_explicit_bound,
        ),
        Claim(
            name="conjecture",
            place="Conjecture 20",
            statement="On the whole cube the complexity is at most (WR + B) sqrt(s k / m), without the dimension.",
            printed="constant 1",
            rule="as for equation (15); the complexity is that of the worst network for each sign vector. Other "
            "points refute the constant 1: see below",
            refuted_if="complexity / conjecture is significantly above 1 for some cube, B, k and s",
            judge=judge_conjecture,
        ),
        Claim(
            name="orthogonal",
            statement="Conjecture 20 holds with the constant 1 on orthogonal points, for networks that are "
            "k-sparse at these points; they may have more active units elsewhere.",
            printed="constant 1, any points",
            rule="fails if for some number of points networks of the class reach more than the conjecture on every "
            "draw; holds if the exact maxima stay below it on all; else undecided",
            refuted_if="for some number of points networks of the class reach more than the conjecture on every draw",
            judge=judge_orthogonal,
        ),
        Claim(
            name="mean-sparsity",
            statement="Conjecture 20 holds up to a constant for networks that are k-sparse in the mean over points.",
            rule=f"fails if, on M directions of {families.COPIES} points each, the mean correlation of networks with "
            "all units at one of them, as a multiple of the conjecture, is more than "
            f"{families.MOST_GROWTH:g} times at the most directions what it is at the fewest; else holds",
            refuted_if="the multiple grows by more than that; by the theorem it does, as sqrt(ln(s/k))",
            judge=families.judge_mean_sparsity,
        ),
        Claim(
            name="pointwise-sparsity",
            statement="On blocks of orthogonal points, or of cubes, no network with at most k active units at each "
            "exceeds sqrt(2) times Conjecture 20, with up to 64 units.",
            rule="fails if the 95 % interval of the mean over drawn signs, of what searched networks and pairs of "
            "units reach, lies above that for some design; consistent if nowhere above 0.9 of it",
            refuted_if="networks of the class reach significantly more for some design",
            judge=families.judge_blocks,
        ),
    ),
    charts=(
        *(
            Chart(
                f"units-{n}",
                f"Complexity against units, all points of the {n}-cube",
                CAPTION,
                partial(_frame, n=n),
                curve_plot(
                    "units s", "Rademacher complexity, W = 1", log=(0, 10), lines=(UNITS_ALONE, CONJECTURE, BOUND)
                ),
            )
            for n in (2, 3, 4)
        ),
        Chart(
            "conjecture",
            "Complexity as a share of Conjecture 20 on the cube",
            "Over all vectors of signs for n = 3, over drawn ones with the 95 % interval for n = 4. Constant 1.",
            lambda rows: curve_frame(
                [
                    (f"n = {n}, k = {k}, B = {bias:g} WR", s, share)
                    for ((n, k, bias), s), share in (
                        shares(rows, "conjecture") if rows.where(sample=CUBE) else {}
                    ).items()
                    if n > 2
                ],
                "units s",
                "complexity / Conjecture 20",
            ),
            curve_plot("units s", "complexity / Conjecture 20", levels={"the conjecture": 1.0}, size=(5.4, 4.6)),
        ),
        Chart(
            "orthogonal",
            "Two units on orthogonal points, as a multiple of Conjecture 20",
            "What 1-sparse networks of two units reach on rows of a Hadamard matrix, with the least and the greatest "
            "over drawn signs; the exact maximum of the class with its 95 % interval, where it can be found.",
            _orthogonal_frame,
            curve_plot(
                "orthogonal points m",
                "complexity / Conjecture 20, s = 2",
                log=(2, 0),
                levels={"the conjecture": 1.0, LIMIT: float(np.sqrt(2))},
            ),
        ),
        Chart(
            "directions",
            "Networks on repeated directions, as a multiple of Conjecture 20",
            f"Exact means over all signs, {families.COPIES} points on each direction, k = 1: all units at the "
            "direction of the largest sum (sparse in the mean), and one at each (sparse everywhere).",
            families.frame,
            curve_plot(
                "units s, as many as directions",
                "complexity / Conjecture 20",
                log=(2, 0),
                lines=(families.TAILS,),
            ),
        ),
    ),
    order=300,
)

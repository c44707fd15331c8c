"""What a dense model of width w cannot do: Theorems 4.2 and D.1, on the families of their proofs.

*Widths.* Members of the family of Theorem 4.2 (cones of height +-eps) are fitted by a frozen layer of w random ReLU
units with biases below the best linear layer, for growing w, until the largest error is at most eps / 2: with eps
itself the function 0 would do. Beside it the buckets and the operations with which hashing gets there.

*Pairs.* Two random members of the family of Theorem D.1 (cosine series): their distance, exactly by Parseval's identity
and as the largest value on a grid, beside the paper's inequality (10).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sparsact_papers.charts import Chart, Frame, curve_plot, curves, joined, level
from sparsact_papers.claims import Claim, Verdict, bounded, every, needed, only_if, within
from sparsact_papers.common.hard_families import WIDEST, needed_width, pair
from sparsact_papers.common.rates import HALF
from sparsact_papers.experiment import Experiment, MissingRowsError, Rows, Scale
from sparsact_papers.intervals import median_of, range_of, share_of, slope_of

AMBIENT: Final = 8
SMALL: Final = 3  # dimensions up to which (10) is looked for
SEEDS: Final = {Scale.SMOKE: 2, Scale.QUICK: 3, Scale.FULL: 5}
EPSILONS: Final[dict[Scale, dict[int, tuple[float, ...]]]] = {
    Scale.SMOKE: {1: (0.5, 0.25)},
    Scale.QUICK: {1: (0.4, 0.2, 0.1), 2: (0.6, 0.5, 0.4)},
    Scale.FULL: {1: (0.4, 0.2, 0.1, 0.05, 0.025), 2: (0.6, 0.5, 0.4, 0.3, 0.25, 0.2)},
}
PAIRS: Final = {
    Scale.SMOKE: ((1, 2), (4, 1)),
    Scale.QUICK: ((1, 4), (2, 4), (3, 3), (4, 2), (6, 1)),
    Scale.FULL: ((1, 8), (1, 64), (2, 4), (2, 16), (3, 3), (3, 8), (4, 2), (4, 4), (5, 1), (5, 2), (6, 1), (7, 1)),
}


def parameters(scale: Scale) -> Iterator[dict[str, int | float | str | None]]:
    """Widths for each accuracy and dimension; pairs for each dimension and number of frequencies."""
    for seed in range(SEEDS[scale]):
        for k, epsilons in EPSILONS[scale].items():
            for epsilon in epsilons:
                member = {"k": k, "epsilon": epsilon, "ambient": AMBIENT, "n_waves": None, "seed": seed}
                yield {"part": "width", **member}
        for k, n_waves in PAIRS[scale]:
            yield {"part": "pair", "k": k, "epsilon": None, "ambient": None, "n_waves": n_waves, "seed": seed}


def measure(
    *, part: str, k: int, epsilon: float | None, ambient: int | None, n_waves: int | None, seed: int
) -> dict[str, Any]:
    """One part of the experiment."""
    if epsilon is not None and ambient is not None:
        return needed_width(k, epsilon, ambient, seed)
    if n_waves is not None:
        return pair(k, n_waves, seed)
    raise ValueError(f"part {part!r} needs `epsilon` and `ambient`, or `n_waves`; got neither.")


def _judge_width(rows: Rows) -> Verdict:
    verdicts = []
    for (k,), group in needed(rows.where(part="width"), "widths").groups("k").items():
        whole = [g for g in group.groups("seed").values() if all(row["needed"] for row in g) and len(g) > 1]
        if not whole:
            raise MissingRowsError(f"k = {k}: a seed with every width below {WIDEST}")
        slope = slope_of(((1 / g.array("epsilon")).tolist(), g.column("needed")) for g in whole)
        verdicts.append(within(slope, least=k - HALF, what=f"k = {k}: slope"))
    return every(*verdicts)


def _judge_hashing(rows: Rows) -> Verdict:
    verdicts = []
    for (k,), group in needed(rows.where(part="width"), "widths").groups("k").items():
        served = Rows(row for row in group if row["needed"] and row["buckets"])
        ratios = {
            e: [float(row["needed"] * row["ambient"] / row["hash_operations"]) for row in at]
            for (e,), at in served.groups("epsilon").items()
        }
        if len(ratios) < 2:
            raise MissingRowsError(f"k = {k}: two accuracies that both models reach")
        what = f"k = {k}, eps = {min(ratios)}: dense / hash"
        verdicts.append(within(range_of(ratios[min(ratios)]), least=max(ratios[max(ratios)]), what=what))
    return every(*verdicts)


def _judge_pairs(rows: Rows) -> Verdict:
    pairs = needed(rows.where(part="pair"), "pairs")
    few = [row["sup / printed"] for row in pairs if row["differing"] and row["k"] <= SMALL]
    many = [row["sup_at_most / printed"] for row in pairs if row["differing"] and row["k"] > SMALL]
    if not (few and many):
        raise MissingRowsError(f"pairs of dimension up to {SMALL} and above")
    return only_if(
        f"k is small (here at most {SMALL}); beyond, a pair contradicts it, as its proof divides by 2^k twice",
        within(range_of([min(few)]), least=1.0, what=f"k <= {SMALL}: least of {len(few)} ratios"),
        within(range_of([min(many)]), least=1.0, what=f"k > {SMALL}: least of {len(many)} ratios"),
    )


def _judge_parseval(rows: Rows) -> Verdict:
    pairs = Rows(row for row in needed(rows.where(part="pair"), "pairs") if row["differing"])
    mended = pairs.array("printed") / 2 ** (pairs.array("k") / 2)
    return bounded(range_of(mended / pairs.array("rms")), "mended (10) / rms:")


def _judge_lipschitz(rows: Rows) -> Verdict:
    pairs = needed(rows.where(part="pair"), "pairs")
    share = share_of(int((pairs.array("lipschitz") <= 1).sum()), len(pairs))
    return within(share, least=0.81, what="share of pairs:")  # 0.9 for each of two members


DEVIATION, LINEAR = "standard deviation of the target", "best linear function, root mean square"


def _inverse(rows: Rows) -> Rows:
    """Rows of widths, with 1 / eps among their values."""
    return Rows(row.with_values(inverse=1 / row["epsilon"]) for row in rows.where(part="width"))


def _needed_frame(rows: Rows) -> Frame:
    found = _inverse(rows)
    return joined(
        *(
            curves(
                Rows(row for row in found if row[column] is not None), f"{name}, k = {{k}}", "inverse", column, "number"
            )
            for column, name in (("needed", "dense width"), ("buckets", "buckets of the hash"), ("n_cones", "cones"))
        )
    )


def _operations_frame(rows: Rows) -> Frame:
    found = Rows(row for row in _inverse(rows) if row["needed"])
    dense = curves(found, "dense, k = {k}", "inverse", lambda row: row["needed"] * row["ambient"], "products")
    hashed = curves(found, "hash, k = {k}", "inverse", "hash_operations", "products")
    return joined(dense, hashed)


def _error_frame(rows: Rows) -> Frame:
    found = rows.where(part="width")
    hard = Rows(
        row for group in found.groups("k").values() for row in group.where(epsilon=min(group.column("epsilon")))
    )
    unfolded = hard.unfolded(width="widths", error="sup_errors")
    frame = curves(unfolded, "k = {k}, eps = {epsilon}", "width", "error / epsilon", "share")
    heights = {DEVIATION: "deviation / epsilon", LINEAR: "linear_rmse / epsilon"}
    return joined(frame, *(level(name, median_of(hard.array(column)), frame) for name, column in heights.items()))


def _pairs_frame(rows: Rows) -> Frame:
    found = Rows(row for row in rows.where(part="pair") if row["differing"])
    largest = curves(found, "largest difference", "k", "sup / printed", "ratio")
    rms = curves(found, "root mean square", "k", "rms / printed", "ratio")
    return joined(largest, rms)


EXPERIMENT: Final = Experiment(
    name="dense-lower-bounds",
    paper="B",
    place="Theorems 4.2 and D.1",
    title="What a dense model of a given width cannot do",
    summary="Members of Theorem 4.2's family, cones of height +-eps on a subspace of [-1, 1]^8 that k diagonals span, "
    "are fitted by random ReLU layers with biases, whose kinks are spread over the points, and a linear layer in "
    "closed form, until the largest error on fresh points is at most eps/2. The literal learner of Theorem 4.1 is "
    "fitted to the same points. Of Theorem D.1's family, cosine series with N^k signs, pairs are drawn with L = 1 and "
    "C = 6; their distance is exact by Parseval, their largest difference is taken over a grid of eight points a "
    "wave, with a proved bound between the points.",
    parameters=parameters,
    measure=measure,
    claims=(
        Claim(
            name="width",
            place="Theorem 4.2",
            statement="A dense model with a random bottom layer needs a width that grows like (1/eps)^k.",
            printed="w = Omega((sqrt(d) L)^k / (C eps)^k)",
            rule="slope of log width in log 1/eps, fitted for each seed; holds if its 95 % interval lies above k - "
            "1/2 for each k",
            refuted_if="for some k the slope is significantly below k - 1/2: the width grows as in fewer dimensions",
            judge=_judge_width,
        ),
        Claim(
            name="forward-pass",
            place="Section 4, after Theorem 4.2",
            statement="The advantage of hashing in operations of a forward pass grows as eps falls.",
            printed="O(dk log(1/eps)) against Omega(d (2 sqrt(d) / (C eps))^k)",
            rule="d w over the d K products of the hash (K = 4k), at equal largest error eps/2: holds if at the least "
            "eps every seed's ratio exceeds all ratios at the greatest eps",
            refuted_if="at the least eps some seed's ratio does not exceed all ratios at the greatest eps",
            judge=_judge_hashing,
        ),
        Claim(
            name="separation",
            place="Theorem D.1, inequality (10)",
            statement="Two random members of the analytic family differ by 2^(k/2+1) L sqrt(c) eps_1 / (C sqrt(k) pi) "
            "or more somewhere.",
            printed="hence the factor 2^(k^2/2) in the width",
            rule="the largest difference on a grid over the printed bound is at least 1 for every pair with k <= 3; "
            "for k > 3 the same of the most that it can be between the grid's points: one pair below 1 suffices "
            "against (10)",
            refuted_if="some pair differs by less than the bound although k is small",
            judge=_judge_pairs,
        ),
        Claim(
            name="separation-mended",
            statement="Without its factor 2^(k/2), inequality (10) holds for the root mean square already.",
            rule="2 L sqrt(c) eps_1 / (C sqrt(k) pi) over the exact root mean square of the difference, at most 1 for "
            "every pair",
            refuted_if="the root mean square of some pair is below the mended bound",
            judge=_judge_parseval,
        ),
        Claim(
            name="lipschitz",
            place="Theorem D.1, inequality (8)",
            statement="A random member of the analytic family is L-Lipschitz, with C = 6 (the paper leaves C open).",
            printed="with probability at least 0.9, for a large enough C",
            rule="share of pairs in which both members have a proved Lipschitz constant of at most L = 1, with C = 6; "
            "holds if its 95 % interval (Clopper and Pearson) lies above 0.9^2",
            refuted_if="the share of pairs with a proved constant is significantly below 0.9^2",
            judge=_judge_lipschitz,
        ),
    ),
    charts=(
        Chart(
            "needed",
            "Width, buckets and cones for a largest error of eps / 2",
            "Median over seeds with its interval. Cones: members of the family differ in their signs.",
            _needed_frame,
            curve_plot("1 / eps", "number", log=(10, 10), lines=lambda name: name.startswith("cones"), size=(5.4, 4.6)),
        ),
        Chart(
            "operations",
            "Products of a forward pass at equal error",
            "Dense: d w of the bottom layer; hash: d K with K = 4k directions. d = 8.",
            _operations_frame,
            curve_plot("1 / eps", "products in a forward pass", log=(10, 10)),
        ),
        Chart(
            "error",
            "Largest error against width",
            "At the least eps of each dimension; the function 0 has error eps. Median over seeds with its interval.",
            _error_frame,
            curve_plot(
                "width of the dense model",
                "largest error / eps",
                log=(10, 10),
                lines=(DEVIATION, LINEAR),
                levels={"goal: eps / 2": 0.5},
            ),
        ),
        Chart(
            "pairs",
            "Distance of two analytic members over the printed bound",
            "Median over seeds and numbers of frequencies, with its interval. Below 1 a pair contradicts inequality "
            "(10).",
            _pairs_frame,
            curve_plot(
                "dimension k", "difference / inequality (10)", log=(0, 10), levels={"what (10) says is the least": 1.0}
            ),
        ),
    ),
    order=60,
)

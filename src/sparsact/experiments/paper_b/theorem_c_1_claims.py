"""Claims about tables on manifolds: the rate, both printed table sizes, the ambient dimension, pruning."""

from __future__ import annotations

from sparsact.experiments import (
    Claim,
    Row,
    Rows,
    Verdict,
    every,
    mean_of,
    needed,
    only_if,
    range_of,
    slope_of,
    within,
)

BAND = 0.15
MOST_LOST = 0.01  # of the points: what "every point is in a kept bucket of some table" may leave out
FULL_ENOUGH = 128.0  # rows a bucket, on average over a table
DIMENSIONS = {"circle": 1, "sphere": 2, "swiss roll": 2}
AMBIENTS = (8, 16)
FEW = 8  # rows: a bucket of fewer is pruned


def _curves(rows: Rows) -> list[tuple[str, Rows]]:
    """Of every manifold and ambient dimension, its curves."""
    return [
        (f"{manifold}, d = {ambient}:", group)
        for (manifold, ambient), group in rows.groups("manifold", "ambient").items()
    ]


def judge_slope(rows: Rows, manifold: str) -> Verdict:
    """Slope of the mean error in the buckets of a table, in each ambient dimension."""
    rate = -1 / DIMENSIONS[manifold]
    of = needed(rows.where(manifold=manifold), f"curves on a {manifold}", 2)
    return every(
        *(
            within(
                slope_of((row["buckets"], row["mean_errors"]) for row in group),
                least=rate - BAND,
                most=rate + BAND,
                what=name,
            )
            for name, group in _curves(of)
        )
    )


def judge_exponent(rows: Rows) -> Verdict:
    """Exponent of 1 / (largest error) in the buckets of a table."""
    return every(
        *(
            within(
                slope_of(([1 / e for e in row["sup_errors"]], row["buckets"]) for row in group),
                most=1.15 * DIMENSIONS[group[0]["manifold"]],
                what=name,
            )
            for name, group in _curves(needed(rows, "curves", 2))
        )
    )


def judge_size(rows: Rows, printed: str) -> Verdict:
    """Buckets of a table over a printed size with constant 1, at every width of every curve."""
    ratios = [n / size for row in needed(rows, "curves") for n, size in zip(row["buckets"], row[printed], strict=True)]
    return within(range_of(ratios), most=1.0, what="buckets / printed size:")


def judge_ambient(rows: Rows) -> Verdict:
    """Buckets with many columns over those with few, at widths in proportion to the columns."""
    pairs = needed(rows, "curves").groups("manifold", "rows", "seed").values()
    ratios = [
        more / fewer
        for pair in pairs
        for fewer, more in zip(pair[0]["buckets"], pair[-1]["buckets"], strict=True)
        if [row["ambient"] for row in pair] == list(AMBIENTS)
    ]
    return within(range_of(ratios), most=2.0, what="buckets with d = {1} / with d = {0}:".format(*AMBIENTS))


def judge_pruning(rows: Rows) -> Verdict:
    """Points without a kept bucket in any table: where buckets hold many rows, and at the finest width."""
    full = [lost for row in rows for lost, n in _losses(row) if row["rows"] / n >= FULL_ENOUGH]
    finest = [
        within(mean_of([_losses(row)[-1][0] for row in group]), most=MOST_LOST, what=name)
        for name, group in _curves(needed(rows, "curves", 2))
    ]
    return only_if(
        f"a table has {FULL_ENOUGH:g} rows or more for each of its buckets",
        within(range_of(full), most=MOST_LOST, what="points lost by all tables:"),
        every(*finest),
    )


def _losses(row: Row) -> list[tuple[float, float]]:
    return list(zip(row["pruned_by_all"], row["buckets"], strict=True))


def judge_emptied(rows: Rows) -> Verdict:
    """Share of a table's buckets that are pruned, and of the points in them, at the finest width."""
    parts = []
    for name, group in _curves(needed(rows, "curves", 2)):
        points = mean_of([row["pruned_points"][-1] for row in group])
        verdict = within(mean_of([row["pruned_buckets"][-1] for row in group]), least=0.5, what=f"{name} buckets")
        parts.append(Verdict(verdict.outcome, f"{verdict.measured}, points {points}"))
    return every(*parts)


def _slope(manifold: str) -> Claim:
    rate = f"-1/{k}" if (k := DIMENSIONS[manifold]) > 1 else "-1"
    return Claim(
        name=f"slope-{manifold.replace(' ', '-')}",
        place="Theorem C.1",
        statement=f"On a {manifold} the mean error falls with the buckets of a table like buckets^({rate}).",
        printed=f"O(sqrt(dk)^{k} / eps^{k}) buckets for a largest error of eps",
        rule="slope of log mean error in log buckets, fitted to each seed's curve; holds if the 95 % interval of its "
        f"mean over seeds lies within {rate} +- {BAND:g}, in both ambient dimensions",
        refuted_if="the mean slope is significantly outside the limits in some ambient dimension",
        judge=lambda rows: judge_slope(rows, manifold),
    )


CLAIMS = (
    *(_slope(manifold) for manifold in DIMENSIONS),
    Claim(
        name="exponent",
        place="Theorem C.1",
        statement="For a largest error of eps a table needs O(1 / eps^k) buckets.",
        printed="O(sqrt(dk)^k / eps^k)",
        rule="slope of log buckets in log 1/(largest error), fitted to each seed's curve; holds if the 95 % interval "
        "of its mean over seeds lies below 1.15 k, for every manifold and ambient dimension",
        refuted_if="the mean slope significantly exceeds the limit for some manifold and ambient dimension",
        judge=judge_exponent,
    ),
    Claim(
        name="size-of-the-statement",
        place="Theorem C.1",
        statement="A table has at most (sqrt(dk) / eps)^k buckets, with the constant taken as 1.",
        printed="O(sqrt(dk)^k / eps^k)",
        rule="mean buckets of a table over (sqrt(dk) / eps)^k, eps the measured largest error; holds if at most 1 at "
        "every width of every curve (the largest ratio is the constant that is needed)",
        refuted_if="some width of some curve has more buckets",
        judge=lambda rows: judge_size(rows, "printed_sizes"),
    ),
    Claim(
        name="size-of-the-proof",
        place="Theorem C.1, proof",
        statement="A table has at most (d^2 sqrt(k) / eps)^k buckets, with the constant taken as 1.",
        printed="(O((d^2 sqrt(k)) / eps))^k",
        rule="as for the statement's size, which the proof does not reach",
        refuted_if="some width of some curve has more buckets",
        judge=lambda rows: judge_size(rows, "proof_sizes"),
    ),
    Claim(
        name="ambient-dimension",
        place="Theorem C.1, proof",
        statement="The number of buckets does not grow exponentially in d, although each table has d directions: at "
        "widths in proportion to d it does not grow at all.",
        printed="does not grow exponentially in d",
        rule="buckets with d = 16 over those with d = 8 at half the width, the same manifold and seed; holds if at "
        "most 2 at every width (exponential growth would give 2^8)",
        refuted_if="the buckets more than double at some width",
        judge=judge_ambient,
    ),
    Claim(
        name="pruning",
        place="Theorem C.1, proof",
        statement="When sparse buckets are pruned, every point still has a kept bucket in at least one table.",
        printed="we only include buckets with volume at least (Omega(eps / (d sqrt(k))))^k",
        rule=f"share of test points with fewer than {FEW} rows in their buckets of all tables; holds where it is at "
        f"most {MOST_LOST:.0%}: of every curve at the widths that leave {FULL_ENOUGH:g} rows a bucket or more, and, in "
        "the mean over seeds with its 95 % interval, at the finest width of every manifold and ambient dimension",
        refuted_if="some curve loses more than the limit although each bucket has 128 rows",
        judge=judge_pruning,
    ),
    Claim(
        name="emptied-tables",
        place="beyond the paper",
        statement=f"Pruning empties most of a fine table: more than half of its buckets hold fewer than {FEW} rows.",
        printed="",
        rule=f"share of buckets with fewer than {FEW} rows at the finest width; holds if the 95 % interval of its mean "
        "over seeds lies above 1/2 for every manifold and ambient dimension",
        refuted_if="the mean share of sparse buckets is significantly below 1/2 for some manifold and ambient "
        "dimension",
        judge=judge_emptied,
    ),
)

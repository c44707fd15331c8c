"""What the accuracies on CIFAR-10 say of Table 2 and Figure 5: models are compared in pairs of one seed."""

from __future__ import annotations

from collections.abc import Sequence

from sparsact_papers.claims import Verdict, every, needed, within
from sparsact_papers.intervals import Interval, mean_of
from sparsact_papers.results import MissingRowsError, Rows

DENSE, HALF, QUARTER = "dense", "DSM 50%", "DSM 25%"
TIMES = {DENSE: 1, HALF: 2, QUARTER: 4}  # units for each active one
PRINTED = {  # Table 2: accuracy in percent by active units
    DENSE: {256: 69.79, 512: 70.79},
    HALF: {256: 70.74, 512: 71.33},
    QUARTER: {256: 69.8, 512: 71.68},
}
TABLE = tuple((model, n_active) for n_active in (256, 512) for model in PRINTED)
TOTAL = 1024  # the width of which the text on Figure 5 speaks
NEAR, MATCHES = 2.0, 1.0  # points of accuracy


Cell = tuple[str, int]  # model and active units


def gains(rows: Rows, pairs: Sequence[tuple[Cell, Cell]], of: str, at: str = "last") -> Interval:
    """Points by which models are better than others: averaged over the pairs, in each seed that has all of them."""
    found = []
    for group in rows.groups("seed").values():
        cells = [[group.where(model=model, n_active=n) for model, n in pair] for pair in pairs]
        if all(one and other for one, other in cells):
            found.append(sum(one[0][at] - other[0][at] for one, other in cells) / len(cells))
    if not found:
        raise MissingRowsError(f"no seed has {of} yet")
    return mean_of(found)


def judge_equal_active(rows: Rows, at: str = "last") -> Verdict:
    """Each sparsity against dense at equal active units, averaged over the table's columns."""
    return every(
        *(
            within(
                gains(
                    rows, [((model, n), (DENSE, n)) for n in PRINTED[model]], f"{model} and dense in every column", at
                ),
                least=0.0,
                what=f"{model} minus dense, points:",
            )
            for model in (HALF, QUARTER)
        )
    )


def judge_sparser_and_wider(rows: Rows) -> Verdict:
    """The corner of Table 2 with the widest and sparsest model against the one with the narrowest dense one."""
    corners = gains(rows, [((QUARTER, 512), (DENSE, 256))], "both corners")
    return within(corners, least=0.0, what=f"{QUARTER} at 512 minus dense at 256, points:")


def judge_total_width(rows: Rows) -> Verdict:
    """DSM of the total width against dense of the same."""
    verdicts = []
    for model in (HALF, QUARTER):
        pair = ((model, TOTAL // TIMES[model]), (DENSE, TOTAL))
        interval = gains(rows, [pair], f"{model} and dense of width {TOTAL}")
        verdicts.append(within(interval, least=-MATCHES, what=f"{model} minus dense, points:"))
    return every(*verdicts)


def judge_same_width(rows: Rows) -> Verdict:
    """DSM 50 % against dense of the same total width, averaged over the two widths for which there are both."""
    interval = gains(rows, [((HALF, n), (DENSE, 2 * n)) for n in PRINTED[HALF]], f"{HALF} and dense of both widths")
    return within(interval, least=-MATCHES, most=MATCHES, what=f"{HALF} minus dense of the same width, points:")


def judge_quality(rows: Rows) -> Verdict:
    """Our accuracies less the printed ones, a seed's mean over the table's cells."""
    beyond = []
    for seed in rows.groups("seed").values():
        cells = [
            row["last"] - PRINTED[row["model"]][row["n_active"]]
            for row in seed
            if row["n_active"] in PRINTED[row["model"]]
        ]
        if len(cells) == len(TABLE):
            beyond.append(sum(cells) / len(cells))
    return within(
        mean_of(needed(beyond, "a seed with all of Table 2")),
        least=-NEAR,
        most=NEAR,
        what="ours minus printed, points:",
    )

"""What the accuracies on CIFAR-10 say of Table 2 and Figure 5: models are compared in pairs of one seed."""

from __future__ import annotations

from sparsact_papers.claims import Verdict, every, within
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


def differences(rows: Rows, one: tuple[str, int], other: tuple[str, int], at: str) -> list[float]:
    """Points by which a model at so many active units is better than another, for each seed that has both."""
    found = []
    for group in rows.groups("seed").values():
        pair = [group.where(model=model, n_active=n_active) for model, n_active in (one, other)]
        if all(pair):
            found.append(pair[0][0][at] - pair[1][0][at])
    return found


def mean_gain(gains: list[float], of: str) -> Interval:
    """The mean over seeds, if a seed has all that is compared."""
    if not gains:
        raise MissingRowsError(f"no seed has {of} yet")
    return mean_of(gains)


def judge_equal_active(rows: Rows, at: str = "last") -> Verdict:
    """Each sparsity against dense at equal active units: a seed's differences, averaged over the table's columns."""
    verdicts = []
    for model, columns in ((HALF, PRINTED[HALF]), (QUARTER, PRINTED[QUARTER])):
        gains = []
        for seed in rows.groups("seed").values():
            found = [gain for n in columns for gain in differences(seed, (model, n), (DENSE, n), at)]
            if len(found) == len(columns):
                gains.append(sum(found) / len(found))
        interval = mean_gain(gains, f"{model} and dense in every column")
        verdicts.append(within(interval, least=0.0, what=f"{model} minus dense, points:"))
    return every(*verdicts)


def judge_equal_active_best(rows: Rows) -> Verdict:
    """The same with the best of all epochs."""
    return judge_equal_active(rows, "best")


def judge_sparser_and_wider(rows: Rows) -> Verdict:
    """The corner of Table 2 with the widest and sparsest model against the one with the narrowest dense one."""
    gains = differences(rows, (QUARTER, 512), (DENSE, 256), "last")
    what = f"{QUARTER} at 512 minus dense at 256, points:"
    return within(mean_gain(gains, "both corners"), least=0.0, what=what)


def judge_total_width(rows: Rows) -> Verdict:
    """DSM of the total width against dense of the same."""
    verdicts = []
    for model in (HALF, QUARTER):
        gains = differences(rows, (model, TOTAL // TIMES[model]), (DENSE, TOTAL), "last")
        interval = mean_gain(gains, f"{model} and dense of width {TOTAL}")
        verdicts.append(within(interval, least=-MATCHES, what=f"{model} minus dense, points:"))
    return every(*verdicts)


def judge_same_width(rows: Rows) -> Verdict:
    """DSM 50 % against dense of the same total width, averaged over the two widths for which there are both."""
    gains = []
    for seed in rows.groups("seed").values():
        found = [gain for n in PRINTED[HALF] for gain in differences(seed, (HALF, n), (DENSE, 2 * n), "last")]
        if len(found) == len(PRINTED[HALF]):
            gains.append(sum(found) / len(found))
    interval = mean_gain(gains, f"{HALF} and dense of both widths")
    return within(interval, least=-MATCHES, most=MATCHES, what=f"{HALF} minus dense of the same width, points:")


def judge_quality(rows: Rows) -> Verdict:
    """Our accuracies less the printed ones, a seed's mean over the table's cells."""
    beyond = []
    for seed in rows.groups("seed").values():
        table = [(row["last"], PRINTED[row["model"]].get(row["n_active"])) for row in seed]
        cells = [last - printed for last, printed in table if printed is not None]
        if len(cells) == len(TABLE):
            beyond.append(sum(cells) / len(cells))
    return within(mean_gain(beyond, "all of Table 2"), least=-NEAR, most=NEAR, what="ours minus printed, points:")

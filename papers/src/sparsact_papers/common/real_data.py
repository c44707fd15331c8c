"""Tables that may be absent here, and held-out predictions on them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from sparsact.extras import missing
from sparsact_papers.claims import Outcome, Verdict, every, repetitions_needed, within
from sparsact_papers.intervals import Interval, mean_of
from sparsact_papers.results import MissingRowsError, Rows


def absent(*files: str) -> str | None:
    """Why the first file that is missing from the data folder is missing, with the remedy; None if all are there."""
    from sparsact.datasets.landscapes import data_file  # here: it reads tables by pyarrow

    for file in files:
        try:
            data_file(file)
        except FileNotFoundError as error:
            return str(error)
    return None


def unmet_training(*lacking: str | None) -> str | None:
    """What a training by torch lacks here: torch, or the first of its data that are; None if all are there."""
    torch = None if find_spec("torch") else missing("its training", "torch")
    return next((each for each in (torch, *lacking) if each), None)


AMPLE: Final = 2  # rows for each coefficient from which a prediction is held to its word
TOLERANCE: Final = 0.1
Cell = tuple[str, int, int]  # function, degree, rows


def ratios(rows: Rows, function: str, prediction: str = "predicted") -> dict[Cell, Interval]:
    """Achieved over predicted error, over seeds, of each function, degree and size with ample rows."""
    return {
        key: mean_of([row["mse"] / row[prediction] for row in group])
        for key, group in rows.groups(function, "degree", "n_train").items()
        if key[2] >= AMPLE * group[0]["n_coefficients"]
    }


def near_one(found: Mapping[Cell, Interval], what: str) -> Verdict:
    """Whether every ratio is 1 within the tolerance; reports their number and the ratio farthest off."""
    if not found:
        raise MissingRowsError(f"a ratio of achieved to predicted error ({what}) needs 1, there are 0")
    least, most = 1 - TOLERANCE, 1 + TOLERANCE
    judged = {key: within(ratio, least=least, most=most) for key, ratio in found.items()}
    n_held = sum(verdict.outcome is Outcome.HOLDS for verdict in judged.values())
    n_failed = sum(verdict.outcome is Outcome.DOES_NOT_HOLD for verdict in judged.values())
    farthest = max(found, key=lambda key: abs(found[key].estimate - 1))
    function, degree, m = farthest
    told = (
        f"{what}: {n_held} of {len(judged)} ratios lie within, {n_failed} outside; the farthest is "
        f"{judged[farthest].measured}: {function}, degree {degree}, {m} rows"
    )
    outcome = every(*judged.values()).outcome
    if outcome is Outcome.UNDECIDED:
        undecided = [found[key] for key, verdict in judged.items() if verdict.outcome is outcome]
        wanted = max(repetitions_needed(ratio, least=least, most=most) or 0 for ratio in undecided)
        told += f"; about {wanted:,} repetitions would decide every ratio"
    return Verdict(outcome, told)

"""Choice of degree and penalty by cross-validation: time compared with scikit-learn's GridSearchCV.

The choice is among degrees 1, 2, 3 and 20 penalties by 5 folds, for n = 20 columns and m = 100k rows. GridSearchCV
searches PolynomialFeatures and Ridge. Both sides use the same float64 signs, the same folds and one thread, and both
times include the final fit to all rows. Unit: seconds. Target for LowDegreeRegressorCV: at least 50 times as fast, with
the same scores and the same choice.

GridSearchCV makes 300 fits, which take half an hour at full size; ``--full`` makes them all. Otherwise it runs two
penalties of every degree on ``--folds`` of the folds, and its total is extrapolated: the mean seconds of fit and score
of each degree, times penalties times folds, plus one fit of the choice. Scores and choice are then compared over that
part, which contains our choice.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, KFold

from benchmarks.figures import Check, Figure
from benchmarks.harness import interleaved, timed
from benchmarks.opponents import Rows, pipeline, task
from benchmarks.program import option, program
from sparsact import LowDegreeRegressorCV

SIZE, QUICK = (20, 3, 100_000), (10, 3, 3_000)
DEGREES, N_FOLDS = (1, 2, 3), 5
ALPHAS: Final = tuple(np.logspace(-2, 4, 20).tolist())
Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def ours(rows: Rows, splits: list[Split]) -> LowDegreeRegressorCV:
    """Our search over all candidates."""
    return LowDegreeRegressorCV(DEGREES, ALPHAS, cv=splits, n_jobs=1).fit(*rows)


def theirs(rows: Rows, splits: list[Split], alphas: list[float], *, refit: bool) -> GridSearchCV:
    """scikit-learn's search over every degree and some of the penalties, on some of the folds."""
    grid = {"monomials__degree": list(DEGREES), "ridge__alpha": alphas}
    return GridSearchCV(pipeline(1), grid, scoring="neg_mean_squared_error", cv=splits, refit=refit).fit(*rows)


def fold_errors(search: Any, n_folds: int) -> dict[tuple[int, float], NDArray[np.float64]]:
    """Held-out mean squared error of every fold, for each (degree, alpha); of either side."""
    table = search.cv_results_
    if isinstance(search, LowDegreeRegressorCV):
        pairs = zip(table["degree"].tolist(), table["alpha"].tolist(), strict=True)
        return dict(zip(pairs, table["fold_mse"][:, :n_folds], strict=True))
    keys = [(each["monomials__degree"], each["ridge__alpha"]) for each in table["params"]]
    errors = -np.stack([table[f"split{fold}_test_score"] for fold in range(n_folds)], axis=1)
    return dict(zip(keys, errors, strict=True))


def extrapolated(search: GridSearchCV, chosen_degree: int) -> float:
    """Seconds of the whole search, from the mean of each degree in a part of it."""
    table = search.cv_results_
    tried = np.array(table["param_monomials__degree"], dtype=int)
    of_degree = {d: (table["mean_fit_time"] + table["mean_score_time"])[tried == d].mean() for d in DEGREES}
    last_fit = table["mean_fit_time"][tried == chosen_degree].mean() * N_FOLDS / (N_FOLDS - 1)
    return float(len(ALPHAS) * N_FOLDS * sum(of_degree.values()) + last_fit)


@program(
    option("--full", action="store_true", help="run all of GridSearchCV: half an hour"),
    option("--folds", type=int, default=1, help="folds of the part that is run (default 1)"),
    repeats=3,
)
def main(arguments: Namespace) -> list[Figure]:
    """All figures of the benchmark."""
    n, degree, m = QUICK if arguments.quick else SIZE
    rows = task(n, degree, m)
    splits = list(KFold(N_FOLDS, shuffle=True, random_state=0).split(rows[0]))
    full = arguments.full or arguments.quick
    seconds = interleaved({"ours": lambda: ours(rows, splits)}, arguments.repeats)["ours"]
    mine = ours(rows, splits)
    used = splits if full else splits[: arguments.folds]
    alphas = list(ALPHAS) if full else sorted({mine.alpha_, *ALPHAS[-1:]})
    other, whole = timed(lambda: theirs(rows, used, alphas, refit=full))
    total = whole if full else extrapolated(other, mine.degree_)
    a, b = fold_errors(mine, len(used)), fold_errors(other, len(used))
    difference = max(float(np.abs(a[key] / b[key] - 1).max()) for key in b)
    choices = [min(b, key=lambda key: errors[key].mean()) for errors in (a, b)]
    work = f"n={n} m={m:,} {len(DEGREES)} degrees {len(ALPHAS)} alphas {N_FOLDS} folds"
    how = "measured in full" if full else f"EXTRAPOLATED from {len(b) * len(used)} of 300 fits"
    print(f"GridSearchCV: {how}; of {len(b)} candidates, (degree, alpha): ours {choices[0]}, theirs {choices[1]}")
    return [
        Figure.of(work, "ours", seconds, "s"),
        Figure(work, f"GridSearchCV, {how}", total, "s"),
        Figure.ratio(work, "times as fast", [total] * len(seconds), seconds, least=50),
        Check(work, f"difference of {len(b) * len(used)} fold scores", difference, "", most=1e-8),
        Check(work, f"same choice of {len(b)} candidates", float(choices[0] == choices[1]), "", least=1),
    ]

"""``suggest_rows``: which rows of a table to measure next, by the posterior of a Gaussian process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from sparsact.datasets import Encoding, encoded_table
from sparsact.datasets.cell_values import numbers
from sparsact.datasets.columns import Classes
from sparsact.datasets.combinations import Bits, patterns_of, spelled
from sparsact.datasets.sites import combined
from sparsact.datasets.table_files import Data, resolve
from sparsact.datasets.unseen_rows import left_out, readable
from sparsact.fit.next_rows import SIGNS, Choice, Process, Search, fitted_process, process_of
from sparsact.fit.table_model import FromTable
from sparsact.learners.gp.kernel import Array
from sparsact.learners.gp.prospects import Quantities
from sparsact.memory import has_room
from sparsact.validation.parameters import checked_option, checked_positive, checked_size

Goal = Literal["effects", "variance", "maximum", "minimum"]
MOST_LISTED, SAMPLED = 1 << 16, 1 << 13  # combinations, and candidates drawn from more
MOST_NUMBERS: Final = 1 << 25  # covariances with candidates, a quarter of a gigabyte
MOST_DRAWS: Final = 20  # of kernel and noise
REFERENCE_POINTS: Final = 1 << 10  # whose mean variance stands for all candidates'
MOST_EFFECTS: Final = 1 << 12


@dataclass(frozen=True)
class SuggestedRows:
    """Rows to measure; :func:`suggest_rows` returns them.

    Attributes
    ----------
    table : pyarrow.Table
        Rows in the order in which they were chosen, in the columns and spellings of the table, and last ``gain``.
    notes : tuple of str
        What the gains are, what the candidates were, and how many of them could not be read.
    """

    table: pa.Table
    notes: tuple[str, ...]


def suggest_rows(
    model: FromTable,
    budget: float,
    candidates: Data | None = None,
    goal: Goal = "effects",
    *,
    effects: Sequence[str | Sequence[str]] | None = None,
    costs: str | ArrayLike | None = None,
    measured: Data | None = None,
    repeat: bool = False,
    random_state: int = 0,
) -> SuggestedRows:
    """Choose the rows whose measurement is most informative, as one batch without repeats.

    Each next row has the largest gain given all rows above it: under a Gaussian process, variances after a further row
    are known before it is measured.

    Parameters
    ----------
    model : estimator
        A model from :func:`sparsact.fit_table`, also saved and loaded: a Gaussian process (``model="gp"``) or a model
        of letters. Other models keep no covariances, and need ``measured``.
    budget : int or float
        Number of rows; with ``costs``, what they may cost together.
    candidates : what :func:`sparsact.fit_table` takes, optional
        Table of rows to choose from. By default all combinations of the values of the columns, or letters of the sites;
        of more than 65,536 a sample of 8,192, from which each choice is then improved one column at a time. Rows of
        both tables that cannot be read, for example because of an unknown letter, are left out with a note.
    goal : {"effects", "variance", "maximum", "minimum"}
        ``"effects"``: the least summed variance of effects. ``"variance"``: the least mean variance of predictions for
        the candidates. ``"maximum"``, ``"minimum"``: the largest expected improvement on the best row.
    effects : sequence of str or of sequences of str, optional
        Columns, or sites of letters, and sets of them, whose effects are the goal; by default all of one and two (of
        one, where there would be more than 4,096).
    costs : str or array-like of shape (m,), optional
        Costs of the candidates, or the column of their table that has them. Rows are then chosen by gain over cost.
    measured : what :func:`sparsact.fit_table` takes, optional
        The table of the rows measured so far, with the target: a process is fitted to it, with equal weights. For
        models that are no process, and for rows that are newer than the model.
    repeat : bool
        Whether rows that were measured already may be chosen, once each.
    random_state : int
        Seed of samples, and of the process that is fitted.

    Returns
    -------
    SuggestedRows
        Rows with gains. For effects and variances a gain is the share of today's summed, or mean, variance that the row
        takes away beyond the rows above it, so gains add up; else the expected improvement.

    Raises
    ------
    ValueError
        If the model is no process and ``measured`` is not given, the target is classes or several, a column is a
        number, a name is unknown, a cost is not positive, or there are too few candidates.

    Notes
    -----
    Gains are means over up to 20 draws of kernel and noise: the most probable kernel alone would not look at columns
    that few rows have not shown to matter. Falls of variances are chosen by their product with the roughness near a
    row, the mean square of what measured rows were off when predicted from the others: a measured function may be flat
    here and rough there, and a kernel is not. With N candidates, m measured rows and q effects a draw takes ``m**2 N``
    multiplications, and ``N (m + q)`` for each row. Of more than 4,096 measured rows a random 4,096 give the variances.
    Improvements take the rows above to be as predicted [2]_.

    The fall of summed variances [1]_ was preferred to information about the effects, which counts a tenth of a
    deviation of an effect near zero like a tenth of a large one.

    References
    ----------
    .. [1] K. Chaloner, I. Verdinelli, "Bayesian experimental design: a review", Statistical Science 10, 1995.
    .. [2] D. Ginsbourger, R. Le Riche, L. Carraro, "Kriging is well-suited to parallelize optimization", 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import sparsact as sa
    >>> bits = np.random.default_rng(0).integers(0, 2, (20, 5))
    >>> columns = {name: bits[:, i] for i, name in enumerate("abcde")}
    >>> result = sa.fit_table(pa.table(columns | {"y": bits[:, 0] - 2 * bits[:, 1] * bits[:, 2]}), "y", model="gp")
    >>> found = sa.suggest_rows(result.model, 4)
    >>> found.table.column_names, found.table.num_rows
    (['a', 'b', 'c', 'd', 'e', 'gain'], 4)
    """
    checked_option(goal, "goal", SIGNS)
    if checked_positive(budget, "budget") % 1 and costs is None:
        raise ValueError(f"a budget of {budget:g} is not a number of rows; pass a whole number, or costs.")
    rng = np.random.default_rng(checked_size(random_state, "random_state", 0, 2**32 - 1))
    encoding = Encoding.from_json(model.table_encoding_)
    if isinstance(encoding.targets[0], Classes) or len(encoding.targets) > 1:
        fact = f"{len(encoding.targets)} targets" if len(encoding.targets) > 1 else "a target of classes"
        raise ValueError(f"suggestions need one target of numbers, but the model has {fact}; fit a target of numbers.")
    patterns = patterns_of(encoding)
    if measured is None:
        process, of_measured = process_of(model, encoding), ""
    else:
        process, of_measured = fitted_process(measured, encoding, random_state)
    n_combinations = float(np.prod([len(own) for own in patterns], dtype=float))
    listed = None if candidates is None else _rows_of(candidates, encoding)
    if listed is not None:
        X = listed.X
    elif n_combinations <= MOST_LISTED:
        X = combined(patterns, np.indices([len(own) for own in patterns]).reshape(len(patterns), -1).T)
    else:
        X = combined(patterns, rng.integers(0, [len(own) for own in patterns], (SAMPLED, len(patterns))))
    sampled = patterns if listed is None and n_combinations > MOST_LISTED else None
    price = np.ones(len(X)) if costs is None else _checked_costs(costs, listed)
    room = int(min(budget // price.min(), len(X)))
    quantities = _quantities(goal, effects, process, X, rng)
    n_numbers = len(X) * (len(process.measured) + room + quantities.most)
    if not has_room(8 * n_numbers):
        raise ValueError(
            f"{len(X):,} candidates with {quantities.most:,} effects take {8 * n_numbers / 2**30:.1f} GiB, more than "
            "is free; pass a table of fewer candidates, name fewer effects, or lower the budget."
        )
    beliefs = process.beliefs(min(max(MOST_NUMBERS // n_numbers, 1), MOST_DRAWS), rng)
    search = Search(process, beliefs, [quantities.under(one.system.kernel) for one in beliefs], SIGNS[goal], room)
    rows = search.rows(X, price, budget, sampled, repeat=repeat)
    if costs is not None and not rows:
        raise ValueError(
            f"a budget of {budget:g} buys none of {len(X):,} candidates that cost {price.min():g} or more and are not "
            "measured yet; raise the budget, name more candidates, or allow measured rows (repeat)."
        )
    if costs is None and len(rows) < budget:
        raise ValueError(
            f"a budget of {budget:g} rows needs as many candidates, and {len(rows)} are there that differ and are not "
            "measured yet; lower the budget, name more candidates, or allow measured rows (repeat)."
        )
    bits = np.array([one.row for one in rows], dtype=np.uint8).reshape(len(rows), X.shape[1])
    found = spelled(encoding, bits) if listed is None else listed.table.take([one.place for one in rows])
    gain = "gain"
    while gain in found.column_names:
        gain += "_"
    notes = [_meaning(goal, rows, quantities.words, encoding)]
    if measured is not None:
        notes.append("measured rows count equally: columns of errors, weights and groups are not read.")
    left = {"candidates": "" if listed is None else listed.left_out, "measured rows": of_measured}
    notes += [f"left out of the {what}: {rest}" for what, rest in left.items() if rest]
    if sampled is not None:
        notes.append(
            f"{n_combinations:.3g} combinations are too many to list: each row is the best of {len(X):,} drawn at "
            "random, improved one column at a time."
        )
    gains = pa.array([one.gain for one in rows], pa.float64())
    return SuggestedRows(found.append_column(gain, gains), tuple(notes))


class _Wanted(NamedTuple):
    """Quantities whose variances are to fall: their number and name, and what they are under a kernel."""

    most: int
    words: str
    under: Callable[[Any], Quantities]


def _quantities(
    goal: str, effects: Sequence[str | Sequence[str]] | None, process: Process, X: Bits, rng: np.random.Generator
) -> _Wanted:
    if goal != "effects":
        if effects is not None:
            raise ValueError(f"effects are given, but the goal is {goal}; leave one of the two out.")
        n_points = min(len(X), REFERENCE_POINTS) if goal == "variance" else 0
        reference = process.points(X[rng.permutation(len(X))[:n_points]]) if n_points else process.measured[:0]

        def values(kernel: Any) -> Quantities:
            return Quantities(np.full(n_points, kernel.variance), partial(kernel.covariance, reference))

        return _Wanted(n_points, "mean variance of predictions", values)
    names, levels = process.names, np.array(process.levels)
    if effects is None:
        n_pairs = (levels.sum() ** 2 - (levels**2).sum()) // 2
        sizes = (1, 2) if levels.sum() + n_pairs <= MOST_EFFECTS else (1,)
        subsets = [subset for size in sizes for subset in combinations(range(len(names)), size)]
    elif len(effects):
        wanted = [effects] if isinstance(effects, str) else effects
        sets = [resolve([one] if isinstance(one, str) else list(one), names, "effect") for one in wanted]
        subsets = [tuple(sorted(names.index(name) for name in one)) for one in sets]
    else:
        raise ValueError("no effect is named; name columns, or sets of columns, or leave effects out.")
    most = int(sum(levels[list(subset)].prod(dtype=float) for subset in subsets))
    return _Wanted(
        most, f"summed variance of {most:,} effect{'s' * (most != 1)}", lambda kernel: process.effects(kernel, subsets)
    )


class _Candidates(NamedTuple):
    """Rows of a table that can be read: their bits, their places among all of its rows, and why others are left out."""

    table: pa.Table
    X: Bits
    places: NDArray[np.intp]
    n_all: int
    left_out: str


def _rows_of(candidates: Data, encoding: Encoding) -> _Candidates:
    opened, bits, reasons = encoded_table(candidates, encoding), [], dict[int, str]()
    batches: list[pa.RecordBatch] = []
    for batch in opened.parts.batches(opened.parts.names):
        with batch:
            X, _, unread = readable(encoding, batch)
        bits.append(X)
        reasons |= {batch.overall + place: why for place, why in unread.items()}
        batches.append(batch.columns)
    if not (n_rows := sum(map(len, batches))):
        raise ValueError(f"{opened.parts.name} has no rows below its header; a table of candidates needs some.")
    rest = left_out(reasons, n_rows)
    if len(reasons) == n_rows:
        raise ValueError(f"no candidate can be read ({rest}).")
    places = np.delete(np.arange(n_rows), list(reasons))
    table = pa.Table.from_batches(batches)
    return _Candidates(table.take(places) if reasons else table, np.concatenate(bits), places, n_rows, rest)


def _checked_costs(costs: str | ArrayLike, rows: _Candidates | None) -> Array:
    """Costs of the rows of a table that can be read."""
    if rows is None:
        raise ValueError("costs belong to rows of a table, but there is no table; name one, or drop the costs.")
    if isinstance(costs, str):
        (name,) = resolve([costs], rows.table.column_names, "column")
        found = numbers(rows.table[name].combine_chunks(), name, 0)
    else:
        found = np.asarray(costs, dtype=np.float64)
        found = found[rows.places] if found.shape == (rows.n_all,) else np.empty(0)
    if found.shape != (len(rows.X),) or not (np.isfinite(found) & (found > 0)).all():
        raise ValueError(f"costs must be {rows.n_all} finite numbers above 0, one for each candidate; correct them.")
    return found


def _meaning(goal: str, rows: Sequence[Choice], words: str, encoding: Encoding) -> str:
    """What the gains are, in a sentence."""
    if goal not in ("effects", "variance"):
        target = encoding.target_names[0]
        return f"gain: expected improvement on the {goal} of {target} predicted for a measured row."
    total = sum(one.gain for one in rows)
    return f"gain: share of the {words} that the row is expected to remove; {len(rows)} rows remove {total:.1%}."

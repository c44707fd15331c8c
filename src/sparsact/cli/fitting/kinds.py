"""Which kind of model a table gets: a polynomial of low degree, or hash tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from sparsact.cli.fitting.choice import Wish
from sparsact.cli.fitting.hashed import HashedFit, fit_by_hashing
from sparsact.cli.fitting.work import Fitted, fit_table
from sparsact.cli.progress import Stages
from sparsact.datasets import Table

if TYPE_CHECKING:
    from sparsact.reports.summary import Spread

ASKED = "hash tables, as asked."


def fit_some_kind(
    table: Table, wish: Wish, kind: str, stages: Stages, name: str, words: Sequence[str], *, with_rows: bool
) -> Fitted | HashedFit:
    """Fit the kind asked for, or of ``"auto"`` the one that the columns and held-out rows speak for.

    Columns of bits get a polynomial. Where there are numbers both are fitted, and the better R2 on the same folds wins.
    """
    if kind == "lsh":
        return fit_by_hashing(table, wish, stages, name, words, ASKED, None)
    if kind == "low-degree" or not table.encoding.real:
        return fit_table(table, wish, stages, name, words, with_rows=with_rows)
    if wish.degree is not None:
        return fit_table(table, wish, stages, name, words, with_rows=with_rows)
    polynomial = fit_table(table, replace(wish, domain="real"), stages, name, words, with_rows=with_rows)
    scores = [target.r2 for target in polynomial.summary.targets]
    hashed = fit_by_hashing(table, wish, stages, name, words, "", (polynomial.summary.choice.degree, scores))
    ours, theirs = _mean([target.r2 for target in hashed.summary.targets]), _mean(scores)
    against = f"held-out R² {ours:.3f} against {theirs:.3f} for a polynomial of degree {{}} on the same folds"
    against = against.format(polynomial.summary.choice.degree)
    if ours > theirs:
        return HashedFit(hashed.model, replace(hashed.summary, reason=f"hash tables: {against}."))
    summary = replace(
        polynomial.summary,
        notes=(*polynomial.summary.notes, f"hash tables were tried too, and the polynomial is better: {against}."),
        resources=hashed.summary.resources,
    )
    return Fitted(polynomial.model, summary)


def _mean(scores: Sequence[Spread]) -> float:
    return fmean(spread.mean for spread in scores)

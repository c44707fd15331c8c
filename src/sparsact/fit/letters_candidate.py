"""Sites with letters as a model of a table: fitted once, scored by its own out-of-fold predictions, and decomposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Encoding, Table
from sparsact.fit.explain import TargetResult
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import Stages
from sparsact.fit.sums import RowSample
from sparsact.fit.term import Term
from sparsact.fourier.hoeffding import Anova
from sparsact.learners import LettersRegressor
from sparsact.learners.letters.regressor import LARGEST_GRID

TERMS = 200


def has_letters(encoding: Encoding) -> bool:
    """Whether some site has more than two letters, and no column is a number."""
    return not encoding.real and any(len(letters) > 2 for _, letters in encoding.sites)


def fitted_letters(table: Table, options: FitOptions, sample: RowSample, stages: Stages) -> tuple[Any, HeldOutScores]:
    """A model of all rows, or of a sample of many, and its predictions of each row that have not seen its target.

    These are from the model's own folds, drawn at random, and are scored in those of the table.
    """
    X, y, folds = sample.rows()
    with stages.stage("fitting letters", len(X)) as on_rows:
        model = LettersRegressor(random_state=options.random_state).fit(table.encoding.letters(X), y)
        on_rows(len(X))
    return model, HeldOutScores(y[:, None], model.out_of_fold_[:, None], folds)


def explained_letters(
    targets: Sequence[TargetResult], model: Any, encoding: Encoding, points: NDArray[Any]
) -> tuple[TargetResult, ...]:
    """The target with variances by degree and site of the fitted function, and its largest effects of letters.

    All are under the product of the letters' frequencies in the table. Beyond the largest grid there are none.
    """
    sites = encoding.sites
    sizes = [len(letters) for _, letters in sites]
    if np.prod(sizes, dtype=float) > LARGEST_GRID:
        return tuple(targets)
    known = [letters for _, letters in sites]
    rows = encoding.letters(points).T
    counts = [(column[:, None] == np.array(letters)).sum(axis=0) for letters, column in zip(known, rows, strict=True)]
    found = model.anova(counts, known)

    terms = terms_of_letters(found, sites, TERMS)
    by_site = tuple(zip((name for name, _ in sites), found.variance_by_site().tolist(), strict=True))
    weights = tuple(found.variance_by_degree().tolist())
    return tuple(replace(target, weights=weights, terms=terms, influences=by_site) for target in targets)


def terms_of_letters(found: Anova, sites: Sequence[tuple[str, Sequence[str]]], n_terms: int) -> tuple[Term, ...]:
    """The largest effects of letters and of pairs of them."""

    def label(site: int, letter: int) -> str:
        return f"{sites[site][0]}={sites[site][1][letter]}"

    return tuple(
        Term(tuple(label(*pair) for pair in zip(places, letters, strict=True)), effect, n_bits=0)
        for places, letters, effect in found.top_effects(n_terms)
    )

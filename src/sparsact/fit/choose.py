"""Which models, degrees and penalties are tried on a table, and which of them is taken, by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.datasets.columns import Real
from sparsact.fit.choices import NAMES, TREES, Choices
from sparsact.fit.explain import function_names
from sparsact.fit.gp_candidate import MOST_COLUMNS
from sparsact.fit.letters_candidate import has_letters
from sparsact.fit.lsh_candidate import MAX_SAMPLE
from sparsact.fit.options import FitOptions
from sparsact.fit.scores import CandidateModel, CVCandidate, FoldScores
from sparsact.hypercube import n_subsets
from sparsact.learners import LowDegreeRegressorCV
from sparsact.learners.cube_ensemble import LARGEST_CUBE
from sparsact.learners.low_degree import choose
from sparsact.learners.low_degree.choose import affordable

if TYPE_CHECKING:
    from sparsact.fit.held_out import HeldOutScores

MAX_LISTED = 5_000_000
SINGLE = tuple(kind for kind in NAMES if kind != "ensemble")  # kinds that no polynomial is compared with, if asked for
HANDICAPS = {"lasso": 1.01, "ensemble": 1.01, "gp": 1.1}  # of errors: others explain more; a kernel is the best of four
DOUBTED, FEW_ROWS = 20, 100
NEAR_ZERO = 1e-12  # of the largest error: models this exact are equals
ROWS_FOR_NETWORKS = range(1_000, 100_001)  # unless they are asked for


def domain_of(table: Table, options: FitOptions) -> str:
    """The domain of the learners: ``"cube"`` where every column is bits."""
    return "real" if options.domain == "real" or table.encoding.real else "cube"


def degrees_to_try(
    options: FitOptions, n: int, n_rows: int, domain: str = "cube", *, selects: bool = False
) -> tuple[int, ...]:
    """Degrees from 1 to the one asked for, or to the highest that is affordable.

    Where the degree asked for is costly, only the linear model is compared with it. ``selects`` is for the lasso and
    heredity.
    """
    limits = {"real": domain == "real", "selects": selects}
    if isinstance(options.degree, int):
        if options.degree > n:
            raise ValueError(f"degree {options.degree} is above the number of columns, {n}; choose at most {n}.")
        _refuse_too_many(n, options.degree)
        if not affordable(n, options.degree, n_rows, **limits):
            return 1, options.degree
        return tuple(range(1, options.degree + 1))
    return choose.degrees_to_try(n, n_rows, **limits)


def _refuse_too_many(n: int, degree: int) -> None:
    """Raise if the monomials are too many to list, whatever the solver."""
    count = n_subsets(n, degree, 1)
    if count > MAX_LISTED:
        largest = max((d for d in range(1, degree) if n_subsets(n, d, 1) <= MAX_LISTED), default=0)
        remedy = f"choose degree {largest} or less" if largest else "leave columns out"
        fact = f"degree {degree} of {n} columns has {count:,} monomials, too many to list"
        raise ValueError(f"{fact} (most: {MAX_LISTED:,}); {remedy}.")


@dataclass(frozen=True)
class Selected:
    """The best degree and penalty, and every candidate with its scores."""

    degree: int
    alpha: float
    candidates: tuple[CVCandidate, ...]

    def of_degree(self, degree: int) -> CVCandidate:
        """The best penalty of a degree."""
        return max((c for c in self.candidates if c.degree == degree), key=lambda c: c.r2.mean)


def search_for(table: Table, options: FitOptions) -> LowDegreeRegressorCV:
    """Cross-validation that sums up what every candidate needs, of which there may be fewer once rows are counted."""
    degrees: Any = options.degree
    if options.model in SINGLE:
        degrees = (1,)
    elif degrees != "auto":
        selects = options.lasso or options.heredity != "none"
        n, domain = len(table.feature_names), domain_of(table, options)
        degrees = degrees_to_try(options, n, table.n_rows or 0, domain, selects=selects)
    return LowDegreeRegressorCV(
        degrees=degrees,
        alphas=(options.alpha,) if isinstance(options.alpha, float) else "auto",
        cv=options.folds,
        solver="lasso" if options.lasso else "auto",
        heredity=None if options.heredity == "none" else options.heredity,
        random_state=options.random_state,
        domain=domain_of(table, options),
    )


def select_polynomial(search: LowDegreeRegressorCV, options: FitOptions) -> Selected:
    """Cross-validate every candidate degree from 1 and penalty, by the sums of the folds."""
    if options.model not in SINGLE:
        n, n_rows = search.n_features_in_, search.n_samples_seen_
        selects = search.solver == "lasso" or search.heredity is not None
        search.degrees = degrees_to_try(options, n, n_rows, search.domain, selects=selects)
    results, r2_of_targets = search.cv_results_, search._choice.r2_of_targets
    scored = zip(*(results[name] for name in ("degree", "alpha", "fold_r2", "fold_mse")), r2_of_targets, strict=True)
    candidates = tuple(
        CVCandidate(int(d), float(a), _by_fold(r2), _by_fold(np.sqrt(mse)), tuple(map(_by_fold, of_targets.T)))
        for d, a, r2, mse, of_targets in scored
    )
    selected = Selected(search.degree_, search.alpha_, candidates)
    if isinstance(options.degree, int):
        return replace(selected, degree=options.degree, alpha=selected.of_degree(options.degree).alpha)
    return selected


def _by_fold(scores: NDArray[np.float64]) -> FoldScores:
    return FoldScores(tuple(scores.tolist()))


def models_to_try(table: Table, options: FitOptions, n_rows: int) -> tuple[tuple[str, ...], str]:
    """Kinds of model besides polynomials, by the options and the columns, and why no others."""
    one_function = len(function_names(table.encoding)) == 1
    if options.model not in ("auto", "low-degree", "lsh") and len(table.encoding.targets) > 1:
        raise ValueError(
            f"{NAMES[options.model]} has one target, and {len(table.encoding.targets)} are named; name one of them, "
            "or choose model low-degree."
        )
    on_cube, of_numbers = domain_of(table, options) == "cube", isinstance(table.encoding.targets[0], Real)
    most = LARGEST_CUBE if options.model == "ensemble" else MOST_COLUMNS
    n, narrow = len(table.feature_names), len(table.feature_names) <= most
    if options.model in ("sparse", "gp", "ensemble", "latent") and not (on_cube and one_function):
        fact = "columns of numbers" if one_function else "more than two classes"
        raise ValueError(
            f"{NAMES[options.model]} is one function of columns of bits, and there are {fact}; choose model low-degree."
        )
    if options.model in ("gp", "ensemble") and not (of_numbers and narrow):
        need = f"numbers to predict and at most {most} columns of bits"
        fact = f"there are {n}" if of_numbers else "these are classes"
        raise ValueError(f"{NAMES[options.model]} needs {need}, and {fact}; choose model sparse.")
    several_passes = options.groups is not None and n_rows > MAX_SAMPLE
    if options.model == "lsh" and several_passes:
        raise ValueError(
            f"{NAMES['lsh']} of more than {MAX_SAMPLE:,} rows have folds of rows, not of groups; leave them out."
        )
    letters = of_numbers and has_letters(table.encoding)
    if options.model == "letters" and not letters:
        need = "numbers to predict and columns of letters or categories, one of them with three or more"
        fact = "there are columns of numbers, or no column has three values" if of_numbers else "the target is classes"
        raise ValueError(f"{NAMES['letters']} needs {need}, and {fact}; choose model auto.")
    if options.model == "letters" and options.groups is not None:
        raise ValueError(f"{NAMES['letters']} has folds of rows, not of groups; leave the groups out.")
    if options.model == "latent" and not of_numbers:
        raise ValueError(f"{NAMES['latent']} needs numbers to predict, and these are classes; choose model sparse.")
    if options.model == "ensemble":
        return ("sparse", "lasso", "gp", "ensemble", "trees"), "model ensemble was asked for"
    if options.model != "auto":
        return tuple(kind for kind in NAMES if kind == options.model), f"model {options.model} was asked for"
    if given := options.given:
        return (), f"{' and '.join(given)} {'were' if len(given) > 1 else 'was'} given"
    kinds: tuple[str, ...] = ("lsh",) if table.encoding.real and not several_passes else ()
    if letters and options.groups is None and one_function and on_cube:
        kinds += ("letters",)  # bits of letters exclude one another, and models of bits would search them for minutes
    elif one_function and on_cube:
        kinds += ("sparse", "gp") if of_numbers and narrow else ("sparse",)
        kinds += ("ensemble",) if "gp" in kinds and n <= LARGEST_CUBE else ()
    if one_function and "letters" not in kinds:
        kinds += ("lasso",)
    if n_rows in ROWS_FOR_NETWORKS and one_function and "letters" not in kinds:
        kinds += ("network",)
    if options.weighted:
        return tuple(kind for kind in kinds if kind in ("gp", "lasso")), "other kinds of model take no weights of rows"
    several = "several functions of bits are learned, of which low-degree polynomials are made; model lsh tries another"
    return (*kinds, "trees"), "" if kinds else several


def best_of_fold(selected: Selected, scores: Mapping[str, HeldOutScores], fold: int) -> float:
    """The best held-out R2 of a fold."""
    others = [of_kind.mean_r2 for kind, of_kind in scores.items() if kind != "trees"]
    return max(r2.folds[fold] for r2 in (selected.of_degree(selected.degree).r2, *others))


def select_model(selected: Selected, scores: Mapping[str, HeldOutScores], reason: str, asked: str) -> Choices:
    """The outcome: the model asked for, or else the best held-out R2; of equals the polynomial.

    ``scores`` are those of other kinds of model; ``reason`` says why there are no more of them.
    """
    best, linear = selected.of_degree(selected.degree), selected.of_degree(1)
    name, others = "degree 1 (linear)", []
    if best.degree > 1:
        name, others = f"degree {best.degree}", [CandidateModel(name, linear.r2, linear.rmse)]
    found = {"low-degree": CandidateModel(name, best.r2, best.rmse)}
    for kind, held_out in scores.items():
        rmse = held_out.rmse()
        described = CandidateModel(NAMES.get(kind, TREES), held_out.mean_r2, rmse[0] if len(rmse) == 1 else None)
        if kind == "trees":
            others.insert(0, described)
        else:
            found[kind] = described
    handicaps, safer = HANDICAPS.copy(), "ensemble" if "ensemble" in scores else "gp"
    if safer in scores and len(scores[safer].folds) < FEW_ROWS:  # of few rows, held-out errors say little
        handicaps[safer] = max(0.1, handicaps[safer] - DOUBTED / len(scores[safer].folds))
    errors = {kind: _error(model) * handicaps.get(kind, 1.0) for kind, model in found.items()}
    rounding = NEAR_ZERO * max(errors.values())
    kind = asked if asked in found else min(errors, key=lambda kind: max(errors[kind], rounding))
    winner = found.pop(kind)
    if asked == "auto" and found:
        rival = min(found.values(), key=_error)
        reason = f"; {reason}" * bool(reason)
        compared = f"held-out R² {winner.r2.mean:.3f} against {rival.r2.mean:.3f}"
        if winner.rmse and rival.rmse and winner.r2.mean < rival.r2.mean:  # folds differ much in their variance
            compared = f"held-out RMSE {winner.rmse.mean:.4g} against {rival.rmse.mean:.4g}"
        reason = f"{compared} of {rival.name}, on the same {len(best.r2.folds)} folds{reason}"
    return Choices(reason, (replace(winner, chosen=True), *found.values(), *others), selected.candidates, kind)


def _error(model: CandidateModel) -> float:
    """Mean squared error on held-out rows, of several functions 1 - R2.

    R2 of single folds would give folds of little variance the most weight.
    """
    return 1 - model.r2.mean if model.rmse is None else float(np.mean(np.square(model.rmse.folds)))

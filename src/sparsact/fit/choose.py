"""Which kinds of model are tried on a table, and which of them is taken, by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.fit.candidate import Facts, Fit
from sparsact.fit.candidates import candidates
from sparsact.fit.choices import Choices
from sparsact.fit.scores import CandidateModel, CVCandidate, Selected
from sparsact.statistics.simplest import simplest

DOUBTED: Final = 20
FEW_ROWS: Final = 100
NEAR_ZERO: Final = 1e-12  # of the largest error, that of large penalties included: models this exact are equals


def kinds_to_try(facts: Facts) -> tuple[tuple[str, ...], str]:
    """Kinds of model in the order in which they are fitted, and why no others.

    A ValueError is raised if the requested kind does not suit the table.
    """
    options, known = facts.options, candidates()
    if (asked := known.get(options.model)) is not None:
        n_targets = len(facts.table.encoding.targets)
        if n_targets > 1 and not asked.takes_targets:
            raise ValueError(
                f"{asked.name} takes one target, got {n_targets}; name one target, or choose model low-degree."
            )
        if refusal := asked.refusal(facts):
            raise ValueError(refusal)
        wanted = ("low-degree", *asked.needs, asked.kind)
        return tuple(kind for kind in known if kind in wanted), f"you chose model {options.model}"
    if given := options.given:
        return ("low-degree",), f"{' and '.join(given)} {'were' if len(given) > 1 else 'was'} given"
    kinds = tuple(kind for kind, each in known.items() if each.competes(facts))
    if options.weighted:
        without = [known[kind].name.partition(",")[0] for kind in kinds if not known[kind].takes_weights]
        kinds = tuple(kind for kind in kinds if known[kind].takes_weights)
        return kinds, f"not compared, since they take no row weights: {', '.join(without)}" if without else ""
    several = "with several targets only low-degree polynomials are compared (model lsh also takes several)"
    return kinds, "" if any(known[kind].rank for kind in kinds) else several


def select_model(selected: Selected, fits: Mapping[str, Fit], reason: str, asked: str) -> Choices:
    """The outcome: the requested model, or else the simplest that is as good as the best on held-out rows.

    ``reason`` says why there are no more fits. Errors are multiplied by the handicaps of the kinds and compared, in the
    order of their ranks, by :func:`.simplest`: among models within a standard error of the best, models whose effects
    have intervals come first, and among these the simplest.
    """
    known, others = candidates(), []
    linear, one_function = selected.of_degree(1), len(selected.candidates[0].targets) == 1
    polynomial = "degree 1 (linear)"
    if selected.degree > 1:
        others.append(CandidateModel(polynomial, linear.r2, linear.rmse if one_function else None))
        polynomial = f"degree {selected.degree}"
    found: dict[str, CandidateModel] = {}
    for kind, fit in fits.items():
        rmse, name = fit.held_out.rmse(), polynomial if kind == "low-degree" else known[kind].name
        described = CandidateModel(name, fit.held_out.mean_r2, rmse[0] if len(rmse) == 1 else None, kind=kind)
        if known[kind].rank is None:
            others.insert(0, described)
        else:
            found[kind] = described
    counts = {kind: known[kind].handicap for kind in found}
    safer = "ensemble" if "ensemble" in fits else "gp"
    if safer in fits and len(fits[safer].held_out.folds) < FEW_ROWS:  # of few rows, held-out errors say little
        counts[safer] = max(0.1, counts[safer] - DOUBTED / len(fits[safer].held_out.folds))
    without = {kind for kind in found if not known[kind].has_intervals}
    without |= {"low-degree"} & found.keys() if selected.interpolates else set()
    kinds = sorted(found, key=lambda kind: (kind in without, known[kind].rank or 0))
    errors = np.array([_errors(found[kind]) for kind in kinds])
    counted = np.array([counts[kind] for kind in kinds])[:, None] * errors
    of_penalties = [_errors(candidate) for candidate in selected.candidates] if one_function else [np.ones(1)]
    rounding = NEAR_ZERO * float(max(np.mean(each) for each in [*counted, *of_penalties]))
    place = kinds.index(asked) if asked in found else simplest(counted, rounding)
    kind, winner = kinds[place], found.pop(kinds[place])
    if asked == "auto" and found:
        rival = min(found, key=lambda kind: float(_errors(found[kind]).mean()))
        compared = _scores_of_both(winner, found[rival])
        if _errors(found[rival]).mean() - _errors(winner).mean() > rounding:
            trees = next((other for other in others if other.kind == "trees"), winner)
            but = " except boosted trees, which have no effects" if trees.r2.mean > winner.r2.mean else ""
            rule = f"it predicts held-out rows best{but}"
        else:
            rule = "it is the simplest model within a standard error of the best"
        if kind in without:  # which is last among equals
            rule += ", and in paired folds every model with effect intervals is more than a standard error worse"
        pairs = [f"{known[each].name} times {counts[each]:.3g}" for each in (kind, rival) if counts[each] != 1]
        if pairs and simplest(errors, rounding) != place:  # the factors have decided
            rule += f", counting errors of {' and of '.join(pairs)}"
        reason = f"{rule}: {compared}, on the same {len(linear.r2.folds)} folds{f'; {reason}' * bool(reason)}"
    models = (replace(winner, chosen=True), *found.values(), *others)
    choices = Choices(reason, models, selected.candidates, kind, known[kind].terms_of)
    if kind in without and (with_intervals := [each for each in found if each not in without]):
        best = min(with_intervals, key=lambda each: float(_errors(found[each]).mean()))
        choices = replace(choices, for_intervals=f"For intervals: model={best!r}, held-out R² {found[best].r2.short}.")
    return choices


def _scores_of_both(winner: CandidateModel, rival: CandidateModel) -> str:
    """Held-out scores of the chosen model and of the best other model, in the order of the errors that chose.

    If folds differ much in variance or have no R2, the mean R2 may rank otherwise: then the scores are errors.
    """
    ahead = _errors(winner).mean() <= _errors(rival).mean()
    ours, theirs = winner.r2, rival.r2
    by_r2 = ours.short != theirs.short and (ours.mean >= theirs.mean) == ahead
    if by_r2 or winner.rmse is None or rival.rmse is None:
        return f"held-out R² {ours.short} against {theirs.short} of {rival.name}"
    roots = [float(np.sqrt(_errors(model).mean())) for model in (winner, rival)]
    return f"held-out RMSE {roots[0]:.4g} against {roots[1]:.4g} of {rival.name}"


def _errors(model: CandidateModel | CVCandidate) -> NDArray[np.float64]:
    """Mean squared error of each fold; of several functions 1 - R2, where it is defined.

    R2 of single folds would give folds of little variance the most weight.
    """
    if model.rmse is None:
        return np.asarray(np.nan_to_num(1 - np.array(model.r2.folds), nan=0.0))
    return np.asarray(np.square(model.rmse.folds))

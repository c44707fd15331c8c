"""The sentence that says why a model was chosen is the rule that has chosen it."""

from dataclasses import replace

import numpy as np
import pytest

from sparsact.cli.terminal import as_options
from sparsact.fit.candidate import Fit
from sparsact.fit.candidates import candidates
from sparsact.fit.choose import select_model
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.scores import CVCandidate, FoldScores, LowDegreeInfo, Selected

FOLDS = np.repeat(np.arange(5), 50)
Y = np.random.default_rng(0).normal(size=(250, 1))
SPREAD = np.array([1.0, 1.3, 0.7, 1.1, 0.9])  # of errors over the folds


def scored(*errors):
    """Held-out scores whose root mean squared errors are these."""
    signs = np.where(np.arange(250) % 2, 1.0, -1.0)[:, None]
    return HeldOutScores(Y, Y + signs * np.array(errors)[FOLDS, None], FOLDS)


def chosen(asked="auto", interpolates=False, **errors):
    """The choice among kinds with errors by fold, the first that of degree 1."""
    found = {kind.replace("_", "-"): Fit(None, scored(*each)) for kind, each in errors.items()}
    linear = found["low-degree"].held_out
    candidate = CVCandidate(1, 0.0, linear.mean_r2, linear.rmse()[0], (FoldScores(linear.mean_r2.folds),))
    return select_model(Selected(1, 0.0, (candidate,), interpolates), found, "", asked)


def test_the_best_is_called_the_best():
    choices = chosen(low_degree=2 * SPREAD, sparse=SPREAD)
    assert choices.kind == "sparse"
    assert choices.reason.startswith("it predicts held-out rows best: held-out R² ")
    assert choices.reason.endswith(" of degree 1 (linear), on the same 5 folds")


def test_the_simplest_within_a_standard_error_is_called_so():
    """By hand: squared errors of 1, 1.69, .49, 1.21, .81 against all 1: their mean, 1.04, is .04 above."""
    choices = chosen(low_degree=SPREAD, sparse=np.ones(5))
    assert choices.kind == "low-degree"
    assert choices.reason.startswith("it is the simplest model within a standard error of the best: held-out R")
    rmse = np.sqrt(1.04)
    assert np.sqrt(np.mean(SPREAD**2)) == pytest.approx(rmse)
    told = choices.reason.partition("RMSE ")[2]
    assert not told or told.startswith(f"{rmse:.4g} against 1 of a sparse polynomial")


def test_factors_that_decide_are_told():
    """A process 3 % ahead in each fold would be best, if its errors did not count 1.1 times."""
    choices = chosen(low_degree=SPREAD, gp=np.sqrt(0.97) * SPREAD)
    assert choices.kind == "low-degree"
    assert "within a standard error of the best, counting errors of a Gaussian process times 1.1" in choices.reason
    without = chosen(low_degree=3 * SPREAD, lasso=SPREAD, gp=np.sqrt(0.97) * SPREAD)
    assert without.kind == "lasso"
    assert without.reason.index("every model with effect intervals") < without.reason.index("counting errors of")


def test_a_polynomial_that_interpolates_has_no_intervals():
    """Among equals it comes last; if it is clearly the best, it is chosen."""
    assert chosen(low_degree=SPREAD, letters=SPREAD).kind == "low-degree"
    assert chosen(interpolates=True, low_degree=0.99 * SPREAD[::-1], letters=SPREAD).kind == "letters"
    ahead = chosen(interpolates=True, low_degree=0.5 * SPREAD, letters=SPREAD)
    assert ahead.kind == "low-degree"
    assert "every model with effect intervals is more than a standard error worse" in ahead.reason


def test_of_equals_the_one_with_intervals_is_chosen():
    """A lasso has none; a process is taken before it, unless the lasso is ahead for certain."""
    choices = chosen(low_degree=3 * SPREAD, lasso=SPREAD, gp=0.95 * SPREAD[::-1])
    assert (choices.kind, candidates()["gp"].has_intervals) == ("gp", True)
    ahead = chosen(low_degree=3 * SPREAD, lasso=0.5 * SPREAD, gp=SPREAD)
    assert (ahead.kind, candidates()["lasso"].has_intervals) == ("lasso", False)
    assert ahead.reason.startswith(
        "it predicts held-out rows best, and in paired folds every model with effect intervals"
    )
    r2 = next(model.r2.short for model in ahead.models if model.kind == "gp")
    assert ahead.for_intervals == f"For intervals: model='gp', held-out R² {r2}."
    assert choices.for_intervals == ""
    lasso = replace(ahead, low_degree=LowDegreeInfo(1, 0.1, 3, "lasso", ""))
    assert as_options(lasso.terms_of).endswith(f" For intervals: --model gp, held-out R² {r2}.")


def test_boosted_trees_that_are_ahead_are_not_passed_over_in_silence():
    choices = chosen(low_degree=2 * SPREAD, sparse=SPREAD, trees=0.5 * SPREAD)
    assert choices.reason.startswith("it predicts held-out rows best except boosted trees, which have no effects: ")


def test_kinds_with_intervals_come_first():
    ranked = sorted((each for each in candidates().values() if each.rank is not None), key=lambda each: each.rank)
    with_intervals = [each.has_intervals for each in ranked]
    assert with_intervals == sorted(with_intervals, reverse=True)

"""Sparsely activated networks of a table: a first look that says whether they are worth it, then one for each fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Table
from sparsact.datasets.columns import Classes
from sparsact.fit.candidate import CandidateKind, Details, Facts, Findings, Fit, FitRun, Targets
from sparsact.fit.candidates import candidates
from sparsact.fit.explain import explained
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import FitOptions
from sparsact.learners import SparselyActivatedClassifier, SparselyActivatedRegressor
from sparsact.reports.chapter import Chapter, TextTable
from sparsact.reports.numbers import number

MOST_ROWS: Final = 20_000  # that a network is fitted to
ROWS_OF_LOOK, UNITS_OF_LOOK = 4_000, 32
ROWS_FOR_NETWORKS: Final = range(1_000, 100_001)  # unless they are asked for
ACTIVE: Final = (4, 1)  # the first holds the networks of fewer active units
# A quick network's error over the best other model's, at which a larger one of all rows may win.
PROMISING: Final = 4 / 3
SAME: Final = 1.05  # errors this close are the same, and fewer active units win
RESTARTS: Final = 2  # where descents find better networks than trees do
COLUMNS_NAMED: Final = 3
UNITS_LISTED, UNITS_ON_PAGE = 8, 20

Network = SparselyActivatedRegressor | SparselyActivatedClassifier


@dataclass(frozen=True)
class UnitInfo:
    """A unit of a network: its output weight, its columns of largest weight, the share of rows that switch it on."""

    output: float
    columns: tuple[str, ...]
    share: float | None = None


@dataclass(frozen=True)
class NetworkInfo(Details):
    """A sparsely activated network: its units, by their share of rows, and how many of them a row switches on.

    ``max_active`` is the number k that was chosen, and ``most_active`` the most at any of the ``n_rows`` rows fitted.
    With more than two classes the numbers describe the largest network.
    """

    n_units: int
    max_active: int
    most_active: int
    n_rows: int
    origin: str
    units: tuple[UnitInfo, ...]

    @property
    def size(self) -> str:
        """Its size, in words."""
        return (
            f"{self.n_units:,} ReLU units, at most {self.most_active} active at any of the {self.n_rows:,} rows fitted "
            f"(found by {self.origin})"
        )

    def lines(self) -> list[str]:
        """The size, and the units that are on most often."""
        shares = ["" if unit.share is None else f"{unit.share:.1%}" for unit in self.units[:UNITS_LISTED]]
        found = zip(shares, self.units, strict=False)
        rows = [f"{share:>7}  {unit.output:>+10.4g}  {', '.join(unit.columns)}" for share, unit in found]
        return [self.size, " active      output  columns with the largest weights", *rows]

    def to_dict(self) -> dict[str, Any]:
        """The entry ``network``."""
        return {"network": asdict(self)}

    def chapter(self, n_rows: int) -> Chapter:
        """The units that are on most often, as a table."""
        shown, more = self.units[:UNITS_ON_PAGE], len(self.units) - UNITS_ON_PAGE
        table = TextTable(
            "Units",
            ("active at rows", "output weight", "columns with the largest weights"),
            tuple((f"{unit.share:.1%}", number(unit.output), ", ".join(unit.columns)) for unit in shown),
            numbers=2,
            remark=f"{more} more units are active at fewer rows." if more > 0 else "",
        )
        text = (
            f"The network has {self.size}. A unit adds its output weight times its pre-activation where that is "
            "positive, and 0 elsewhere."
        )
        chosen = f"at most {self.max_active} of 1 and 4 for a row, by the error of quick fits on the first fold"
        facts = (("active units", chosen),)
        return Chapter("units", "Units of the network", text, table=table, facts=facts)


@dataclass(frozen=True)
class FirstLook:
    """The best of some quick networks: R2 on the rows of the first fold, active units, restarts that it took."""

    r2: float
    max_active: int
    n_restarts: int


def best_of_fold(run: FitRun, fold: int) -> float:
    """The best held-out R2 of a fold so far, of models that may be chosen."""
    known = candidates()
    return max(fit.held_out.mean_r2.folds[fold] for kind, fit in run.fits.items() if known[kind].rank is not None)


def missing_class(table: Table, y: NDArray[np.float64], folds: NDArray[np.intp]) -> str:
    """Why networks cannot learn every class outside of each fold, empty where they can."""
    target = table.encoding.targets[0]
    if isinstance(target, Classes):
        for number, name in enumerate(target.values):
            if len(np.unique(folds[y == number])) < 2:
                return f"networks need every class outside of each fold, but class {name!r} is in one fold only"
    return ""


def networks_of(model: Network) -> list[SparselyActivatedRegressor]:
    """The networks of a model: of classes one or several."""
    return model.estimators_ if isinstance(model, SparselyActivatedClassifier) else [model]


def network_info(model: Network, names: Sequence[str], X: NDArray[Any] | None = None) -> NetworkInfo:
    """What a fitted model consists of, and where each unit is on among these rows."""
    largest = max(networks_of(model), key=lambda learner: int(learner.network_.s))
    network, certificate = largest.network_, largest.certificate_
    shares = None if X is None else network.active(largest._inputs(X)).mean(axis=0)
    weights = np.abs(network.W)
    units = tuple(
        UnitInfo(
            float(network.u[j]),
            tuple(names[i] for i in np.argsort(-weights[j], kind="stable")[:COLUMNS_NAMED] if weights[j, i]),
            None if shares is None else float(shares[j]),
        )
        for j in (range(network.s) if shares is None else np.argsort(-shares, kind="stable"))
    )
    n_rows = sum(certificate.distribution or ())
    return NetworkInfo(network.s, int(model.max_active), certificate.max_active, n_rows, largest.origin_, units)


def _labels(table: Table, y: NDArray[np.float64]) -> NDArray[Any]:
    target = table.encoding.targets[0]
    return target.labelled(y) if isinstance(target, Classes) else y


def _estimator(table: Table, options: FitOptions, max_active: int, **changed: int) -> Network:
    classes = isinstance(table.encoding.targets[0], Classes)
    kind = SparselyActivatedClassifier if classes else SparselyActivatedRegressor
    return kind(
        max_active=max_active, domain=options.domain_of(table.encoding), random_state=options.random_state, **changed
    )


@dataclass(frozen=True)
class NetworkCandidate(CandidateKind):
    """Sparsely activated networks."""

    kind, name, rank = "network", "a sparsely activated network", 8
    searches_bits, has_intervals = True, False
    most_rows: int = MOST_ROWS
    rows_of_look: int = ROWS_OF_LOOK
    active: tuple[int, ...] = ACTIVE
    restarts: int = RESTARTS

    def competes(self, facts: Facts) -> bool:
        """They compete for one function, with enough rows but not too many to be quick."""
        return facts.n_rows in ROWS_FOR_NETWORKS and facts.one_function and super().competes(facts)

    def fit(self, run: FitRun) -> Fit | str:
        """A network, or why a quick look promises too little, unless it was requested."""
        is_asked = run.options.model == self.kind
        _, y, folds = run.sample.at_most(self.most_rows)
        if missing := missing_class(run.table, y, folds):
            if is_asked:
                raise ValueError(f"{missing}: leave them out, or choose model low-degree.")
            return missing
        with run.stages.stage("looking at networks"):
            best = 1.0 if is_asked else best_of_fold(run, 0)
            enough = None if is_asked else 1 - PROMISING * (1 - best)
            look = self._first_look(run, enough)
        if enough is not None and look.r2 <= enough:
            return (
                f"a quick look at a sparsely activated network had R² {look.r2:.3f} on the first fold, where the best "
                f"other model had {best:.3f}"
            )
        return self._fitted(run, look)

    def _first_look(self, run: FitRun, enough: float | None) -> FirstLook:
        """Quick networks fitted to some rows outside of the first fold, judged on that fold.

        ``enough`` is the R2 there that makes networks worth their time. Where trees of gates exceed it, descents are
        not tried, and where nothing does, fewer active units are not. None if networks are fitted in any case.
        """
        table, (X, y, folds) = run.table, run.sample.at_most(self.most_rows)
        target, fold, others = table.encoding.targets[0], folds == 0, np.flatnonzero(folds)
        seen = others[: self.rows_of_look]
        if isinstance(target, Classes):  # every one of them
            seen = np.union1d(seen, others[np.unique(y[others], return_index=True)[1]])
        found: list[FirstLook] = []
        for k in self.active:
            for n_restarts in (1,) if enough is None else (0, 1):
                quick = _estimator(table, run.options, k, n_units=UNITS_OF_LOOK, n_restarts=n_restarts)
                model = quick.fit(X[seen], _labels(table, y[seen]))
                r2 = HeldOutScores.of([model].__getitem__, target, X[fold], y[fold], folds[fold]).mean_r2.mean
                descended = any("descent" in learner.origin_ for learner in networks_of(model))
                found.append(FirstLook(r2, k, self.restarts if descended else 0))
                if enough is not None and r2 > enough:
                    break
            largest = max(found, key=lambda look: look.r2)
            if enough is not None and largest.r2 <= enough:
                return largest
        return min((look for look in found if 1 - look.r2 <= SAME * (1 - largest.r2)), key=lambda look: look.max_active)

    def _fitted(self, run: FitRun, look: FirstLook) -> Fit:
        """A network of every row, or of a sample of many, and how networks predict the rows of folds left out."""
        X, y, folds = run.sample.at_most(self.most_rows)
        labels = _labels(run.table, y)
        with run.stages.stage("fitting networks", (run.options.folds + 1) * len(X)) as on_rows:

            def without(fold: int | None) -> Network:
                rows = slice(None) if fold is None else folds != fold
                model = _estimator(run.table, run.options, look.max_active, n_restarts=look.n_restarts)
                model.fit(X[rows], labels[rows])
                on_rows(len(X))
                return model

            whole = without(None)
            return Fit(whole, HeldOutScores.of(without, run.table.encoding.targets[0], X, y, folds))

    def findings(self, run: FitRun, fit: Fit, targets: Targets) -> Findings:
        """The units are shown, and the terms of the best polynomial, as a network has none."""
        X, _, _ = run.sample.rows()
        polynomial = run.sums.models(run.selected, run.options.domain_of(run.table.encoding)).whole
        network = network_info(fit.model, run.table.feature_names, X)
        return explained(targets, polynomial, run.table.encoding, X), network


CANDIDATE: Final = NetworkCandidate()

"""A kind of model that competes on a table: where it applies, how it is fitted and explained."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final

from sparsact.datasets import Table
from sparsact.datasets.columns import Real
from sparsact.fit.explain import explained, function_names
from sparsact.fit.fold_sums import FoldSums
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.logarithms import gains_of_logarithms
from sparsact.fit.options import FitOptions
from sparsact.fit.scores import Selected
from sparsact.fit.target_result import TargetResult
from sparsact.passes.progress import Stages
from sparsact.passes.resumable import Checkpoint
from sparsact.reports.chapter import Chapter
from sparsact.statistics.row_sample import RowSample

MOST_ROWS: Final = 30_000  # whose held-out predictions are compared and weighted
FitParts = tuple[Table, FitOptions, RowSample, Stages]
Targets = tuple[TargetResult, ...]
Findings = tuple[Targets, "Details"]  # targets with their parts, and details of the kind


@dataclass
class Facts:
    """What decides which kinds of model a table allows."""

    table: Table
    options: FitOptions
    n_rows: int

    @property
    def n(self) -> int:
        """Columns."""
        return len(self.table.feature_names)

    @property
    def one_function(self) -> bool:
        """Whether there is one target, of numbers or of two classes."""
        return len(function_names(self.table.encoding)) == 1

    @property
    def of_numbers(self) -> bool:
        """Whether targets are numbers."""
        return isinstance(self.table.encoding.targets[0], Real)

    @property
    def of_bits(self) -> bool:
        """Whether one function of columns of bits is learned."""
        return self.one_function and self.options.domain_of(self.table.encoding) == "cube"

    @property
    def of_letters(self) -> bool:
        """Whether letters compete: their bits exclude one another, and models of bits would search them for minutes."""
        return self.of_numbers and self.of_bits and self.options.groups is None and self.table.encoding.has_letters


@dataclass(frozen=True)
class Fit:
    """A model of all rows, its scores on rows that it has not seen, and further models of its kind by name.

    What takes time and decides nothing, such as the model of a polynomial, may wait for :meth:`CandidateKind.finished`.
    ``members`` is empty or, for ensembles, holds all models of the kind, this one among them.
    """

    model: Any
    held_out: HeldOutScores
    members: Mapping[str, Fit] = field(default_factory=dict)

    @property
    def mean_r2(self) -> float:
        """Mean held-out R2."""
        return self.held_out.mean_r2.mean


@dataclass
class FitRun(Facts):
    """Data that models are fitted to, and the models fitted so far; ``kinds`` lists all that will be."""

    stages: Stages
    checkpoint: Checkpoint
    sums: FoldSums
    selected: Selected
    kinds: tuple[str, ...]
    fits: dict[str, Fit] = field(default_factory=dict)

    @property
    def sample(self) -> RowSample:
        """Rows that models are fitted to where they are not made of the sums."""
        return self.sums.sample

    @cached_property
    def gains_of_logarithms(self) -> tuple[float, ...]:
        """What the logarithm of each target gains."""
        return gains_of_logarithms(self.table.encoding, self.sums)

    @property
    def parts(self) -> FitParts:
        """Arguments shared by all fitting functions."""
        return self.table, self.options, self.sample, self.stages


class Details:
    """Facts special to a kind of model; this class itself holds none.

    Attributes
    ----------
    has_effects : bool
        Whether a page lists the effects of columns.
    function : str
        The function whose effects letters have, in words.
    """

    has_effects: ClassVar[bool] = True
    function: ClassVar[str] = "fitted function"

    @property
    def by_posterior(self) -> bool:
        """Whether intervals of effects come from a posterior."""
        return False

    def lines(self) -> list[str]:
        """The facts as lines of text."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """The entries of :meth:`.FitResult.to_dict` that they fill."""
        return {}

    def chapter(self, n_rows: int) -> Chapter:
        """The facts on the page of a fit to ``n_rows`` rows."""
        return Chapter()


class CandidateKind(ABC):
    """A kind of model.

    Attributes
    ----------
    kind, name : str
        In options and in JSON, and in sentences.
    rank : int or None
        Place in the order of preference among models that are as good as each other: kinds whose effects have intervals
        come first, and of these the fewer and plainer the effects, the earlier. One without a place is only compared.
    terms_of : str
        What the terms of the targets are, in a sentence; empty if a polynomial's facts say it.
    handicap : float
        Factor of its held-out error in comparisons, as other kinds explain more.
    has_intervals, is_polynomial, takes_weights, takes_targets, searches_bits : bool
        Whether effects have intervals, a polynomial results, rows may have weights, targets may be several, and whether
        it would search the bits of letters for long: it is then left out where models of letters compete.
    most_rows : int
        Rows that it looks at, at most: a sample of a larger table.
    needs : tuple of str
        Kinds besides low-degree polynomials that are fitted before it where it is requested.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    rank: ClassVar[int | None] = None
    terms_of: ClassVar[str] = ""
    handicap: ClassVar[float] = 1.0
    has_intervals: ClassVar[bool] = True
    is_polynomial: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False
    takes_targets: ClassVar[bool] = False
    searches_bits: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    most_rows: int = MOST_ROWS

    def refusal(self, facts: Facts) -> str:
        """Why a table has no such model, in a sentence with a remedy; empty where it may have one."""
        return ""

    def competes(self, facts: Facts) -> bool:
        """Whether it is compared if no kind is requested."""
        return not self.refusal(facts) and not (self.searches_bits and facts.of_letters)

    @abstractmethod
    def fit(self, run: FitRun) -> Fit | str:
        """A model of all rows and its held-out scores, or why an early check predicts no gain; may be empty."""

    def finished(self, fit: Fit, run: FitRun) -> Fit:
        """The fit with the model to keep once the kind is chosen."""
        return fit

    def findings(self, run: FitRun, fit: Fit, targets: Targets) -> Findings:
        """Each target with its parts (for a polynomial its terms), and details of the kind."""
        if self.is_polynomial:
            targets = explained(targets, fit.model, run.table.encoding, run.sample.rows()[0])
        return targets, Details()


def refused_without_bits(facts: Facts, name: str) -> str:
    """Why models of bits do not apply to a table."""
    if facts.of_bits:
        return ""
    fact = "columns of numbers" if facts.one_function else "more than two classes"
    return f"{name} fits one function of columns of bits, but there are {fact}; choose model low-degree."

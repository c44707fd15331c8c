"""A kind of model that competes on a table with polynomials: where it applies, how it is fitted and explained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sparsact.datasets import Table
from sparsact.datasets.columns import Encoding, Real
from sparsact.fit.choose import Selected, domain_of
from sparsact.fit.explain import TargetResult, explained, function_names
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import FitOptions
from sparsact.fit.sums import FoldModels, FoldSums, RowSample, as_numbers
from sparsact.passes.progress import Stages
from sparsact.passes.resumable import Checkpoint

if TYPE_CHECKING:
    from sparsact.fit.latent_candidate import LatentInfo
    from sparsact.fit.layout import LayoutInfo
    from sparsact.fit.network_candidate import NetworkInfo

MOST_ROWS: Final = 30_000  # whose held-out predictions are compared and weighted
Fitted = tuple[Any, HeldOutScores]
Targets = tuple[TargetResult, ...]


def has_letters(encoding: Encoding) -> bool:
    """Whether some site has more than two letters, and no column is a number."""
    return not encoding.real and any(len(letters) > 2 for _, letters in encoding.sites)


@dataclass(frozen=True)
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
        return self.one_function and domain_of(self.table, self.options) == "cube"

    @property
    def of_letters(self) -> bool:
        """Whether letters compete: their bits exclude one another, and models of bits would search them for minutes."""
        return self.of_numbers and self.of_bits and self.options.groups is None and has_letters(self.table.encoding)


@dataclass
class FitRun:
    """Data that models are fitted to, and the models fitted so far; ``kinds`` lists all that will be.

    ``members`` are models of an ensemble, and ``reason`` says why there are no more kinds.
    """

    table: Table
    options: FitOptions
    stages: Stages
    checkpoint: Checkpoint
    sums: FoldSums
    selected: Selected
    kinds: tuple[str, ...]
    reason: str
    fitted: dict[str, Fitted] = field(default_factory=dict)
    members: dict[str, Fitted] = field(default_factory=dict)

    @property
    def sample(self) -> RowSample:
        """Rows that models other than polynomials are fitted to."""
        return self.sums.sample

    @property
    def parts(self) -> tuple[Table, FitOptions, RowSample, Stages]:
        """Arguments shared by all fitting functions."""
        return self.table, self.options, self.sample, self.stages

    def polynomial(self, sums: FoldSums, selected: Selected) -> Fitted:
        """The polynomial that cross-validation has chosen, and its held-out scores, of a sample of many rows."""
        X, y, folds = sums.sample.at_most(MOST_ROWS)
        weights = sums.sample.weights[sums.sample.smallest(MOST_ROWS)] if self.options.weighted else None
        polynomials = self.polynomials(sums, selected)
        actual = as_numbers(self.table.encoding.targets[0], y).reshape(len(y), -1)
        return polynomials.whole, HeldOutScores(actual, polynomials.held_out(X, folds), folds, weights=weights)

    def polynomials(self, sums: FoldSums, selected: Selected) -> FoldModels:
        """The polynomial that cross-validation has chosen, of all rows and by fold."""
        return sums.models(selected.degree, selected.alpha, domain_of(self.table, self.options))

    def best_of_fold(self, fold: int) -> float:
        """The best held-out R2 of a fold so far."""
        others = [scores.mean_r2 for kind, (_, scores) in self.fitted.items() if kind != "trees"]
        return max(r2.folds[fold] for r2 in (self.selected.of_degree(self.selected.degree).r2, *others))


@dataclass(frozen=True)
class ModelFindings:
    """Findings about a model: its targets, and what is special to its kind."""

    targets: Targets
    layout: LayoutInfo | None = None
    network: NetworkInfo | None = None
    latent: LatentInfo | None = None


class CandidateKind:
    """A kind of model besides polynomials of all products.

    ``handicap`` multiplies its held-out error where it is compared, as others explain more; ``terms_of`` says whose
    the terms of the targets are; ``needs`` are the kinds that are fitted before it where it is asked for.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    terms_of: ClassVar[str] = ""
    handicap: ClassVar[float] = 1.0
    is_polynomial: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()

    def refusal(self, facts: Facts) -> str:
        """Why a table has no such model, in a sentence with a remedy; empty where it may have one."""
        return ""

    def competes(self, facts: Facts) -> bool:
        """Whether it is compared if no kind is requested."""
        return not self.refusal(facts)

    def fit(self, run: FitRun) -> Fitted | None:
        """A model of all rows and its held-out scores, or None if an early check predicts no gain."""
        raise NotImplementedError

    def finished(self, model: Any, run: FitRun) -> Any:
        """The model to keep once it is chosen."""
        return model

    def findings(self, run: FitRun, model: Any, scores: Any, targets: Targets, encoding: Encoding) -> ModelFindings:
        """Findings about the chosen model: for a polynomial its terms."""
        return ModelFindings(
            explained(targets, model, encoding, run.sample.rows()[0]) if self.is_polynomial else targets
        )


def refused_without_bits(facts: Facts, name: str) -> str:
    """Why models of bits do not apply to a table."""
    if facts.of_bits:
        return ""
    fact = "columns of numbers" if facts.one_function else "more than two classes"
    return f"{name} learns one function of columns of bits, and there are {fact}; choose model low-degree."


def mean_r2(fitted: Fitted) -> float:
    """Mean held-out R2."""
    return fitted[1].mean_r2.mean

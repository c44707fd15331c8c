"""What a fit of a table finds: the model, its scores, the choices made, and what each target consists of."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact import files, registry
from sparsact.extras import EXTRAS, missing
from sparsact.fit.candidate import Details
from sparsact.fit.scores import LOW_DEGREE_FACTS, TERMS_OF_LETTERS, Choices, Confusion, Scores
from sparsact.fit.term import effect_format
from sparsact.notebook import html_table, to_pandas
from sparsact.reports.numbers import duration, size

if TYPE_CHECKING:
    from sparsact.datasets import Encoding
    from sparsact.datasets.table_files import Data
    from sparsact.fit.reference import Reference
    from sparsact.fit.scored_table import ScoredTable
    from sparsact.fit.suggest import Goal, SuggestedRows
    from sparsact.fit.target_result import TargetResult

TERMS_SHOWN: Final = 8
FEW_ROWS: Final = 200
LEAST_SHARE: Final = 0.1  # of the variance, that is not called nothing even if the folds differ by more


@dataclass(frozen=True)
class Resources:
    """Seconds of each stage, and the most memory that the process held."""

    stages: tuple[tuple[str, float], ...]
    peak_bytes: int

    @property
    def seconds(self) -> float:
        """All stages together."""
        return sum(seconds for _, seconds in self.stages)


@dataclass(frozen=True)
class FitResult:
    """A fitted model and what was found on the way; :func:`sparsact.fit_table` returns one.

    Attributes
    ----------
    model : LowDegreeRegressor, CubeGPRegressor, LSHRegressor, SparselyActivatedRegressor, or the classifier of the kind
        A :class:`CubeEnsemble` of several.
        Fitted to every row of the encoded table; :meth:`predict` encodes other rows for it.
    table : str
        Name of the table.
    n_rows : int
        Rows that were learned from.
    encoding : Encoding
        How columns become bits or numbers: names of the features and targets, and notes about the columns.
    task : {"regression", "classification"}
        What was learned.
    domain : {"cube", "real"}
        Whether every feature is a bit, or some are numbers.
    choices : Choices
        The model, degree, penalty and solver, the reasons, and every candidate with its scores.
    targets : tuple of TargetResult
        Each target (or class): scores, terms with intervals, weight by degree, influences, held-out rows.
    resources : Resources
        Seconds of each stage, and the most memory that the process held.
    versions : tuple of pairs
        Versions that decide the result.
    call : str
        Python code that fits the table again.
    confusion : Confusion or None
        Actual and predicted classes of held-out rows.
    details : Details
        Facts special to the kind of model: the layout of hash tables, the units of a network, the latent and curve of a
        measurement model; of other kinds there are none.
    test : ScoredTable or None
        Scores on a table of its own.
    written : dict
        Files that :meth:`report` and :meth:`save` have written.
    """

    model: Any
    table: str
    n_rows: int
    encoding: Encoding
    task: str
    domain: str
    choices: Choices
    targets: tuple[TargetResult, ...]
    resources: Resources
    versions: tuple[tuple[str, str], ...]
    call: str
    confusion: Confusion | None = None
    details: Details = field(default_factory=Details)
    test: ScoredTable | None = None
    written: dict[str, str] = field(default_factory=dict, compare=False)

    @property
    def scores(self) -> Scores:
        """Held-out scores by target (or class), of this model and of the linear one."""
        return Scores(
            {target.name: target.r2 for target in self.targets},
            {target.name: target.linear_r2 for target in self.targets},
            self.choices.models[0].rmse if len(self.targets) == 1 and self.confusion is None else None,
            self.confusion,
        )

    @property
    def learned(self) -> bool:
        """Whether any target is predicted better than by a constant.

        Of classes, a better accuracy or a better R2 will do: where one class is frequent, a model may know which rows
        are the likelier ones, and yet rightly never name the rare class.
        """
        return (self.confusion is not None and self.confusion.learned) or any(target.learned for target in self.targets)

    @property
    def verdict(self) -> str:
        """The finding: held-out scores of the model and of those to compare it with; then what is doubtful."""
        best = max(self.choices.candidates, key=lambda candidate: candidate.r2.mean)
        degree = None if self.choices.low_degree is None else self.choices.low_degree.degree
        known = [model for model in self.choices.models if model.r2.known]
        promising = max(known, key=lambda model: model.r2.mean, default=self.choices.models[0])
        if self.learned:
            return self._scores()
        if best.degree != degree and best.r2.mean > best.r2.deviation:
            remedy = "model low-degree" if degree is None else f"degree {best.degree}"
            does = f"degree {best.degree} does, with held-out R² {best.r2}: choose {remedy}"
            return f"{self._scores()} It does not predict held-out rows; {does}."
        few = f" {self.n_rows} rows are few: more of them may show more." if self.n_rows < FEW_ROWS else ""
        if promising.r2.mean > LEAST_SHARE:
            is_sure = promising.r2.mean > promising.r2.deviation
            finding = "It does not predict held-out rows" if is_sure else "It is uncertain whether anything was found"
            much = "" if is_sure else ", and the folds differ by as much"
            highest = f"of all models compared {promising.name} has the highest R², {promising.r2}{much}"
            return f"{self._scores()} {finding}; {highest}.{few}"
        others = [model.name for model in self.choices.models if model.kind not in ("low-degree", "trees")]
        listed = " or ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
        also = f", nor by {listed}," if listed else ""
        nothing = f"Nothing of degree ≤ {self.choices.highest_tried}{also} was found in these columns"
        return f"{self._scores()} {nothing}; predicting the mean gives R² 0.{few}"

    def _scores(self) -> str:
        """Held-out scores of the chosen model, and of boosted trees, the linear model or the most frequent class."""
        model = f"by {'a polynomial of ' * (self.choices.kind == 'low-degree')}{self.choices.name}"
        first, trees = self.targets[0], [model for model in self.choices.models if model.kind == "trees"]
        if self.confusion is not None:
            return (
                f"Held-out accuracy {self.confusion.accuracy:.1%} {model}; {self.confusion.majority:.1%} by always "
                "naming the most frequent class. "
                f"The classes' indicators have R² {first.r2}, where their frequencies give 0."
            )
        if len(self.targets) > 1:
            scores = [f"{one.r2} for {one.name} (linear model {one.linear_r2.short})" for one in self.targets]
            return f"Held-out R² {', '.join(scores)} {model}."
        rivals = [*(f"boosted trees {one.r2.short}" for one in trees), f"linear model {first.linear_r2.short}"]
        return f"Held-out R² {first.r2} {model}; {', '.join(rivals)}."

    @property
    def more_scores(self) -> list[str]:
        """Noise ceilings, relative errors on held-out rows, and scores on a table of its own, for a person."""
        found = [f"{score}{self._of(one)}" for one in self.targets for score in one.more_scores]
        return found + ([] if self.test is None else self.test.lines)

    @property
    def of_letters(self) -> bool:
        """Whether the terms of the targets are effects of letters, not of bits."""
        return any(target.of_letters for target in self.targets)

    @property
    def terms_of(self) -> str:
        """Which model the terms of the targets belong to, in a sentence."""
        if not self.of_letters:
            return self.choices.terms_of
        from sparsact.fit.reference import reference_in_words

        return TERMS_OF_LETTERS.format(function=self.details.function, reference=reference_in_words(self.encoding))

    def _of(self, target: TargetResult) -> str:
        return f" for {target.name}" if len(self.targets) > 1 else ""

    def predict(self, data: Data) -> NDArray[Any]:
        """Predictions for the rows of another table, whose columns are found by name and encoded as in the fit.

        Parameters
        ----------
        data : what :func:`sparsact.fit_table` takes
            Columns that were not learned from are not looked at.

        Returns
        -------
        y : ndarray of shape (m,) or (m, T)
            Numbers, a column for each of T > 1 targets; of classes their names.

        Raises
        ------
        ValueError
            If a column is missing, or a value was not seen where only known values have a meaning.
        """
        from sparsact.datasets import encoded_table
        from sparsact.fit.table_model import TableModel

        model = TableModel(self.model, self.encoding)
        empty = np.empty((0, len(self.encoding.feature_names)), dtype=np.uint8)
        return np.concatenate([model.answers(X) for X in (empty, *encoded_table(data, self.encoding).points())])

    def to_frame(self) -> Any:
        """The terms of all targets as a ``pandas.DataFrame``.

        Terms have the largest coefficients; last of each target stands the constant, the term of no columns. The
        sum of ``coefficient`` times the product of its ``columns``, a bit as +1 where it is 0 and -1 where it is 1, is
        the fitted function, as far as terms are listed (200 of a polynomial, 40 of a Gaussian process). Degrees and
        penalties that were compared are ``choices.candidates``.
        """
        rows = [{"target": target.name} | term.to_dict() for target in self.targets for term in target.listed()]
        return to_pandas(rows, list(rows[0]) if rows else ("target",))

    def effects_from(self, reference: Reference | None = None, order: int = 2) -> list[dict[str, Any]]:
        """Effects from a reference such as a wild type; see :func:`sparsact.fit.effects.reference_effects`."""
        from sparsact.fit.effects import reference_effects

        return reference_effects(self.model, self.encoding, reference, order=order)

    def suggest(
        self, budget: float, candidates: Data | None = None, goal: Goal = "effects", **options: Any
    ) -> SuggestedRows:
        """Rows to measure next, with their gains; see :func:`sparsact.suggest_rows`, which has the options too."""
        from sparsact.fit.suggest import suggest_rows

        return suggest_rows(self.model, budget, candidates, goal, **options)

    def contrast(self, one: Reference, other: Reference, background: Reference | None = None) -> list[dict[str, Any]]:
        """How targets differ between two changes of a background; see :func:`sparsact.fit.effects.contrast`."""
        from sparsact.fit.effects import contrast

        return contrast(self.model, self.encoding, one, other, background)

    def to_dict(self) -> dict[str, Any]:
        """All findings but the held-out rows, of numbers and texts: what ``sparsact fit --json`` prints."""
        choices, polynomial = self.choices, self.choices.low_degree
        found: dict[str, Any] = {
            "table": self.table,
            "target_columns": list(self.encoding.target_names),
            "task": self.task,
            "rows": self.n_rows,
            "columns": list(self.encoding.feature_names),
            "notes": list(self.encoding.notes),
            "learned": self.learned,
            "verdict": self.verdict,
            "kind": choices.kind,
            "why": choices.reason,
            "contenders": [model.to_dict() for model in choices.models],
            **(polynomial.to_dict() if polynomial else dict.fromkeys(LOW_DEGREE_FACTS)),
            "weights": dict(choices.weights),
            **dict.fromkeys(("lsh", "network", "latent")),
            **self.details.to_dict(),
            "test": self.test and self.test.to_dict(),
            "targets": [target.to_dict(TERMS_SHOWN) for target in self.targets],
            "r2_by_degree": [asdict(gain) for gain in choices.gains] if polynomial else [],
            "candidates": [candidate.to_dict() for candidate in choices.candidates],
            "seconds": self.resources.seconds,
            "peak_memory_bytes": self.resources.peak_bytes,
            "report": self.written.get("report"),
            "model": self.written.get("model"),
        }
        if self.confusion is not None:
            found |= {"accuracy": self.confusion.accuracy, "majority": self.confusion.majority}
            found["confusion"] = {"classes": list(self.confusion.classes), "counts": self.confusion.counts.tolist()}
        return found

    def __str__(self) -> str:
        found = self.to_dict()
        of_bits = " of bits" if self.domain == "cube" else ""
        lines = [found["verdict"], f"{self.n_rows:,} rows, {len(found['columns']):,} columns{of_bits}"]
        lines += self.more_scores
        lines += [f"note: {' '.join(note.splitlines())}" for note in found["notes"]]
        lines.append(f"chosen: {self.choices.name}, because {found['why']}")
        if found["degree"] is not None:
            penalty = f"{found['penalty']} penalty {found['alpha']:g}"
            lines.append(f"{found['monomials']:,} terms, {penalty}")
        if self.choices.weights:
            lines.append(f"weights: {self.choices.shares}")
        lines += self.details.lines()
        if self.learned and len(self.targets) == 1:
            terms = self.targets[0].lines(TERMS_SHOWN)
            lines += [line for line in [self.terms_of] if line and terms] + terms
        lines.append(f"{duration(found['seconds'])}, peak memory {size(found['peak_memory_bytes'])}")
        lines += [f"{what}: {found[what]}" for what in ("report", "model") if found[what] is not None]
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("rows, columns", f"{self.n_rows:,}, {len(self.encoding.feature_names):,}"),
            ("chosen", self.choices.name),
        ]
        for target in self.targets:
            rows.append((f"held-out R²{self._of(target)}", target.r2))
            terms = target.terms[:TERMS_SHOWN]
            spec = effect_format(terms)
            rows += [(f"effect of {t.label}", "   ".join(filter(None, t.in_words(spec)))) for t in terms]
        return html_table(self.verdict, (self.table, ""), rows)

    def report(self, path: str | Path, command: str | None = None) -> None:
        """Write the findings as one HTML page that loads nothing from elsewhere.

        Parameters
        ----------
        path : path-like
            An existing file is replaced.
        command : str, optional
            The command that makes the page again, if one has made it.

        Raises
        ------
        ImportError
            Without the extra ``report``.
        """
        try:
            page = registry.find(registry.PAGES["fit"])
        except ImportError as error:
            if error.name is None or EXTRAS.get(error.name) != "report":
                raise
            raise ImportError(missing("a report", error.name)) from error
        files.write(path, page(self, command))
        self.written["report"] = str(path)

    def save(self, path: str | Path) -> None:
        """Write the model with the encoding of its table, for ``sparsact predict`` and :func:`sparsact.load`.

        Parameters
        ----------
        path : path-like
            An existing file is replaced.
        """
        self.model.save(path)
        self.written["model"] = str(path)

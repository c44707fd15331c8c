"""What a fit of a table finds: the model, its scores, the choices made, and what each target consists of."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from sparsact import files, registry
from sparsact.extras import EXTRAS, missing
from sparsact.fit.candidate import Details
from sparsact.fit.choices import Choices, Scores, WithVerdict, of_target
from sparsact.fit.scores import LOW_DEGREE_FACTS, TERMS_OF_LETTERS, Confusion
from sparsact.fit.term import effect_format
from sparsact.notebook import html_table, to_pandas
from sparsact.reports.numbers import duration, size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sparsact.datasets import Encoding
    from sparsact.datasets.table_files import Data
    from sparsact.fit.reference import Reference
    from sparsact.fit.scored_table import ScoredTable
    from sparsact.fit.suggest import Goal, SuggestedRows
    from sparsact.fit.target_result import TargetResult
    from sparsact.reports.figure import Display

TERMS_SHOWN: Final = 8


@dataclass(frozen=True)
class Resources:
    """Seconds of each stage, and the most memory that the process held."""

    stages: tuple[tuple[str, float], ...]
    peak_bytes: int

    @property
    def seconds(self) -> float:
        """All stages together."""
        return sum(seconds for _, seconds in self.stages)


@dataclass(frozen=True, repr=False)
class FitResult(WithVerdict):
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
    def more_scores(self) -> list[str]:
        """Noise ceilings, relative errors on held-out rows, and scores on a table of its own, for a person."""
        found = [f"{score}{of_target(self.targets, one)}" for one in self.targets for score in one.more_scores]
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

    def __repr__(self) -> str:
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
            lines += [line for line in [self.terms_of] if line and terms] + terms + self._more_terms()
        lines.append(f"{duration(found['seconds'])}, peak memory {size(found['peak_memory_bytes'])}")
        lines += [f"{what}: {found[what]}" for what in ("report", "model") if found[what] is not None]
        return "\n  ".join(lines)

    def _more_terms(self) -> list[str]:
        """Where to find the terms that are not shown, if there are any, and of a polynomial their number."""
        kept, choices = len(self.targets[0].terms), self.choices
        if kept <= TERMS_SHOWN:
            return []
        n_terms = choices.low_degree.n_monomials if choices.low_degree and not self.of_letters else 0
        where, model = "see to_frame()", self.written.get("model")
        if not (choices.own_terms or choices.low_degree):  # the terms beside hash tables and networks
            where = "fit model='low-degree'"
        elif model is not None:
            where = f"sparsact inspect {shlex.quote(model)} --top {n_terms or kept}"
        return [f"{f'{n_terms - TERMS_SHOWN:,} ' if n_terms else ''}more terms: {where}"]

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("rows, columns", f"{self.n_rows:,}, {len(self.encoding.feature_names):,}"),
            ("chosen", self.choices.name),
        ]
        for target in self.targets:
            rows.append((f"held-out R²{of_target(self.targets, target)}", target.r2))
            terms = target.terms[:TERMS_SHOWN]
            spec = effect_format(terms)
            rows += [(f"effect of {t.label}", "   ".join(filter(None, t.in_words(spec)))) for t in terms]
        try:
            first = next(iter(self._figures().values()), None)
        except ImportError:  # without matplotlib there is the table alone
            first = None
        table = html_table(self.verdict, (self.table, ""), rows)
        return f"<div>{table}{'' if first is None else first.svg_alone}</div>"

    def _figures(self, place: int = 0) -> dict[str, Display]:
        found: dict[str, Display] = _drawing("figures of a fit", "a figure")(self, place)
        return found

    def plot(self, figure: str | None = None, target: str | None = None) -> Figure:
        """A figure of the report, drawn by matplotlib.

        Parameters
        ----------
        figure : str, optional
            Its name, such as ``"scores"``, ``"residuals"`` or ``"influences"``; the error of a wrong name lists all. By
            default the strongest effects, or without any the first figure.
        target : str, optional
            The target (or class) that it shows, by default the first.

        Returns
        -------
        figure : matplotlib Figure
            New, and unknown to ``pyplot``; notebooks show it, and ``savefig`` writes it.

        Raises
        ------
        ValueError
            If there is no such figure or target.
        ImportError
            Without the extra ``report``.
        """
        targets = [one.name for one in self.targets]
        if target is not None and target not in targets:
            raise ValueError(f"the fit has no target {target!r}; it has {', '.join(targets)}.")
        found = self._figures(0 if target is None else targets.index(target))
        if not found:
            raise ValueError("this fit has no figures; fit with held_out_rows=True or explain=True.")
        if figure is not None and figure not in found:
            raise ValueError(f"this fit has no figure {figure!r}; it has {', '.join(found)}.")
        return found[figure or next(iter(found))].figure

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
        files.write(path, _drawing("fit", "a report")(self, command))
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


def _drawing(page: str, what: str) -> Any:
    """A function of the registry that draws; an ImportError names the extra that it needs."""
    try:
        return registry.find(registry.PAGES[page])
    except ImportError as error:
        if error.name is None or EXTRAS.get(error.name) != "report":
            raise
        raise ImportError(missing(what, error.name)) from error

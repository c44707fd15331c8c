"""The steps of a fit, from an encoded table to its result: choose, score, learn, explain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sparsact.datasets import Encoding, Table
from sparsact.datasets.columns import Classes
from sparsact.datasets.table_summary import MOST_BITS
from sparsact.datasets.unseen_rows import DesignSums, bits_of, design_notes
from sparsact.environment import versions
from sparsact.fit.candidate import Details, Facts, Fit, FitRun, Targets
from sparsact.fit.candidates import candidates
from sparsact.fit.candidates.latent import pinned_notes
from sparsact.fit.candidates.letters import with_components
from sparsact.fit.candidates.low_degree import search_for, select_polynomial
from sparsact.fit.candidates.lsh import MAX_NUMBERS
from sparsact.fit.choices import Choices
from sparsact.fit.choose import kinds_to_try, select_model
from sparsact.fit.effects import Background, explained_from
from sparsact.fit.explain import confusion, scored_targets
from sparsact.fit.fold_sums import MAX_BITS, MAX_HELD_OUT, FoldSums, as_numbers
from sparsact.fit.forecast import forecast
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.leaks import leaks
from sparsact.fit.logarithms import gains_of_logarithms, spans_decades
from sparsact.fit.options import FitOptions
from sparsact.fit.reading import LOGARITHMS, LOGARITHMS_CHOSEN, check_targets, warnings, with_logarithms
from sparsact.fit.reference import has_reference, letters_at
from sparsact.fit.result import FitResult, Resources
from sparsact.fit.row_columns import FitRows, RowColumns
from sparsact.fit.scores import LowDegreeInfo, Selected, noise_ceiling
from sparsact.learners import CubeEnsemble, LettersRegressor
from sparsact.memory import peak_memory
from sparsact.passes.progress import StageProgress, Stages
from sparsact.passes.resumable import Checkpoint
from sparsact.statistics.held_out_rows import HeldOutRows
from sparsact.statistics.row_sample import RowSample

MOST_LETTER_BITS: Final = 1 << 26  # of held-out rows of letters, eight to a byte of the file before they are compressed

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class FitSteps:
    """One fit: choose, score, learn, explain."""

    table: Table
    options: FitOptions
    stages: Stages
    checkpoint: Checkpoint
    row_columns: RowColumns
    on_logarithms: bool = False  # which the rows have decided

    def result(self, name: str, call: str) -> FitResult:
        """The whole fit."""
        facts = Facts(self.table, self.options, self.table.n_rows or 0)
        if len(kinds_to_try(facts)[0]) > 1 and not self.on_logarithms:
            self.stages.say(forecast(facts))
        with self.stages.stage(self._pass_name, self.table.n_rows) as on_rows:
            sums = self._sums(on_rows)
            selected = None if self._needs_logarithms(sums) else select_polynomial(sums.search, self.options)
        if selected is None:
            return self._with_logarithms(sums).result(name, call)
        run, reason = self._fits(sums, selected)
        choices = select_model(selected, run.fits, reason, self.options.model)
        with self.stages.stage("summing up"):
            found = self._summed_up(run, choices, name, call)
        return replace(found, resources=Resources(tuple(self.stages.seconds.items()), peak_memory()))

    def _summed_up(self, run: FitRun, choices: Choices, name: str, call: str) -> FitResult:
        """The result, without what it took."""
        kind, sums = candidates()[choices.kind], run.sums
        encoding, fit = self._with_notes(run, choices), kind.finished(run.fits[choices.kind], run)
        shown, predicted = _shown(sums, fit)
        targets = self._scored(run, run.fits[choices.kind].held_out, encoding, shown, predicted)
        design = sums.design.design(self._held_out(sums.sample, shown, targets, sums.n_rows))
        run.table, details = replace(self.table, encoding=replace(encoding, design=design)), Details()
        if self.options.explain:
            targets, details = kind.findings(run, fit, targets)
            targets = self._with_ceilings(self._from_reference(run, fit, targets), sums.sample)
        model, encoding = fit.model, run.table.encoding
        if kind.is_polynomial:
            choices = replace(choices, low_degree=LowDegreeInfo.of(model, self.options.given))
        if isinstance(model, CubeEnsemble | LettersRegressor):
            choices = replace(choices, weights=model.weights_)
        model.table_encoding_ = encoding.to_json()
        return FitResult(
            model=model,
            table=name,
            n_rows=sums.n_rows,
            encoding=encoding,
            task="classification" if self._is_classes else "regression",
            domain=self.options.domain_of(encoding),
            choices=choices,
            targets=targets,
            resources=Resources((), 0),
            versions=versions(),
            call=call,
            confusion=confusion(sums.sample.rows()[1][shown], predicted, encoding),
            details=details,
        )

    def _scored(
        self, run: FitRun, held_out: HeldOutScores, encoding: Encoding, shown: Places, predicted: Array | None
    ) -> Targets:
        """The targets with the scores of the model and of the best linear one, and the rows shown."""
        linear = run.selected.of_degree(1).targets
        return scored_targets(encoding, run.sample.rows()[1][shown], predicted, held_out.r2(), linear)

    def _from_reference(self, run: FitRun, fit: Fit, targets: Targets) -> Targets:
        """The targets with effects from a reference, which the encoding of the run takes, where they are counted so."""
        encoding, (X, y, _) = run.table.encoding, run.sample.rows()
        if not has_reference(encoding):
            return targets
        rows = encoding.codes(X)
        beside = next((run.fits[one].model for one in ("letters", "gp") if one in run.fits), None)
        background = Background.of_rows(fit.model, encoding, rows, beside)
        run.table = replace(run.table, encoding=replace(encoding, reference=letters_at(encoding, background.codes)))
        targets = explained_from(targets, background, rows, as_numbers(encoding.targets[0], y).reshape(len(y), -1))
        return with_components(targets, background, rows) if encoding.has_letters else targets

    def _needs_logarithms(self, sums: FoldSums) -> bool:
        """Whether every target spans decades, and its logarithm fits better, where nothing else was asked for."""
        options = self.options
        asked = options.log_target is not None or options.encoding is not None or options.weighted
        if asked or self._is_classes or options.model != "auto" or options.given or options.asks_for_measurement:
            return False
        if self.on_logarithms or not np.all(sums.low > 0):
            return False
        _, y, _ = sums.sample.rows()
        return all(map(spans_decades, y.reshape(len(y), -1).T)) and all(gains_of_logarithms(self.table.encoding, sums))

    def _with_logarithms(self, sums: FoldSums) -> FitSteps:
        """The same steps with logarithms of the targets, and notes that say so."""
        encoding, ratios = self.table.encoding, np.atleast_1d(sums.high / sums.low)
        names = zip(encoding.target_names, ratios, strict=True)
        added = [LOGARITHMS_CHOSEN.format(name=name, ratio=ratio) for name, ratio in names]
        encoding = replace(with_logarithms(encoding), notes=(LOGARITHMS, *added, *encoding.notes))
        return replace(self, table=replace(self.table, encoding=encoding), on_logarithms=True)

    @property
    def _pass_name(self) -> str:
        """Name of the pass that sums up the rows; two passes never share a file of partial sums."""
        return "choosing by logarithms" if self.on_logarithms else "choosing"

    def _held_out(self, sample: RowSample, shown: Places, targets: Targets, n_rows: int) -> HeldOutRows:
        """Some rows, bits if all columns are, and of targets of numbers with their held-out errors."""
        encoding, (X, *_) = self.table.encoding, sample.rows()
        few = np.isin(shown, sample.smallest(HeldOutRows.n_kept(len(targets))))
        kept = shown[few]
        few_bits = X.shape[1] <= MOST_BITS or (encoding.has_letters and X[kept].size <= MOST_LETTER_BITS)
        bits = bits_of(encoding, X[kept])[:, : None if few_bits and not encoding.real else 0]
        known = [] if self._is_classes else [(one.actual, one.predicted) for one in targets]
        predicted = [predicted[few] for _, predicted in known if predicted is not None]
        actual = [actual[few] for actual, _ in known[: len(predicted)]]
        shape = len(predicted), len(kept)
        values = np.reshape(predicted, shape).T
        errors = (np.reshape(actual, shape).T - values) * np.sqrt(sample.weights[kept])[:, None]  # of mean weight
        return HeldOutRows(bits, values, errors, n_rows)

    def _with_notes(self, run: FitRun, choices: Choices) -> Encoding:
        """The encoding with notes on what the rows show; a given encoding gets only the notes on pinned rows."""
        encoding, sums = self.table.encoding, run.sums
        X, y, _ = sums.sample.rows()
        first: list[str] = []
        if self.options.encoding is None:
            design = sums.design.design()
            first = warnings(encoding, X, y, run.gains_of_logarithms)
            first += design_notes(encoding, design, X if sums.sample.is_complete else None)
            if encoding.real and not self._is_classes:
                first += leaks(encoding, sums.sample, choices.models)
        last = pinned_notes(self.table, self.options, sums.sample)
        return replace(encoding, notes=tuple(dict.fromkeys((*first, *encoding.notes, *last))))

    def _with_ceilings(self, targets: Targets, sample: RowSample) -> Targets:
        """The targets of numbers with noise ceilings."""
        X, y, _ = sample.rows()
        if self._is_classes:
            return targets
        return tuple(
            replace(target, ceiling=noise_ceiling(X, of_target, sample.weights))
            for target, of_target in zip(targets, y.reshape(len(y), -1).T, strict=True)
        )

    def _fits(self, sums: FoldSums, selected: Selected) -> tuple[FitRun, str]:
        """Models of every kind that may compete with their held-out scores, and why there are no more."""
        facts = Facts(self.table, self.options, sums.n_rows)
        kinds, reason = kinds_to_try(facts)
        run = FitRun(self.table, self.options, sums.n_rows, self.stages, self.checkpoint, sums, selected, kinds)
        for kind in kinds:
            found = candidates()[kind].fit(run)
            if isinstance(found, Fit):
                run.fits[kind] = found
            else:
                reason = found or reason
        return run, reason

    def _sums(self, on_rows: StageProgress) -> FoldSums:
        """The sums of every row, by fold, and a sample of the rows for models that are not made of the sums."""
        table, options, known, most = self.table, self.options, candidates(), MAX_HELD_OUT
        kinds, _ = kinds_to_try(Facts(table, options, known["network"].most_rows))
        if len(kinds) > 1:
            most = known["network" if options.model == "network" else "lsh"].most_rows
            most = max(options.folds, min(most, MAX_NUMBERS // len(table.feature_names)))
        sample = RowSample(most, options.folds, options.random_state)
        is_packed = "latent" in kinds and not table.encoding.real
        n_packed = max(options.folds, MAX_BITS // len(table.feature_names)) if is_packed else 0
        packed = RowSample(n_packed, options.folds, options.random_state)
        design = DesignSums(table.encoding)
        sums = FoldSums(table.encoding.targets[0], search_for(table, options), sample, packed, design)
        sums = self.checkpoint.run(FitRows(table, self.row_columns).summed_by(self._pass_name, sums), on_rows)
        if not sums.n_rows:
            raise ValueError(f"{table.parts.name} has no rows below its header; a table needs at least one.")
        check_targets(table.encoding, sums.low, sums.high)
        if sums.n_rows < options.folds:
            remedy = f"choose folds {sums.n_rows}" if sums.n_rows > 1 else "add rows"
            raise ValueError(f"{sums.n_rows} rows are fewer than {options.folds} folds; {remedy}.")
        return sums

    @property
    def _is_classes(self) -> bool:
        return isinstance(self.table.encoding.targets[0], Classes)


def _shown(sums: FoldSums, fit: Fit) -> tuple[Places, Array | None]:
    """Places in the sample of the rows that are shown, and their held-out predictions, where there are any."""
    of_rows = len(fit.held_out.folds)
    n_predicted = min(MAX_HELD_OUT, len(sums.sample.rows()[1]), of_rows)
    shown = sums.sample.smallest(n_predicted or MAX_HELD_OUT)
    return shown, fit.held_out.first(sums.drawn(of_rows), n_predicted).predicted if n_predicted else None

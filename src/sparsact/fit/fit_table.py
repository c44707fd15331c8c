"""``fit_table``: from a table to a model, its scores and what it consists of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from sparsact.datasets import Encoding, Table
from sparsact.datasets.columns import Classes, Real
from sparsact.datasets.parts import Data, Parts, is_paths
from sparsact.environment import versions
from sparsact.fit.checkpoint import Checkpoint
from sparsact.fit.choose import Selected, choose, domain_of, models_to_try, select_model
from sparsact.fit.explain import TargetResult, confusion, explained, function_names, r2_by_fold, scored_targets
from sparsact.fit.folds import Prediction, RowSample, fit_folds, merged, predictions
from sparsact.fit.layout import layout_info, standardised_weights
from sparsact.fit.lsh_candidate import fit_rows, held_out_scores, laid_out, rows_of_fold
from sparsact.fit.options import FitOptions
from sparsact.fit.progress import OnProgress, OnRows, Stages
from sparsact.fit.reading import survey_of, survey_table
from sparsact.fit.result import FitResult, LowDegreeInfo, Resources
from sparsact.fit.scores import FoldScores
from sparsact.memory import peak_memory

if TYPE_CHECKING:
    from distributed import Client


def fit_table(
    data: Data,
    target: str | Sequence[str],
    *,
    model: Literal["auto", "low-degree", "lsh"] = "auto",
    degree: int | Literal["auto"] = "auto",
    alpha: float | Literal["auto"] = "auto",
    columns: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    domain: Literal["auto", "cube", "real"] = "auto",
    task: Literal["auto", "regression", "classification"] = "auto",
    strict: bool = False,
    encoding: Encoding | None = None,
    folds: int = 5,
    random_state: int = 0,
    held_out_rows: bool = False,
    explain: bool = True,
    cluster: str | Client | None = None,
    resume: str | Path | Checkpoint | None = None,
    keep_every: float = 60.0,
    progress: OnProgress | None = None,
) -> FitResult:
    """Fit a model to a table, and report how well it predicts and of what it consists.

    The table is read in batches, so it may be larger than memory. Bit strings such as ``0010110`` expand into their
    bits; columns of two values become a bit; texts of a few values become one bit each; other numbers are standardised.
    Identifiers and columns that repeat others are left out. ``sparsact fit`` is this function for a shell.

    Parameters
    ----------
    data : path, sequence of paths, DataFrame or pyarrow.Table
        ``.csv``, ``.tsv`` (also ``.gz``), ``.parquet`` or ``.npz`` files; several, or patterns such as
        ``"parts/*.parquet"``, are one table (see :func:`sparsact.datasets.files`). Or a table in memory: a pandas or
        polars DataFrame (the index of pandas is no column), an Arrow table, or what exports an Arrow stream.
    target : str or sequence of str
        Column to learn, or several columns of numbers. In an NPZ file the name of a matrix stands for all its columns.
    model : {"auto", "low-degree", "lsh"}
        ``"low-degree"``: a polynomial of products of columns. ``"lsh"``: local polynomials in the buckets of hash
        tables. ``"auto"``: a polynomial where every column is bits or ``degree`` or ``alpha`` is given, else the one
        that predicts held-out rows better.
    degree : int or "auto"
        Of a polynomial: largest number of columns in a product. ``"auto"`` chooses by cross-validation.
    alpha : float or "auto"
        Of a polynomial: ridge penalty. ``"auto"`` chooses by cross-validation.
    columns : sequence of str, optional
        Features; default every column that is neither a target nor ignored.
    ignore : sequence of str
        Columns to leave out.
    domain : {"auto", "cube", "real"}
        What becomes of columns of numbers. ``"auto"``: standardised; ``"real"``: as they are; ``"cube"``: refused, so
        that every column is bits.
    task : {"auto", "regression", "classification"}
        ``"auto"``: classes where the target is text or true/false.
    strict : bool
        Refuse the table where columns would be left out.
    encoding : Encoding, optional
        How columns become bits or numbers, as an earlier ``result.encoding`` or
        :func:`sparsact.datasets.open_table` found, in place of a survey of the columns.
    folds : int
        Folds of cross-validation, at least 2.
    random_state : int
        Seed of folds and hash functions.
    held_out_rows : bool
        Keep predictions of single held-out rows in any case, which :meth:`FitResult.report` draws. A polynomial of one
        number then needs a statistic per fold in place of one; classes, several targets and hash tables always do.
    explain : bool
        Find terms, intervals, influences and the layout of hash tables; False fits and scores only.
    cluster : str or dask.distributed.Client, optional
        Workers that sum up the files, one each at a time: ``"local:4"`` starts four processes, ``"tcp://host:port"`` is
        a scheduler that runs. The model is the same. Needs the extra ``dask``.
    resume : path, optional
        File of a fit that was stopped: go on from it if it is there, keep it up to date, and remove it in the end.
        It serves the same files and options only.
    keep_every : float
        Seconds between two writings of that file.
    progress : callable, optional
        Called with a :class:`~sparsact.fit.progress.FitProgress` for every batch.

    Returns
    -------
    result : FitResult
        The fitted model, scores, choices and findings. The inputs stay as they are.

    Raises
    ------
    ValueError
        If a column or file is missing, a value is missing or cannot be learned from, a target is constant, there are
        fewer rows than folds, or options contradict each other.
    TypeError
        If ``data`` is no table.
    Interrupted
        With ``resume``, at SIGINT or SIGTERM, once the file is written; a BaseException.

    Notes
    -----
    Rows are read once for the encoding and once more for each of: cross-validation, the model, and, of several targets,
    their linear models. Hash tables of more than 131,072 rows are read twice more for each fold.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import sparsact as sa
    >>> bits = np.random.default_rng(0).integers(0, 2, (200, 5))
    >>> columns = {name: bits[:, i] for i, name in enumerate("abcde")}
    >>> result = sa.fit_table(pa.table(columns | {"y": bits[:, 0] ^ bits[:, 3]}), "y", degree=2)
    >>> result.choices.name, round(result.scores.r2["y"].mean, 3)
    ('degree 2', 1.0)
    >>> [(term.label, round(term.coefficient, 3)) for term in result.targets[0].terms[:2]]
    [('a × d', -0.5), ('c × d', 0.0)]
    """
    options = FitOptions(
        target=(target,) if isinstance(target, str) else tuple(target),
        model=model,
        degree=degree,
        alpha=alpha,
        columns=None if columns is None else tuple(columns),
        ignore=tuple(ignore),
        domain=domain,
        task=task,
        strict=strict,
        encoding=None if encoding is None else encoding.to_json(),
        folds=folds,
        random_state=random_state,
        held_out_rows=held_out_rows,
        explain=explain,
    )
    parts = Parts.open(data)
    if cluster is not None:
        parts.files("`cluster`")
    survey = survey_of(parts, options, encoding)
    checkpoint = resume if isinstance(resume, Checkpoint) else Checkpoint.at(resume, keep_every)
    stages = Stages(progress)
    with ExitStack() as stack:
        if checkpoint is not resume:
            stack.enter_context(checkpoint.listening())
        checkpoint.begin(parts, options.named())
        if cluster is not None:
            from sparsact.fit.cluster import workers

            checkpoint.cluster = stack.enter_context(workers(cluster))
        with stages.stage("reading", parts.n_rows) as on_rows:
            table = survey_table(survey, on_rows, checkpoint)
        result = _Fit(table, options, stages, checkpoint).result(parts.name, options.call(_named(data)))
    if checkpoint is not resume:
        checkpoint.remove()
    return result


def _named(data: Data) -> str:
    """Python code for the data; folders of absolute paths are left out."""
    if not is_paths(data):
        return "data"
    names = [data] if isinstance(data, str | Path) else data
    shown = [PurePath(name).name if PurePath(name).is_absolute() else str(name) for name in names]
    return repr(shown[0] if len(shown) == 1 else shown)


@dataclass(frozen=True)
class _Fit:
    """One fit: choose, score, learn, explain."""

    table: Table
    options: FitOptions
    stages: Stages
    checkpoint: Checkpoint

    def result(self, name: str, call: str) -> FitResult:
        """All of it."""
        table, options, n_rows = self.table, self.options, self.table.n_rows or 0
        if n_rows < options.folds:
            remedy = f"choose folds {n_rows}" if n_rows > 1 else "add rows"
            raise ValueError(f"{n_rows} rows are fewer than {options.folds} folds; {remedy}.")
        tries_lsh, reason = models_to_try(table, options)
        sample = RowSample(table, options.folds, options.random_state) if tries_lsh else None
        with self.stages.stage("choosing", n_rows) as on_rows:
            selected = choose(table, options, on_rows, sample, self.checkpoint)
        held_out = None
        if sample is not None:
            with self.stages.stage("hashing"):
                model = laid_out(table, options, sample)
            with self.stages.stage("measuring", options.folds * rows_of_fold(sample)) as on_rows:
                held_out = held_out_scores(table, model, options, sample, on_rows, self.checkpoint)
        choices, layout = select_model(selected, held_out, reason), None
        if sample is None or held_out is None or not choices.lsh:
            model, rows, targets, info = self._low_degree(selected)
            choices = replace(choices, low_degree=info)
        else:
            with self.stages.stage("learning", n_rows) as on_rows:
                model = fit_rows(table, model, sample, on_rows, self.checkpoint)
            linear = self._linear_scores(selected)
            with self.stages.stage("summing up"):
                of_numbers = isinstance(table.encoding.targets[0], Real)
                # classes share the mean R2 of their indicators, as cross-validation of low-degree models has it
                r2 = held_out.by_fold("r2") if of_numbers else [held_out.mean_r2] * len(linear)
                rows = held_out.sample
                targets = scored_targets(table.encoding, rows, r2, linear)
                if options.explain:
                    weights = standardised_weights(model, table, sample)
                    layout = layout_info(model, weights, len(sample.rows()[0]), held_out)
        model.table_encoding_ = table.encoding.to_json()
        return FitResult(
            model=model,
            table=name,
            n_rows=n_rows,
            encoding=table.encoding,
            task="classification" if self._is_classes else "regression",
            domain=domain_of(table, options),
            choices=choices,
            targets=targets,
            resources=Resources(tuple(self.stages.seconds.items()), peak_memory()),
            versions=versions(),
            call=call,
            confusion=confusion(rows, table.encoding),
            layout=layout,
        )

    def _low_degree(self, selected: Selected) -> tuple[Any, Prediction, tuple[TargetResult, ...], LowDegreeInfo]:
        """The polynomial that cross-validation has chosen, held-out rows, and findings."""
        table, options = self.table, self.options
        with self.stages.stage("learning", table.n_rows) as on_rows:
            by_fold = options.held_out_rows or self._is_classes or len(table.encoding.targets) > 1
            n_folds = options.folds if by_fold else 1
            model, held_out, points = self._polynomial(selected.degree, selected.alpha, n_folds, on_rows)
        linear = self._linear_scores(selected)
        with self.stages.stage("summing up"):
            # cross-validation has the scores of one target; of several it knows the mean
            r2 = [selected.of_degree(selected.degree).r2] * len(linear)
            if len(table.encoding.targets) > 1:
                r2 = [r2_by_fold(held_out, i) for i in range(len(linear))]
            targets = scored_targets(table.encoding, held_out, r2, linear)
            if options.explain:
                targets = explained(targets, model, table.feature_names, points)
        solver, reason = str(model.solver_), str(model.solver_reason_)
        info = LowDegreeInfo(int(model.degree_), float(model.alpha), len(model.subsets_), solver, reason, options.given)
        return model, held_out, targets, info

    def _polynomial(
        self, degree: int, alpha: float, n_folds: int, on_rows: OnRows, name: str = "learning"
    ) -> tuple[Any, Prediction, NDArray[Any]]:
        """A model of every row, predictions of held-out rows by models of the other folds, and these rows."""
        from sparsact import LowDegreeClassifier, LowDegreeRegressor

        kind = LowDegreeClassifier if self._is_classes else LowDegreeRegressor
        estimator = kind(degree=degree, alpha=alpha, domain=domain_of(self.table, self.options))
        seed = self.options.random_state
        models, sample = fit_folds(estimator, self.table, n_folds, seed, on_rows, self.checkpoint, name)
        return merged(models), predictions(models, sample), sample.rows()[0]

    def _linear_scores(self, selected: Selected) -> list[FoldScores]:
        """R2 of the linear model, for each target or class; those of several targets take another pass."""
        best, encoding = selected.of_degree(1), self.table.encoding
        if (n_targets := len(encoding.targets)) == 1:
            return [best.r2] * len(function_names(encoding))
        with self.stages.stage("comparing", self.table.n_rows) as on_rows:
            _, linear, _ = self._polynomial(1, best.alpha, self.options.folds, on_rows, "comparing")
        return [r2_by_fold(linear, i) for i in range(n_targets)]

    @property
    def _is_classes(self) -> bool:
        return isinstance(self.table.encoding.targets[0], Classes)

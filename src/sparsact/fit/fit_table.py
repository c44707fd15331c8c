"""``fit_table``: from a table to a model, its scores and what it consists of."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from numbers import Integral
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Literal

from numpy.typing import ArrayLike

from sparsact.datasets import Encoding, Table
from sparsact.datasets.dialect import Dialect
from sparsact.datasets.frames import with_target
from sparsact.datasets.table_files import Data, Parts, is_paths
from sparsact.fit.options import FitOptions
from sparsact.fit.reading import chosen_parts, survey_of, survey_table, with_options
from sparsact.fit.row_columns import RowColumns
from sparsact.passes.progress import OnProgress, Stages, on_a_terminal, showing
from sparsact.passes.resumable import Checkpoint

if TYPE_CHECKING:
    from distributed import Client

    from sparsact.fit.result import FitResult


def fit_table(
    data: Data,
    target: str | Sequence[str] | ArrayLike,
    *,
    model: Literal["auto", "low-degree", "sparse", "gp", "letters", "latent", "lsh", "network", "ensemble"] = "auto",
    degree: int | Literal["auto"] = "auto",
    alpha: float | Literal["auto"] = "auto",
    lasso: bool = False,
    columns: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    domain: Literal["auto", "cube", "real"] = "auto",
    task: Literal["auto", "regression", "classification"] = "auto",
    strict: bool = False,
    wild_type: str | None = None,
    groups: str | None = None,
    weights: str | None = None,
    sigma: str | None = None,
    variance: str | None = None,
    split: str | None = None,
    drop_missing: bool = False,
    log_target: bool | None = None,
    test: Data | None = None,
    encoding: Encoding | None = None,
    link: Literal["identity", "log", "sigmoid", "monotone", "auto"] = "identity",
    censor: str | tuple[float | None, float | None] = "auto",
    folds: int = 5,
    random_state: int = 0,
    held_out_rows: bool = False,
    explain: bool = True,
    separator: str = "auto",
    decimal: Literal["auto", ".", ","] = "auto",
    cluster: str | Client | None = None,
    resume: str | Path | Checkpoint | None = None,
    keep_every: float = 60.0,
    progress: bool | OnProgress | None = None,
) -> FitResult:
    """Fit a model to a table, and report how well it predicts and what drives the target.

    The table is read in batches, so it may be larger than memory. Bit strings such as ``0010110`` expand into their
    bits; columns of two values become a bit; texts of a few values become one bit each; other numbers are standardised.
    Texts of one length such as ``ACDE`` are one site a letter, lists of mutations such as ``A12V:G45D`` one site each;
    both cases of a letter are one, and mutations may be spelled as in HGVS (``p.[Met1Ala;Lys2Asp]``). Numbers of digits
    0 and 1 only are bit strings that lost their leading zeros. A target such as ``<2.5`` is read as its limit.
    Identifiers, columns that repeat others, and columns that look like counts, errors, plates or a split are left out.
    ``sparsact fit`` is this function for a shell.

    Parameters
    ----------
    data : path, sequence of paths, DataFrame, pyarrow.Table or ndarray of shape (m, n)
        ``.csv``, ``.tsv`` (also ``.gz``), ``.parquet`` (or ``.pq``), ``.feather``, ``.arrow`` or ``.npz`` files;
        several, or patterns such as ``"parts/*.parquet"``, are one table (see :func:`sparsact.datasets.files`). Or a
        table in memory: a pandas or polars DataFrame (the index of pandas is no column), an Arrow table, or what
        exports an Arrow stream, such as a relation of DuckDB or a ``pyarrow.RecordBatchReader``, which is read into
        memory. The columns of an array are named ``x0``, ``x1`` and so on.
    target : str, sequence of str, or array-like of shape (m,) or (m, T)
        Column to learn, or several columns of numbers. In an NPZ file the name of a matrix stands for all its columns.
        Or, beside a table in memory, the values themselves, as scikit-learn takes them: ``fit_table(X, y)``. A series
        or frame of pandas or polars keeps its names; an array is named ``y``, or ``y0``, ``y1`` and so on.
    model : {"auto", "low-degree", "sparse", "gp", "letters", "latent", "lsh", "network", "ensemble"}
        ``"low-degree"``: a polynomial of all products of few columns. ``"sparse"``: of the significant ones among
        them, columns of bits only. ``"gp"``: a Gaussian process with interactions of all sizes, of up to 64 columns of
        bits and a target of numbers. ``"letters"``: Gaussian processes and networks on sites with letters, such as
        amino acids, or categories (:class:`~sparsact.LettersRegressor`). ``"latent"``: a function of bits behind a
        floor, a ceiling or a curve of the measurement. ``"lsh"``: local polynomials in the buckets of hash tables.
        ``"network"``: a ReLU network with at most 1 or 4 active units a row. ``"ensemble"``: of up
        to 20 columns, a weighted mean of models of bits, of Gaussian processes with several kernels, and of boosted
        trees. ``"auto"``: a polynomial where one of the next three is given, else the simplest that
        predicts held-out rows as well as the best, within a standard error; hash tables are tried if some column is
        numbers, models of letters if some site has more than two, measurement models if rows are pinned at the lowest
        or highest target, its logarithm fits better, there are more than 20 sites, or ``link`` or ``censor`` is given,
        and networks of 1,000 to 100,000 rows, if a quick look promises enough.
    degree : int or "auto"
        For a polynomial: largest number of columns in a product. ``"auto"`` chooses by cross-validation.
    alpha : float or "auto"
        For a polynomial: ridge penalty. ``"auto"`` chooses by cross-validation.
    lasso : bool
        For a polynomial: choose terms by the lasso, with the penalty ``alpha``.
    columns : str or sequence of str, optional
        Features, also as a list ``"a,b"`` or a pattern ``"s*"``; default every column that is neither a target nor
        ignored. Columns named in full are never left out as identifiers, counts, errors, plates or splits: ``"*,n"``.
    ignore : str or sequence of str
        Columns to leave out, spelled in the same ways.
    domain : {"auto", "cube", "real"}
        What becomes of columns of numbers. ``"auto"``: standardised; ``"real"``: as they are; ``"cube"``: refused, so
        that every column is bits.
    task : {"auto", "regression", "classification"}
        ``"auto"``: classes where the target is text or true/false.
    strict : bool
        Refuse the table where columns would be left out.
    wild_type : str, optional
        Makes letters mutations such as ``E104K``, with sites from 1, and effects what these do to the wild type: its
        sequence, the number of its row, from 1, the name of its row, which a cell holds, or ``"most-frequent"``, the
        most frequent letters. Lists of mutations such as ``A12V:G45D`` must agree with it; of columns of two values,
        its own become 0.
    groups : str, optional
        Column of groups, such as plates or families: rows of a group are in one fold, for every model that is compared.
        With fewer groups than ``folds``, each group is a fold. The column is not learned from; nor are the next four.
    weights : str, optional
        Column of precisions, such as counts: a row of weight 2 has half of the variance, a row of weight 0 is left out.
        Only their ratios count. Polynomials of all products and Gaussian processes take weights; other models are then
        left out.
    sigma : str, optional
        Column of standard deviations of the measurements, in place of ``weights``: these are ``1 / sigma**2``. A
        deviation of 0, which says nothing, counts as the lower quartile of the others.
    variance : str, optional
        Column of variances, in place of ``sigma``.
    split : str, optional
        Column that says which rows are scored and not learned from, in place of ``test``: ``test`` (``testing``,
        ``held-out``), or without such rows ``validation`` (``valid``, ``val``, ``dev``); others are ``train``
        (``training``). Or 2, 1 and 0 for these; 0 and 1 alone (false and true) are training and test rows, and the
        opposite if the name of the column says ``train``.
    drop_missing : bool
        Leave out rows that lack a value of any column that is looked at, with a note, rather than refuse the table.
        In columns of numbers ``-``, ``n.d.``, ``#DIV/0!`` and the like stand for what is missing.
    log_target : bool, optional
        Learn the natural logarithm of the targets, which must be positive; predictions are brought back, so that they
        are medians. Suits targets whose errors are relative, such as run times. By default where the kind of model is
        chosen too, no row has a weight, 96 % of the targets span a factor of 100, and linear models of the logarithm
        make held-out rows more likely.
    test : path, sequence of paths, DataFrame or pyarrow.Table, optional
        A table of its own for a score, with an interval: no choice has seen it.
    encoding : Encoding, optional
        How columns become bits or numbers, as an earlier ``result.encoding`` or
        :func:`sparsact.datasets.open_table` found, in place of a survey of the columns.
    link : {"identity", "log", "sigmoid", "monotone", "auto"}
        For measurement models: the curve between the latent and the target; see :class:`LatentRegressor`, which also
        learns traits that several targets share.
    censor : "auto", "none", or tuple (lower, upper)
        For measurement models: the bounds at which targets are pinned, None for a side without one. ``"auto"``: the
        lowest and the highest target, if at least 3 % of the rows and three times as many as at any other are there.
    folds : int
        Folds of cross-validation, at least 2.
    random_state : int
        Seed of folds and hash functions.
    held_out_rows : bool
        Keep predictions of single held-out rows, which :meth:`FitResult.report` draws and intervals of new rows are
        made of, with ``explain=False`` too.
    explain : bool
        Find terms, intervals, influences and the layout of hash tables; False fits and scores only.
    separator : str
        For text files: the character between columns. ``"auto"``: the comma of a ``.csv`` file or the tab of others,
        unless the first rows agree on another of these, ``;`` and ``|``.
    decimal : {"auto", ".", ","}
        For text files: the mark of decimals. ``"auto"`` goes by the numbers of the first rows, and a note says what
        commas were taken for. Other tables refuse this and ``separator``: texts of a frame are not numbers.
    cluster : str or dask.distributed.Client, optional
        Workers that sum up the files, one each at a time: ``"local:4"`` starts four processes, ``"tcp://host:port"`` is
        a scheduler that runs. The model is the same. Needs the extra ``dask``.
    resume : path, optional
        File of a fit that was stopped: go on from it if it is there, keep it up to date, and remove it in the end.
        It serves the same files and options only.
    keep_every : float
        Seconds between two writings of that file.
    progress : bool or callable, optional
        True: show on stderr how far the fit is, and before one that may take long its expected time: bars on a
        terminal if the package rich is installed, else lines, as in notebooks. False: nothing. By default bars where
        Python's prompt is on a terminal; scripts and notebooks are silent. A callable is called with a
        :class:`~sparsact.passes.progress.Progress` for every batch and ``note``.

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
    The rows are read twice: for the encoding, unless it is given, and for the sums of each fold, which give the
    degree, the penalty, all scores and the model. Where hash tables are compared, a third pass fills the
    tables of all rows and of each fold side by side if there are more than 131,072 rows; if memory is too small for
    that, each pass fills as many tables as fit. Held-out rows of hash tables are then a sample of 131,072, and so are
    the rows that choose and fit a sparse polynomial.

    Networks are fitted to 20,000 rows at most, drawn at random. Where they are not asked for, a small one is first
    fitted to 4,000 rows outside of the first fold, in seconds. Only if its error on that fold is at most a third above
    that of the best other model, networks are fitted to every fold, in up to some minutes. The effects beside a network
    come from the polynomial.

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
    >>> term = result.targets[0].terms[0]
    >>> term.label, round(term.effect, 3)  # both on: 0, where each by itself adds 1
    ('a × d', -2.0)
    """
    as_given = _named(data), None if test is None else _named(test)
    target = str(target) if isinstance(target, Integral) else target  # names of columns of pandas may be numbers
    if by_values := not (isinstance(target, Sequence) and all(isinstance(name, str) for name in target)):
        if is_paths(data):
            raise ValueError("`target` holds values, but `data` names files; pass the name of the target column.")
        data, target = with_target(data, target)
    elif isinstance(data, str) and isinstance(target, str) and not Path(data).is_file() and Path(target).is_file():
        raise ValueError(f"{data!r} is no file, but {target!r} is one; the table comes first, then the target.")
    options = FitOptions.of(locals())
    if split is not None and test is not None:
        raise ValueError("split and test both choose rows to score; leave one of the two out.")
    dialect = Dialect(separator, decimal)
    parts = Parts.open(data, dialect)
    of_files = list(dict.fromkeys(source.note for source in parts.sources if source.note))
    if cluster is not None:
        parts.files("`cluster`")
    survey = survey_of(parts, options, encoding)
    features = () if encoding is None else encoding.source_columns
    chosen = chosen_parts(parts, options, [*(one.name for one in survey.everything), *features])
    parts = chosen.learned
    survey = replace(survey, parts=parts)
    checkpoint = resume if isinstance(resume, Checkpoint) else Checkpoint.at(resume, keep_every)
    if progress is None and not (hasattr(sys, "ps1") and on_a_terminal()):  # ps1: Python's prompt
        progress = False
    with ExitStack() as stack:
        stages = Stages(stack.enter_context(showing(progress)))
        if checkpoint is not resume:
            stack.enter_context(checkpoint.listening())
        if checkpoint.path is not None:
            checkpoint.begin(parts.stamped("`resume`"), options.named())
        if cluster is not None:
            from sparsact.passes.dask import workers

            checkpoint.workers = stack.enter_context(workers(cluster))
        if encoding is not None and (cluster is None or parts.n_rows is not None):
            table = Table(parts, encoding, parts.n_rows, survey.batch_rows)
        else:
            with stages.stage("reading", parts.n_rows) as on_rows:
                table = survey_table(survey, on_rows, checkpoint)
        row_columns = RowColumns.of(parts, options)
        options = row_columns.folds_of(options)
        table = with_options(table, options, [*of_files, *chosen.notes, *row_columns.notes])
        from sparsact.fit.fit import FitSteps
        from sparsact.fit.scored_table import open_test, score_table  # load slowly; what was wrong so far is reported

        tested = chosen.tested if test is None else Parts.open(test, dialect)
        scored = None if tested is None else open_test(tested, table.encoding, options)

        call = options.call(*as_given, "target" if by_values else None)
        result = FitSteps(table, options, stages, checkpoint, row_columns).result(parts.name, call)
    if scored is not None:
        scored = replace(scored, encoding=result.encoding)  # which may have logarithms of the targets
        result = replace(result, test=score_table(result.model, scored, chosen.tested_name or scored.parts.name))
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

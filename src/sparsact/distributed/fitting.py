"""``fit``: one estimator from rows that lie in many places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from sparsact.datasets.columns import Encoding
from sparsact.distributed.additive import L, check_additive, with_params_of
from sparsact.extras import missing
from sparsact.passes.progress import OnProgress

if TYPE_CHECKING:
    from distributed import Client


def fit(
    estimator: L,
    data: object,
    client: Client | None = None,
    *,
    target: str | Sequence[str] | None = None,
    sample_weight: str | None = None,
    encoding: Encoding | None = None,
    classes: ArrayLike | None = None,
    progress: OnProgress | None = None,
) -> L:
    r"""An estimator fitted to rows that lie in partitions, by many processes or machines.

    Every partition becomes a statistic where it is, by the estimator's own ``partial_fit``; statistics are merged in a
    tree, eight at a time, by its own ``merge``; and the last one is solved here:

    .. math:: \text{statistic}(\text{rows}) = \sum_{p} \text{statistic}(\text{rows of partition } p).

    Parameters
    ----------
    estimator : estimator
        A ``LowDegreeRegressor``, ``LowDegreeClassifier``, ``LowDegreeRegressorCV``, ``LSHRegressor``,
        ``LSHClassifier`` or (``solver="ridge"``) ``DSMRegressor``. It stays as it is.
    data : tuple of Dask arrays, Dask DataFrame, path, list of paths, or iterable
        ``(X, y)`` or ``(X, y, sample_weight)``: X (m, n) in blocks of rows, whose sizes need not be known. Or a
        DataFrame, all of whose columns but ``target`` and ``sample_weight`` are features. Or Parquet, CSV or NPZ
        files, or a pattern such as ``"parts/*.parquet"``, which workers can read under the same names, in the order
        of :func:`sparsact.datasets.files`; a large Parquet file is cut between its row groups; numbers are used as
        they are. Or batches ``(X, y)`` or ``(X, y, sample_weight)``; a bounded number of them is held.
    client : dask.distributed.Client, optional
        Where to compute. None: on the current client, if there is one, else in threads of this process.
    target : str or sequence of str, optional
        For tables: the columns to learn.
    sample_weight : str, optional
        For tables: the column of weights.
    encoding : Encoding, optional
        For files, in place of ``target``: how columns become bits or numbers (:func:`sparsact.datasets.open_table`).
    classes : array-like of shape (n_classes,), optional
        For classifiers: all labels. None finds them in a pass of its own; for iterables they must be given.
    progress : callable, optional
        Called with a :class:`~sparsact.distributed.Progress` each time that a partition is done, from any thread.

    Returns
    -------
    fitted : estimator
        A new estimator, fitted.

    Raises
    ------
    TypeError
        If the estimator's statistic cannot be summed, or if the type of the data is not supported.
    ValueError
        If rows cannot be learned: the message begins with the name of the partition. If the parts of the data do not
        fit together, or hold no row.
    MemoryError
        If a worker has no room for the buckets of hash tables, with the name of the partition.
    ImportError
        Without the extra ``dask``.

    Notes
    -----
    *Low-degree models* on points of the cube are the same to the last bit as one ``fit`` of all rows, however they are
    cut: their sums do not round. Every partition is examined alone: where one may hold bits alone and another
    numbers, pass ``domain="real"``. Folds of ``LowDegreeRegressorCV`` follow the number of a row in the whole; where
    sizes of partitions are not known, a first pass counts them. *DSM and real columns*: equal within rounding; the same
    bits for a seed and a partitioning, because the tree is fixed. *LSH and DSM* choose a layout first,
    in a pass of its own, from the rows of smallest hash (131,072 at most), whatever the partitions: with no more rows
    than that, it is the layout of one ``fit``. Of an iterable, they take rows of the first 32 batches.

    A fitted LSH model remembers no rows, so that it grows with the inhabited buckets alone; ``remove`` refuses then.

    Dask holds the graph, so what a lost worker had is done again by the others, to the same result; the batches of an
    iterable stay in the scheduler until the 32 that belong together are summed. Workers take a new partition for each
    one that they finish, and statistics are dropped once they are merged. Only statistics travel, as arrays of numbers,
    not rows: see :doc:`/scaling`.

    Examples
    --------
    >>> import dask.array as da
    >>> from sparsact import LowDegreeRegressor, distributed
    >>> X = da.random.default_rng(0).integers(0, 2, (1000, 5), chunks=(300, 5))
    >>> model = distributed.fit(LowDegreeRegressor(degree=2), (X, X[:, 0] * X[:, 3]))
    >>> float(round(model.r2_, 6)), model.n_samples_seen_
    (1.0, 1000)
    """
    try:
        from sparsact.distributed.partitions import Roles, partitions
        from sparsact.distributed.passes import Passes
        from sparsact.passes.dask import Engine
    except ImportError as error:
        if error.name not in ("dask", "distributed"):
            raise
        raise ImportError(missing("sparsact.distributed", "dask")) from error
    check_additive(estimator)
    parts = partitions(data, Roles.of(target, sample_weight, encoding))
    learner = Passes(parts, Engine(client), progress).fitted(estimator, classes)
    return with_params_of(learner, estimator)

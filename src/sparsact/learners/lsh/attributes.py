"""Fitted attributes of LSH models."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sparsact.learners.lsh.bucket_counts import unseen_mass
from sparsact.learners.lsh.bucket_table import BucketTable
from sparsact.learners.lsh.fixed_part import FixedPart
from sparsact.learners.lsh.inputs import InputRules
from sparsact.learners.lsh.layout import Array
from sparsact.transaction import locked


class TableAttributes:
    """Attributes of an :class:`~sparsact.learners.lsh.estimator.LSHModel` that are read off its parts."""

    n_features_in_: int
    table_: BucketTable
    _fixed: FixedPart
    _inputs: InputRules
    _tidy: Callable[[], None]

    @property
    @locked
    def n_buckets_(self) -> int:
        """Buckets that hold rows, over all tables."""
        return int(np.count_nonzero(self.table_.counts))

    @property
    @locked
    def bucket_counts_(self) -> NDArray[np.int64]:
        """Rows in each bucket; as many numbers as there are buckets."""
        self._tidy()
        return self.table_.counts.copy()

    @property
    def n_hashes_(self) -> int:
        """Hash functions (codes) of each table."""
        return self.table_.layout.n_hashes

    @property
    def n_tables_(self) -> int:
        """Hash tables of the last stage."""
        return self.table_.layout.n_tables

    @property
    def degree_(self) -> int:
        """Degree of the polynomials of the last stage."""
        return self.table_.layout.degree

    @property
    def n_stages_(self) -> int:
        """Stages of tables; all but the last one are frozen."""
        return 1 + len(self._fixed.stages)

    @property
    def columns_(self) -> NDArray[np.int64]:
        """Columns that the tables see, in ascending order."""
        kept, sources = self._fixed.columns, self._inputs.sources
        return np.unique(sources if kept is None else sources[kept])

    @property
    def trend_(self) -> Array:
        """Slopes (d, targets) of the linear trend; 0 for categories and for columns that the tables do not see."""
        slopes = self.table_.layout.trend
        kept, numeric = self._fixed.columns, self._inputs.numeric
        encoded = np.zeros((self._fixed.n_columns, slopes.shape[1]))
        encoded[slice(None) if kept is None else kept] = slopes
        found = np.zeros((self.n_features_in_, slopes.shape[1]))
        found[numeric] = encoded[: len(numeric)]
        return found

    @property
    @locked
    def n_samples_seen_(self) -> int:
        """Rows of positive weight held."""
        return self.table_.n_rows

    @property
    @locked
    def miss_rate_(self) -> float:
        """Share of new inputs whose bucket in a table is empty, as Good and Turing estimate it from the counts."""
        return unseen_mass(self.table_.counts)

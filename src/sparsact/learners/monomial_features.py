"""Monomials: the features of the low-degree learners, for a pipeline of scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from sparsact.hypercube import Subset
from sparsact.learners.constraints import DOMAIN, SIZE
from sparsact.learners.low_degree.polynomial import Family
from sparsact.learners.low_degree.real_columns import monomials
from sparsact.learners.points import Encoding, dense_blocks, numeric_rows, pack, set_encoding, unpack
from sparsact.memory import has_room


@dataclass(eq=False, repr=False)
class Monomials(TransformerMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    r"""Products of the columns in each subset: on the cube the characters :math:`\chi_S(x) = \prod_{i \in S} x_i`.

    The features of :class:`LowDegreeRegressor`, in the order of its ``subsets_``. Bits become signs first, bit 1 is -1;
    that is what sets it apart from ``PolynomialFeatures(interaction_only=True, include_bias=False)``. The result is
    dense, m x D float64. :class:`LowDegreeRegressor` fits the same features without that matrix.

    Parameters
    ----------
    degree, domain, min_degree, subsets
        As in :class:`LowDegreeRegressor`; ``degree`` is a number.

    Attributes
    ----------
    subsets_ : list of tuples
        The monomials: by size, then lexicographic.
    domain_ : {"cube", "real"}
        What the fitted rows are.
    encoding_ : {"signs", "bits", None}
        How points of the cube are written; None for real columns.

    Examples
    --------
    >>> from sparsact import Monomials
    >>> Monomials(2).fit_transform([[0, 0], [0, 1], [1, 1]])
    array([[ 1.,  1.,  1.],
           [ 1., -1., -1.],
           [-1., -1.,  1.]])
    """

    degree: int = 2
    _: KW_ONLY
    domain: str = "auto"
    min_degree: int = 1
    subsets: Iterable[Iterable[int]] | None = None

    encoding_: Encoding | None = field(init=False)
    _max_memory: ClassVar[float | None] = None  # bytes; None for 80 % of what is free
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [SIZE],
        "domain": DOMAIN,
        "min_degree": [SIZE],
        "subsets": ["array-like", None],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the encoding of rows X (m, n); a MemoryError if a list of the monomials does not fit into memory."""
        self._validate_params()
        rows = numeric_rows(self, X, reset=True, ensure_all_finite=self.domain != "cube")
        set_encoding(self, rows)
        n = self.n_features_in_
        if self.subsets is None:
            self._family = Family.full(n, self.degree, self.min_degree)
        else:
            self._family = Family.explicit(n, list(self.subsets))
        return self

    @property
    def subsets_(self) -> list[Subset]:
        """The monomials: by size, then lexicographic."""
        check_is_fitted(self)
        return self._family.subsets

    @property
    def domain_(self) -> str:
        """``"cube"`` or ``"real"``: what the fitted rows are."""
        check_is_fitted(self)
        return "real" if self.encoding_ is None else "cube"

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """The monomials of rows X (m, n), an array (m, D); a MemoryError unless it fits into memory twice."""
        check_is_fitted(self)
        rows = numeric_rows(self, X, reset=False, ensure_all_finite=self.encoding_ is None)
        nbytes = 2 * 8.0 * rows.shape[0] * len(self._family)
        if not has_room(nbytes, self._max_memory):
            raise MemoryError(
                f"{rows.shape[0]:,} rows of {len(self._family):,} monomials need about {nbytes / 2**30:,.1f} GiB; pass "
                "fewer rows at once, or fit LowDegreeRegressor, which does not need this matrix."
            )
        names = getattr(self, "feature_names_in_", None)
        blocks = dense_blocks(rows) if self.encoding_ is None else [unpack(pack(rows, self.encoding_, names))]
        return np.concatenate([monomials(block.astype(np.float64), self._family) for block in blocks])

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the columns in each monomial, separated by spaces, as of ``PolynomialFeatures``, (D,)."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array([" ".join(names[i] for i in subset) for subset in self.subsets_], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_family")

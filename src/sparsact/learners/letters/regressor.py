"""LettersRegressor: a function of sites with letters, by Gaussian processes and networks that are weighted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sparsact.fourier.hoeffding import Anova, anova
from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.constraints import one_of
from sparsact.learners.gp.kernel import Array
from sparsact.learners.letters.alphabet import Alphabet, characters_of
from sparsact.learners.letters.ensemble import fitted_ensemble, merged_rows
from sparsact.learners.letters.saving import ensemble_arrays, read_ensemble
from sparsact.learners.stacking import intervals_about
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import ArrayField, Arrays, Checks, State
from sparsact.statistics.column_scales import exponents_of
from sparsact.statistics.conformal import kept_errors
from sparsact.transaction import locked, transaction
from sparsact.validation.estimators import are_counts, checked_sample_weight, errors_name_place, refuse_named_columns

MOST_ERRORS: Final = 4_096  # of rows left out, that are kept as quantiles
LARGEST_GRID: Final = 1 << 22  # cells on which a fitted function is decomposed
_ERRORS: Final = {"errors": ArrayField("r", finite=True, nonnegative=True)}
_LEARNED: Final[Checks] = {"n_features_in_": schema.as_count, "table_encoding_": schema.as_str}


class LettersRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    r"""Regression on sites that each have one of a few letters, such as amino acids, nucleotides or categories.

    A site is one factor, not as many columns as it has letters. Gaussian processes with product kernels, whose factor
    for each site is a learned kernel between its letters, isotonic regressions on their means, and networks predict y;
    the prediction weights them by how well they predict rows that they have not seen.

    Parameters
    ----------
    alphabet : {"auto", "amino acids", "plain"}, default="auto"
        Kind of letters. Kernels between amino acids start from seven published properties; kernels between plain
        letters start with all pairs equally far apart. ``"auto"``: amino acids if there are at least eight letters and
        each is an amino acid, a stop ``*`` or a gap ``-``; else plain.
    quantities : sequence of int, default=()
        Sites whose letters are numbers in an order, such as sizes. Kernels of these go by the numbers and their ranks,
        and ``predict`` reads any number as the nearest one known. The members are then a process that expects little
        noise, networks, and boosted trees of two sizes, weighted by Huber's loss.
    random_state : int, RandomState or None, default=None
        Seed of folds, of the rows that kernels are learned from, of networks and of trees.

    Attributes
    ----------
    letters_ : list of tuple of str
        Letters of each site. Sites of single characters share theirs, so that a letter may be predicted at a site where
        no row had it. ``predict`` refuses any other letter, but reads a number as the nearest one of a site whose
        letters are numbers that are not all whole: these are quantities.
    alphabet_ : str
        ``"amino acids"`` or ``"plain"``.
    weights_ : dict of float
        Nonnegative weights of the members.
    out_of_fold_ : ndarray of shape (m,)
        Predictions of the fitted rows, each by members, curves and weights fitted without that row; score these.
    n_features_in_ : int
        Sites.

    Notes
    -----
    Kernels are as in [1]_ for categories, with features as in [2]_: the distance of two letters is that of learned
    multiples of their features plus small deviations, free for each letter. They maximise the marginal likelihood times
    a prior, by steps on 1,000 redrawn rows. Each of three kernels (five, below 1,000 rows) is learned without a fold
    and then fitted to all rows: exactly, by conjugate gradients with Kronecker products, where all combinations of the
    letters are at most 2**23; else a process has at most 5,000 rows, drawn at random, and only the networks have all.

    Three processes see y as it is, the inverse hyperbolic sine of its distance from the median, and the logit of its
    place in its range. Isotonic regressions bring the last two back to y. Weights are least squares on out-of-fold
    predictions, with a ridge towards equal ones [3]_.

    A weight counts as that many rows; rows of the same letters are merged. Weights that are not all whole are
    precisions in any unit: their geometric mean counts as one row.

    References
    ----------
    .. [1] C. K. I. Williams, C. E. Rasmussen, "Gaussian Processes for Machine Learning", 2006, Section 4.4.
    .. [2] P. A. Romero, A. Krause, F. H. Arnold, "Navigating the protein fitness landscape with Gaussian processes",
       PNAS 110, 2013.
    .. [3] L. Breiman, "Stacked regressions", Machine Learning 24, 1996.

    Examples
    --------
    Two sites of four letters and one that does not matter; the pair CG is special:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice(list("ACGT"), size=(150, 3))
    >>> y = (X[:, 0] == "A") + 2.0 * ((X[:, 0] == "C") & (X[:, 1] == "G"))
    >>> model = LettersRegressor(random_state=0).fit(X, y)
    >>> model.predict(["AAA", "CGT", "TTT"]).round(1) + 0.0
    array([1., 2., 0.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alphabet": [one_of("auto", "amino acids", "plain")],
        "quantities": ["array-like"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        alphabet: str = "auto",
        *,
        quantities: Sequence[int] = (),
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.alphabet = alphabet
        self.quantities = quantities
        self.random_state = random_state

    def _fork(self) -> Callable[[bool], None]:
        """For :func:`.transaction`: a fit changes nothing in place."""
        return lambda done: None

    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Learn from rows X, targets y (m,) and weights (m,).

        Parameters
        ----------
        X : array-like of shape (m, n), or of m strings of n letters
            Texts, or numbers that stand for letters; 1 and 1.0 are the same. None may be missing.
        y : array-like of shape (m,)
            Targets.
        sample_weight : array-like of shape (m,), optional
            Numbers of rows that each row counts as, or precisions.
        """
        self._validate_params()
        with errors_name_place(y=y):
            rows, targets = validate_data(self, characters_of(X), y, dtype=None, y_numeric=True, ensure_min_samples=2)
        weights = checked_sample_weight(sample_weight, targets)
        there = weights > 0
        rows, targets, weights = rows[there], np.asarray(targets, dtype=np.float64)[there], weights[there]
        if not are_counts(weights):
            weights = weights / np.exp(np.log(weights).mean())
        self._alphabet = Alphabet.of(rows, self.alphabet, self.quantities)
        exponent = int(exponents_of(targets))
        scaled = np.ldexp(targets, -exponent)  # squares of any numbers are then numbers
        codes, of_row, total = merged_rows(self._alphabet.codes(rows), scaled, weights)
        mean = np.bincount(of_row, weights * scaled) / total
        if len(codes) < 2:
            raise ValueError("all rows have the same letters, but a fit needs two different rows; pass more.")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1, size=4))
        order = rng.permutation(len(codes))
        with blas_threads(0):
            found, predictions = fitted_ensemble(
                self._alphabet.features,
                codes[order],
                mean[order],
                total[order],
                rng,
                quantities=bool(self._alphabet.quantities),
            )
        self._ensemble = replace(found, unit=float(np.ldexp(1.0, exponent)))
        self.out_of_fold_ = np.full(len(there), np.nan)
        self.out_of_fold_[there] = np.ldexp(predictions[np.argsort(order)][of_row], exponent)
        self._errors = kept_errors(self.out_of_fold_[there] - targets, MOST_ERRORS)

    def predict(self, X: ArrayLike) -> Array:
        """Predictions (m,) for rows X."""
        check_is_fitted(self)
        refuse_named_columns(self, X)
        rows = validate_data(self, characters_of(X), dtype=None, reset=False)
        with blas_threads(0):
            return self._ensemble.values(self._alphabet.codes(rows))

    def prediction_intervals(self, X: ArrayLike, confidence: float = 0.95) -> Array:
        """Intervals (m, 2) around :meth:`predict`, as wide as the errors of ``out_of_fold_`` require.

        The width is the same for all rows, and right for rows drawn as the rows of the fit were
        (:mod:`sparsact.statistics.conformal`). Infinite where these are too few for the confidence.
        """
        return intervals_about(self.predict(X), self._errors, confidence)

    @property
    def letters_(self) -> list[tuple[str, ...]]:
        """Letters of each site."""
        check_is_fitted(self)
        return list(self._alphabet.sites)

    @property
    def alphabet_(self) -> str:
        """``"amino acids"`` or ``"plain"``."""
        check_is_fitted(self)
        return "amino acids" if self._alphabet.amino_acids else "plain"

    @property
    def weights_(self) -> dict[str, float]:
        """Weights of the members."""
        check_is_fitted(self)
        names = [f"{name}, isotonic" if curved else name for name, curved in self._ensemble.members]
        return dict(zip(names, self._ensemble.weights.tolist(), strict=True))

    def anova(self, frequencies: Sequence[ArrayLike] | None = None) -> Anova:
        """Sum-to-zero components of the fitted function over all combinations of ``letters_``.

        Parameters
        ----------
        frequencies : sequence of array-like of shape (q_i,), optional
            Frequencies of the letters of each site; by default all are equally frequent.

        Returns
        -------
        Anova
            Variances by degree, site and pair, and effects of letters.

        Raises
        ------
        ValueError
            If the combinations are more than 2**22.
        """
        check_is_fitted(self)
        sizes = list(map(len, self.letters_))
        if (n_cells := np.prod(sizes, dtype=float)) > LARGEST_GRID:
            raise ValueError(
                f"{len(sizes)} sites have {n_cells:.3g} combinations of letters, and at most {LARGEST_GRID:,} can be "
                "decomposed; fit fewer sites."
            )
        with blas_threads(0):
            cells = np.indices(sizes).reshape(len(sizes), -1).T
            return anova(self._ensemble.values(cells).reshape(sizes), frequencies)

    @locked
    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back."""
        check_is_fitted(self)
        state = schema.learned_state(self, _LEARNED) | {"params": schema.params_of(self)}
        state |= {"letters": schema.to_json(self._alphabet.sites), "amino_acids": self._alphabet.amino_acids}
        arrays = ensemble_arrays(self._ensemble) | {"errors": self._errors}
        modelfile.write(path, type(self).__name__, state, arrays)

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The regressor that :meth:`save` wrote; without ``out_of_fold_``, which needs the rows of the fit."""
        learner: Self = schema.rebuild(cls, state, _LEARNED, optional=("table_encoding_",))
        sites = tuple(tuple(schema.as_strs(letters, "letters")) for letters in state["letters"])
        if len(sites) != learner.n_features_in_ or not all(sites) or any(len(set(one)) < len(one) for one in sites):
            raise ValueError("letters that do not belong to the sites")
        known = schema.as_bool(state["amino_acids"], "amino_acids")
        learner._alphabet = Alphabet(sites, known, frozenset(learner.quantities))
        learner._errors = np.sort(schema.read_arrays(_ERRORS, arrays)["errors"])
        learner._ensemble = read_ensemble(
            learner._alphabet.features, arrays, quantities=bool(learner._alphabet.quantities)
        )
        return learner

    def __sklearn_is_fitted__(self) -> bool:
        return "_ensemble" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        """Columns are categories, numbers or texts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.regressor_tags.poor_score = True
        return tags

"""SparselyActivatedRegressor: empirical risk minimisation in the class of sparsely activated networks."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sparsact.bounds import expected_active_bound
from sparsact.fourier import Spectrum
from sparsact.hypercube import points
from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.sparsely_activated.erm import ERMCandidate, Minimisation
from sparsact.learners.sparsely_activated.estimator import SparselyActivatedModel, distinct_examples, generator_of
from sparsact.learners.sparsely_activated.leaf_models import TrainingSample
from sparsact.learners.sparsely_activated.to_network import NormLimits, network_of
from sparsact.network import SparselyActivatedNetwork
from sparsact.saving import modelfile, schema
from sparsact.saving.schema import ArrayField, Arrays, Checks, State
from sparsact.transaction import locked, transaction
from sparsact.validation.estimators import checked_rows

if TYPE_CHECKING:
    from sparsact.certificate import Certificate

LARGEST_SPECTRUM: Final = 20  # coordinates
_LEARNED: Final[Checks] = {
    "n_features_in_": schema.as_count,
    "encoding_": schema.as_encoding,
    "n_iter_": schema.as_count,
    "origin_": schema.as_str,
    "expected_active_bound_": schema.as_nonnegative,
    "table_encoding_": schema.as_str,  # how the command encoded the columns of a table
}
_ARRAYS: Final = {
    "u": ArrayField("s"),
    "W": ArrayField("s n"),
    "b": ArrayField("s"),
    "loss": ArrayField("1"),
    "activity": ArrayField("levels", np.int64, nonnegative=True),
    "witness": ArrayField("n", finite=True),
}


class SparselyActivatedRegressor(RegressorMixin, SparselyActivatedModel):  # type: ignore[misc] # untyped scikit-learn
    r"""Least squares among networks of s ReLU units with at most k active at any training input.

    .. math:: \min_{h \in \mathcal{H}_{n,s,k}^{W,B}} \sum_i w_i \big(y_i - h(x_i)\big)^2, \qquad
              h(x) = \sum_{j=1}^{s} u_j\, \sigma(\langle w_j, x \rangle - b_j),

    the problem that Theorem 17 of [A]_ solves with :math:`O((WR + B)^2 k s n / \varepsilon^2)` rows of any distribution
    on :math:`\|x\| \le R`, up to logarithms. That theorem says nothing of time, and by Theorem 3 polynomial time is
    not to be hoped for: this is a search, exact in membership and heuristic in the minimum.

    Parameters
    ----------
    n_units : int or "auto", default=64
        Largest number of units s. Fewer are used if the held-out error does not grow. ``"auto"``: as many as the
        number of rows allows, at most 128.
    max_active : int, default=1
        Largest number k of active units for any training input.
    max_weight, max_bias : float, default=None
        The scale (W, B) of Definition 2: :math:`\|u\|_\infty \|w_j\|_2 \le W` and :math:`\|u\|_\infty |b_j| \le B`,
        over the columns of X (over signs, on the cube). None for no limit.
    n_restarts : int, default=8
        Searches beyond the first trees: by turns descents from random units, and trees with another first split. The
        search ends before where two of them agree.
    max_iter : int, default=200
        Iterations of L-BFGS at the end of each descent; 12.5 times as many mini-batches come before.
    tol : float, default=1e-8
        The search ends at a network that leaves less than this share of the variance.
    domain : {"auto", "cube", "real"}, default="auto"
        ``"cube"``: X must be signs (+1, -1), bits (0, 1) or bool; bit 1 is sign -1. ``"real"``: columns are used as
        they are. ``"auto"``: the cube if the values allow it.
    random_state : int, RandomState or None, default=None
        Seed of the restarts.
    verbose : int, default=0
        Print each candidate.

    Attributes
    ----------
    network_ : SparselyActivatedNetwork
        The network; over signs when X was bits.
    certificate_ : Certificate
        Largest number of active units over the fitted rows.
    cube_certificate_ : Certificate
        The same for all points of the cube.
    expected_active_bound_ : float
        Upper bound of the mean number of active units on fresh rows, at 95 %, from the rows fitted
        (:func:`sparsact.bounds.expected_active_bound`): it holds for all networks at once, so also for the one that
        was fitted to these rows, if they were drawn independently from one distribution. At most ``network_.s``, which
        it is where rows are few, or their weights differ.
    spectrum_ : Spectrum
        Fourier spectrum of the network, on the cube.
    loss_ : float
        Weighted mean squared error on the rows fitted; infinite beyond the range of float64.
    n_iter_ : int
        Iterations that led to the network: trees grown or steps of descent.
    origin_ : str
        How it was found.
    domain_, encoding_ : str
        ``"cube"`` or ``"real"``; ``"signs"``, ``"bits"`` or None.
    n_features_in_ : int
        Columns.

    Notes
    -----
    A weight counts as that many rows. Weights of mean below one, which cannot be counts, are scaled to mean one. Rows
    of weight zero are left out, of the guarantees too.

    References
    ----------
    .. [A] "Learning Neural Networks with Sparse Activations", 2024, Definition 2, Theorems 3 and 17.

    Examples
    --------
    Two address bits choose which of four others is the answer; a network of four units says so, one of them on at most:

    >>> from sparsact.hypercube import points
    >>> z = points(6)
    >>> address = (z[:, 0] < 0) + 2 * (z[:, 1] < 0)
    >>> y = (z[range(64), 2 + address] + 1) / 2
    >>> model = SparselyActivatedRegressor(random_state=0).fit(z, y)
    >>> model.network_
    <SparselyActivatedNetwork of 4 units on 6 inputs (dense), W = 0.866, B = 0.5>
    >>> int(model.network_.n_active(z).max()), float(abs(model.predict(z) - y).max().round(6))
    (1, 0.0)
    """

    @blas_threads(0)  # thousands of small products
    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Fit to rows X (m, n), targets y (m,) and weights (m,)."""
        self._validate_params()
        rng = generator_of(self.random_state)
        inputs, targets, weights = self._rows(X, y, sample_weight)
        distinct = distinct_examples(inputs, targets, weights)
        sample = TrainingSample.of(*distinct, cube=self.encoding_ is not None)
        bounds = self._bounds(sample)
        limits = NormLimits.of(sample, self.max_weight, self.max_bias)
        search = Minimisation(sample, bounds, limits, rng=rng, report=self._report)
        found = []
        for candidate in (search.run(), search.constant):
            network = network_of(candidate.units, sample, distinct[0], self.max_active, self.max_weight, self.max_bias)
            found.append((sample.squared_error(network(distinct[0]) / sample.size), network, candidate))
        # What rounding over X spoils may in extremes leave less than a constant gives.
        error, self.network_, best = min(found, key=lambda each: each[0])
        with np.errstate(over="ignore"):
            self.loss_ = float(np.float64(sample.size) * (sample.size * (error / sample.total)))
        self.n_iter_, self.origin_ = max(1, best.iterations), best.origin
        active = self.network_.n_active(inputs)
        self._activity, self._witness = np.bincount(active).astype(np.int64), inputs[active.argmax()]
        R = None if self.encoding_ is None else sqrt(self.n_features_in_)
        self.expected_active_bound_ = float(self.network_.s)
        if weights.min() == weights.max():  # else nobody knows which rows were drawn
            self.expected_active_bound_ = expected_active_bound(self.network_, inputs, R=R)

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predicted targets, (m,)."""
        check_is_fitted(self)
        finite = self.encoding_ is None  # on the cube, packing names the column and the row of a NaN
        return self.network_(
            self._inputs(checked_rows(self, X, reset=False, dtype="numeric", ensure_all_finite=finite))
        )

    @property
    def domain_(self) -> str:
        """``"cube"`` or ``"real"``: what the fitted rows are."""
        return "real" if self.encoding_ is None else "cube"

    @property
    def certificate_(self) -> Certificate:
        """Largest number of active units over the fitted rows, counted exactly; at most ``max_active``.

        Rows of weight zero are not among them. For other inputs see :attr:`cube_certificate_`.
        """
        from sparsact.certificate import Certificate  # late: only who asks needs it

        check_is_fitted(self)
        n_rows, most = int(self._activity.sum()), len(self._activity) - 1
        return Certificate(
            max_active=most,
            upper=most,
            witness=self._witness if self.domain_ == "real" else self._witness.astype(np.int8),
            method="rows",
            proof="counting at each of them",
            inputs=f"any of the {n_rows:,} rows fitted",
            n_units=self.network_.s,
            distribution=tuple(self._activity.tolist()),
        )

    @property
    def cube_certificate_(self) -> Certificate:
        """Largest number of active units over all points of the cube, from ``network_.certify()``.

        Trees are k-sparse on the whole cube; what descent gives is so on the rows fitted (see ``origin_``). For many
        coordinates the proof may take its time: then call ``network_.certify`` with a limit of your own.
        """
        check_is_fitted(self)
        if self.domain_ == "real":
            raise AttributeError('a model of real columns has no certificate over the cube; fit with domain="cube".')
        return self.network_.certify()

    @property
    def spectrum_(self) -> Spectrum:
        """Fourier spectrum of the network, from all ``2**n`` values, so for n up to 20."""
        check_is_fitted(self)
        if self.domain_ == "real":
            raise AttributeError('a model of real columns has no spectrum over the cube; fit with domain="cube".')
        if self.n_features_in_ > LARGEST_SPECTRUM:
            raise AttributeError(
                f"`spectrum_` takes at most {LARGEST_SPECTRUM} columns; got {self.n_features_in_}: estimate what you "
                "need by the functions sparsact.fourier.estimate_*."
            )
        return Spectrum.of(self.network_(points(self.n_features_in_)))

    @locked
    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, which :func:`sparsact.load` reads back."""
        check_is_fitted(self)
        modelfile.write(path, type(self).__name__, self._state(), self._arrays())

    def _state(self) -> State:
        return schema.learned_state(self, _LEARNED) | {"params": schema.params_of(self)}

    def _arrays(self) -> Arrays:
        network = self.network_
        return {
            "u": network.u,
            "W": network.W,
            "b": network.b,
            "loss": np.array([self.loss_]),  # may be infinite, which JSON cannot say
            "activity": self._activity,
            "witness": self._witness,
        }

    @classmethod
    def _from_file(cls, state: State, arrays: Arrays) -> Self:
        """The regressor that :meth:`save` wrote."""
        learner: Self = schema.rebuild(cls, state, _LEARNED, optional=("table_encoding_", "expected_active_bound_"))
        read = schema.read_arrays(_ARRAYS, arrays, n=learner.n_features_in_)
        learner.network_ = SparselyActivatedNetwork(read["u"], read["W"], read["b"])
        learner.loss_, learner._activity, learner._witness = float(read["loss"][0]), read["activity"], read["witness"]
        if not 0 < len(learner._activity) <= 1 + learner.network_.s:
            raise ValueError("counts of active units that do not fit the network")
        if learner.encoding_ and (abs(learner._witness) != 1).any():
            raise ValueError("a witness that is no point of the domain")
        return learner

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def _report(self, candidate: ERMCandidate) -> None:
        if self.verbose:
            print(
                f"{type(self).__name__}: {candidate.origin}: {len(candidate.units)} units, "
                f"score {candidate.score:.4g}, squared error {candidate.squared_error:.4g}"
            )

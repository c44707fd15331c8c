"""LatentRegressor: a polynomial or Gaussian process on the cube behind a bounded or curved measurement."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, column_or_1d

from sparsact.hypercube import n_subsets
from sparsact.kernels.dispatch import blas_threads
from sparsact.learners.constraints import AUTO, COUNT, DOMAIN, NONNEGATIVE, SIZE, one_of
from sparsact.learners.latent.fitted import FittedLatent
from sparsact.learners.latent.fitting import MeasuredRows, fitted_gp, fitted_polynomial
from sparsact.learners.latent.latents import LatentFit
from sparsact.learners.latent.measurement import STRAIGHT, FittedMeasurement
from sparsact.learners.latent.newton import MAX_ITER
from sparsact.learners.latent.selection import MOST_COLUMNS, MOST_MONOMIALS, LatentCandidate, chosen, degrees_to_try
from sparsact.learners.latent.shared import SharedMeasurement, fitted_traits
from sparsact.learners.latent.targets import Censoring, Targets, checked_bounds
from sparsact.learners.latent.traits import SHARING, THERMODYNAMIC
from sparsact.learners.on_cube import Array, bits_of
from sparsact.transaction import transaction

_SQUARED_MONOMIALS: Final = 1e5  # of a typical product
_LEVELS: Final = 3  # from the warning to the caller of fit
LINK_NAMES: Final = ("identity", "log", "sigmoid", "monotone")  # from the simplest on


@dataclass(eq=False, repr=False)
class LatentRegressor(FittedLatent, RegressorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn ships no types
    r"""Regression on a latent function of bits that is measured through a curve, with noise and between bounds.

    .. math:: y = \mathrm{clip}(g(f(x)) + \varepsilon,\ lower,\ upper), \qquad
              f(x) = \sum_S \hat f(S)\, \chi_S(x), \qquad \varepsilon \sim N(0, \sigma^2).

    A floor or a curve makes an additive function look as if it had interactions of every size. This model fits f, the
    curve g and the noise by maximum likelihood. A target at its bound says only that the true value is there or beyond
    (Tobit, [1]_).

    Several targets may measure the same additive traits: energies of folding and of binding [3]_. See ``link``.

    Parameters
    ----------
    latent : {"low-degree", "gp"}, default="low-degree"
        ``"low-degree"``: a polynomial of all products of up to ``degree`` columns. ``"gp"``: a Gaussian process of the
        default kernel of :class:`CubeGPRegressor`, by Laplace's approximation.
    degree : int or "auto", default="auto"
        Degree of the polynomial. ``"auto"`` tries up to 4, and chooses it and the link by the log-likelihood of
        held-out rows; a higher degree must be better by two standard errors. A process learns the curve with this
        polynomial. Shared traits need 1.
    link : str, or sequence of one for each target, default="identity"
        The curve. ``"identity"``: none. ``"log"``: log y is f plus noise. ``"sigmoid"``: a logistic curve with learned
        asymptotes; noise may carry targets beyond them. ``"monotone"``: an increasing cubic spline (global epistasis,
        [2]_). ``"auto"``: the simplest curve, unless another is better by two standard errors. ``"two-state"``: the
        folded fraction :math:`1 / (1 + e^{f_0})`, and ``"three-state"``: the bound fraction
        :math:`1 / (1 + e^{f_k} (1 + e^{f_0}))`, with learned level and height. Targets share the energy :math:`f_0`, in
        kT; each target with three states has its own binding energy :math:`f_k`. ``("two-state", "three-state")`` thus
        learns folding and binding. Other targets may measure :math:`f_0` by the first three links.
    censoring : tuple (lower, upper), "auto" or None, default="auto"
        Bounds at which targets are censored; None for a side without one. ``"auto"`` takes the lowest and the highest
        target as bounds if at least 3 % of the rows have them, and three times as many as have any value in between.
        All targets have the same bounds.
    alpha : float or "auto", default="auto"
        Ridge penalty on the coefficients except the intercept, in units of the noise, as in scikit-learn's ``Ridge``.
        ``"auto"``: one penalty for each degree, by maximum marginal likelihood.
    domain : {"auto", "cube", "real"}, default="auto"
        ``"cube"``: X must be signs (+1, -1), bits (0, 1) or bool; bit 1 is sign -1. ``"real"``: columns are cut at
        their medians. ``"auto"``: the cube if the values allow it.
    max_iter : int, default=500
        Most Newton steps for given penalties, and most steps in the penalties; a warning if more are needed.
    random_state : int, RandomState or None, default=None
        Seed of folds and of the rows that kernels are learned from.

    Attributes
    ----------
    censoring_ : tuple of float or None
        The bounds; of several targets a list of them.
    n_censored_ : int
        Rows at a bound.
    link_, degree_ : str or tuple of str, int
        The curve or curves, and the degree of the polynomial.
    candidates_ : list of LatentCandidate
        Links and degrees that were compared, with the mean log-likelihood of a held-out row.
    noise_deviation_ : float or ndarray of shape (T,)
        :math:`\sigma`; with the link ``"log"`` of log y.
    n_iter_ : int
        Number of Newton steps over all penalties.
    spectrum_ : Spectrum, or list of one for each of several traits
        Spectrum of f, in units of y (log y), of a sigmoid's argument, or with ``"monotone"`` of mean 0 and variance 1.
        Traits are in kT: if a bit changes from 0 to 1, the energy changes by -2 times its coefficient.
    encoding_ : str
        ``"signs"`` or ``"bits"``; None for columns that were cut at ``cuts_``.
    n_features_in_ : int
        Columns.

    Notes
    -----
    A step for a polynomial of D monomials and m rows costs :math:`m D^2` operations. Ten steps are usual, and 50 with a
    curve. Up to 1,000 monomials are tried, and up to 2,000 columns without products. If rows differ from each other in
    few columns, monomials are sparse: a step costs m times the square of that number, and D^3. A process takes
    more time and memory than :class:`CubeGPRegressor`, by a factor of about ten.

    Intervals, and deviations of latents, come from the curvature of the likelihood, with Student's t of the measured
    rows minus parameters. They count the uncertainty of curve and noise; intervals of a process do not.

    References
    ----------
    .. [1] J. Tobin, "Estimation of relationships for limited dependent variables", Econometrica 1958.
    .. [2] J. Otwinowski, D. M. McCandlish, J. B. Plotkin, "Inferring the shape of global epistasis", PNAS 2018.
    .. [3] A. J. Faure et al., "Mapping the energetic and allosteric landscapes of protein binding domains", 2022.

    Examples
    --------
    Behind a floor that hides 60 % of the rows, an additive function comes out additive:

    >>> import numpy as np
    >>> from sparsact import LatentRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1, 1], (500, 6))
    >>> f = X @ [3.0, -2.0, 1.0, 1.0, 0.5, 0.0]
    >>> y = np.maximum(f + 0.5 * rng.normal(size=500), 1.0)
    >>> model = LatentRegressor(random_state=0).fit(X, y)
    >>> model.censoring_, model.degree_
    ((1.0, None), 1)
    >>> [(subset, round(value, 0)) for subset, value in model.spectrum_.top(2)]
    [((0,), 3.0), ((1,), -2.0)]

    A folded fraction and a bound fraction of the same rows, with energies of folding and of binding:

    >>> folding, binding = X @ [1.0, 0.5, -0.5, 0.0, 0.0, 0.0], X @ [0.0, 0.0, 0.5, -1.0, 0.5, 0.0]
    >>> Y = np.stack([1 / (1 + np.exp(folding)), 1 / (1 + np.exp(binding) * (1 + np.exp(folding)))], axis=1)
    >>> model = LatentRegressor(link=("two-state", "three-state")).fit(X, Y + 0.05 * rng.normal(size=Y.shape))
    >>> [round(spectrum.coefficient((3,))) for spectrum in model.spectrum_]
    [0, -1]
    """

    latent: str = "low-degree"
    _: KW_ONLY
    degree: int | str = "auto"
    link: str | Sequence[str] = "identity"
    censoring: Censoring = "auto"
    alpha: float | str = "auto"
    domain: str = "auto"
    max_iter: int = MAX_ITER
    random_state: int | np.random.RandomState | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "latent": [one_of("low-degree", "gp")],
        "degree": [SIZE, AUTO],
        "link": [one_of("auto", *LINK_NAMES, *THERMODYNAMIC), list, tuple],
        "censoring": ["array-like", AUTO, None],
        "alpha": [NONNEGATIVE, AUTO],
        "domain": DOMAIN,
        "max_iter": [COUNT],
        "random_state": ["random_state"],
    }

    @transaction
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> None:
        """Learn latent, curve and noise from rows X (m, n), targets y (m,) and weights (m,), numbers of rows.

        Of several links y is (m, T), NaN where a target was not measured.
        """
        self._validate_params()
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1, size=4).tolist())
        alpha = None if isinstance(self.alpha, str) else float(self.alpha)
        links = (self.link,) if isinstance(self.link, str) else tuple(self.link)
        found: LatentFit[FittedMeasurement] | LatentFit[SharedMeasurement]
        if len(links) == 1 and links[0] in ("auto", *LINK_NAMES):
            rows = self._rows(X, y, sample_weight, links[0])
            self.n_censored_ = int(np.count_nonzero(rows.targets.side))
            with blas_threads(rows.points.n_rows * _SQUARED_MONOMIALS):
                link, self.degree_, self.candidates_ = self._selected(rows, links[0], alpha, rng)
                if self.latent == "gp":
                    found = fitted_gp(rows, link, self.degree_, rng, self.max_iter)
                else:
                    found = fitted_polynomial(rows, link, self.degree_, alpha, self.max_iter)
            self.link_ = link
        else:
            self._check_shared(links)
            bits, targets = self._shared_rows(X, y, sample_weight, len(links))
            self.n_censored_ = sum(int(np.count_nonzero(one.side)) for _, one in targets)
            self.degree_ = 1 if self.degree == "auto" else checked_degree(int(self.degree), bits.shape[1])
            self.link_, self.candidates_ = links, []
            with blas_threads(len(bits) * _SQUARED_MONOMIALS):
                found = fitted_traits(bits, targets, links, self.degree_, alpha, self.max_iter)
        if not found.converged:
            warnings.warn(
                f"the likelihood of a latent with link {self.link_!r} is not at its maximum after "
                f"{found.steps:,} steps (max_iter={self.max_iter:,}); raise max_iter, or choose a lower degree.",
                ConvergenceWarning,
                stacklevel=_LEVELS,
            )
        self._fitted, self.n_iter_, self._freedom = found, found.steps, found.freedom

    def _rows(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, link: str) -> MeasuredRows:
        """Points and targets of the rows of positive weight; notes the encoding."""
        points, answers, weights = self._rows_to_fit(X, y, sample_weight)
        targets = Targets.of(answers, weights, checked_bounds(self.censoring, answers, weights))
        if link == "log":
            targets.logarithms()  # raises here, where the error can name the targets as they are
        return MeasuredRows(points, targets)

    def _check_shared(self, links: tuple[str, ...]) -> None:
        """Raise if these links cannot measure traits that they share."""
        strange = [link for link in links if link not in SHARING]
        if strange or not links:
            raise ValueError(
                f"`link` names one curve for each target, each of {', '.join(SHARING)}, and "
                f"{f'{strange[0]!r} is none' if strange else 'none was named'}; fit a target with another curve alone."
            )
        if self.latent != "low-degree":
            raise ValueError(f"traits behind the links {links} are polynomials; leave out latent={self.latent!r}.")

    def _shared_rows(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, n_targets: int
    ) -> tuple[Array, list[tuple[NDArray[np.intp], Targets]]]:
        """Bits of the rows, and of each target the places of the rows that have it, and its values there."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if isinstance(self.link, str):
            y = column_or_1d(y, warn=True)
        values = np.asarray(y)
        shape, values = values.shape, values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or values.shape[1] != n_targets:
            raise ValueError(
                f"`y` needs a column for each of the {n_targets} curves that `link` names, NaN where a target was not "
                f"measured, and has shape {shape}; name as many links as columns."
            )
        none = np.array(None, dtype=object)
        missing = (np.equal(values, none) | np.not_equal(values, values)).astype(bool)  # NaN, also among objects
        both = np.hstack([np.where(missing, 0, values), missing])  # so that rows of no weight leave both
        points, answers, weights = self._rows_to_fit(X, both, sample_weight, multi_output=True)
        answers, missing = answers[:, :n_targets], answers[:, n_targets:] > 0
        targets = []
        for t, rows in enumerate(map(np.flatnonzero, ~missing.T)):
            if not len(rows):
                raise ValueError(f"no row measures column {t} of `y`; leave out the column and its link.")
            own, its = answers[rows, t], weights[rows]
            targets.append((rows, Targets.of(own, its, checked_bounds(self.censoring, own, its))))
        return bits_of(points), targets

    def _selected(
        self, rows: MeasuredRows, link: str, alpha: float | None, rng: np.random.Generator
    ) -> tuple[str, int, list[LatentCandidate]]:
        """Link and degree, compared where they are not given."""
        n = rows.points.n
        if self.degree == "auto":
            straight = link in STRAIGHT and self.latent == "gp"  # nothing to learn a curve from
            checked_degree(1, n)
            degrees = [1] if straight else degrees_to_try(n, rows.points.n_rows)
        else:
            degrees = [checked_degree(int(self.degree), n)]
        links = [link]
        if link == "auto":
            links = [name for name in LINK_NAMES if name != "log" or (rows.targets.y > 0).all()]
        if len(links) == len(degrees) == 1:
            return links[0], degrees[0], []
        return chosen(rows, links, degrees, alpha, rng, self.max_iter)


def checked_degree(degree: int, n: int) -> int:
    """The degree of polynomials of n columns, at most n; raises if there are too many monomials."""
    degree = min(degree, n)
    most = MOST_COLUMNS if degree == 1 else MOST_MONOMIALS
    if n_subsets(n, degree) - 1 > most:
        raise ValueError(
            f"degree {degree} of {n} columns has {n_subsets(n, degree):,} monomials, and a latent polynomial at most "
            f"{most:,} beside the constant; choose a lower degree, or latent='gp'."
        )
    return degree

r"""PAC learning as one call: Theorem 8 for uniform inputs, the form of Theorem 17 for any.

References
----------
.. [A] "Learning Neural Networks with Sparse Activations", 2024, Lemma 7, Theorems 8 and 17.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from sparsact.bounds.held_out import held_out_bound, held_out_rows
from sparsact.bounds.learning import low_degree_parts
from sparsact.bounds.rademacher import general_samples_explicit
from sparsact.bounds.sensitivity import sufficient_degree
from sparsact.hypercube import n_subsets
from sparsact.learners.low_degree import LowDegreeRegressor
from sparsact.learners.points import detect_encoding
from sparsact.learners.sparsely_activated import SparselyActivatedRegressor
from sparsact.validation.arrays import check_norms, checked_reals
from sparsact.validation.parameters import check_named, checked_option

Inputs = Literal["uniform", "any"]
Range = tuple[float, float]
_LARGEST_SYSTEM: Final = 12_000  # monomials that are fitted because a theorem needs them


@dataclass(frozen=True, eq=False)
class PACHypothesis:
    r"""A hypothesis, and a bound of its expected squared error that holds with probability 1 - delta.

    Attributes
    ----------
    model : LowDegreeRegressor or SparselyActivatedRegressor
        Fitted on ``n_rows_fitted`` of the rows; ``predict`` clips it to ``y_range``.
    degree : int or None
        Degree of the polynomial; None for a network.
    error_bound, epsilon, delta : float
        Bound of :math:`\mathbb{E}(h(x) - y)^2`, noise of y included, for a new row; what was allowed, so that
        ``error_bound <= epsilon``; the probability with which the bound may fail. The paper's loss is half of it.
    held_out_error : float
        Mean squared error on the ``n_rows_held_out`` rows that the model has not seen.
    n_rows_fitted, n_rows_held_out : int
        How the rows were used.
    n_rows_needed : float
        Rows that are proved to be enough beforehand, with probability 1 - delta, for every target of the class; often
        far more than are needed. See ``reason``.
    y_range : tuple of float
        Range of the targets.
    outside : float
        Upper bound of the probability that y lies outside of ``y_range``; 0 where the range is an assumption.
    reason : str
        How the hypothesis was chosen, and what ``n_rows_needed`` stands for.

    Examples
    --------
    >>> from sparsact import pac_learn
    >>> found = pac_learn([[1], [-1]] * 300, [1, -1] * 300, epsilon=0.1, delta=0.1, y_range=(-1, 1))
    >>> found.predict([[1]]).round(6)
    array([1.])
    """

    model: Any
    degree: int | None
    error_bound: float
    epsilon: float
    delta: float
    held_out_error: float
    n_rows_fitted: int
    n_rows_held_out: int
    n_rows_needed: float
    y_range: tuple[float, float]
    outside: float
    reason: str

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Predicted targets, within ``y_range``."""
        return np.asarray(np.clip(self.model.predict(X), *self.y_range))

    def __str__(self) -> str:
        what = "network" if self.degree is None else f"polynomial of degree {self.degree}"
        return (
            f"{what}: squared error at most {self.error_bound:.3g} with probability {1 - self.delta:g} "
            f"({self.held_out_error:.3g} on {self.n_rows_held_out:,} held-out rows; allowed {self.epsilon:g}). "
            f"{self.reason}"
        )


def pac_learn(
    X: ArrayLike,
    y: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    y_range: tuple[float, float] | None = None,
    degree: int | Literal["auto"] = "auto",
    inputs: Inputs = "uniform",
    n_units: int | None = None,
    max_active: int | None = None,
    W: float | None = None,
    B: float | None = None,
    R: float | None = None,
    random_state: int = 0,
) -> PACHypothesis:
    r"""Learn a hypothesis of squared error at most epsilon, with a bound that holds with probability 1 - delta.

    Parameters
    ----------
    X : array-like of shape (m, n)
        Rows, drawn independently from one distribution. Signs or bits for ``inputs="uniform"``.
    y : array-like of shape (m,)
        Targets; noise counts as error.
    epsilon : float
        Expected squared error :math:`\mathbb{E}(h(x) - y)^2` that is allowed.
    delta : float
        Probability with which the bound may fail.
    y_range : pair of float, optional
        Interval in which every target lies, as you know it beforehand. Without it, and without a class, the range of
        the rows fitted serves: the bound is then that of targets clipped to it, and ``outside`` bounds the share of
        others; both hold together with probability 1 - delta.
    degree : int or "auto"
        Degree of the polynomial. ``"auto"``: that of the class, where the rows are enough for it; else the one of least
        held-out error among the rows fitted.
    inputs : {"uniform", "any"}
        ``"uniform"``: low-degree polynomials (Theorem 8). ``"any"``: networks of ``n_units`` units (Theorem 17). It
        decides the learner and ``n_rows_needed``; the error bound assumes no distribution.
    n_units, max_active, W, B : optional
        The target is a network with at most ``max_active`` of its units active, of scale W and B (Definition 2).
        ``inputs="any"`` needs the first two, and all four for ``n_rows_needed``; ``"uniform"`` the last three.
    R : float, optional
        Largest norm of an input, which no row may exceed; the root of n for signs and bits.
    random_state : int
        Seed of the split into rows to fit and rows to hold out, and of the learner of networks.

    Returns
    -------
    hypothesis : PACHypothesis

    Raises
    ------
    ValueError
        If no such bound can be had; says why, and what would help.

    Notes
    -----
    Rows are split at random: from a fifth to a half of them is held out, more where the bound takes more. What is
    random is the draw of the rows; the split and the choice of the degree do not see the held-out ones, so that
    :func:`~sparsact.bounds.held_out_bound` holds for every distribution, degree and learner. A call that raises makes
    no claim, so that wrong claims have probability at most delta, in each call: several on the same rows add theirs.

    ``n_rows_needed`` for uniform inputs is :func:`~sparsact.bounds.low_degree_samples_explicit`: with that many rows a
    target with weight at most epsilon/4 above the degree, noise included, is learned to epsilon with probability
    1 - delta. Every network with k active units has that at degree :math:`16 k^2 W^2 / \epsilon`, without noise. For
    any inputs it rests on :func:`~sparsact.bounds.general_samples_explicit` in the realizable case: for a network of
    the class, k-sparse at every input and of scale W and B, that fits the rows exactly. The learner promises neither.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsact import pac_learn
    >>> X = np.random.default_rng(0).choice([-1, 1], size=(4000, 8))
    >>> found = pac_learn(X, X[:, 0] * X[:, 3], epsilon=0.05, delta=0.05, y_range=(-1, 1))
    >>> found.degree, round(found.error_bound, 4), found.predict(X[:3]).round(6) == X[:3, 0] * X[:3, 3]
    (2, 0.008, array([ True,  True,  True]))
    """
    check_named(epsilon=epsilon, delta=delta)
    checked_option(inputs, "`inputs`", get_args(Inputs))
    rows, targets = _checked_rows(X, y)
    real = detect_encoding(rows)[0] == "real"
    network = _checked_network(inputs, real, s=n_units, k=max_active, W=W, B=B, R=R)
    if R is not None:  # bits are fitted as signs
        check_norms(checked_reals(rows, "`X`") if real else np.ones(rows.shape), R)
    task = _Task(rows.shape[1], inputs, epsilon, delta, {"R": sqrt(rows.shape[1]), **network})
    limits, assumed = task.checked_range(targets, y_range)
    fitted, held_out = task.split(len(rows), limits if assumed else None, random_state)
    if not assumed:
        limits = (float(targets[fitted].min()), float(targets[fitted].max()))
    doubt = delta if assumed else delta / 2
    task.check_rows(len(rows), len(held_out), limits, doubt)
    learner, needed, why = task.learner(len(rows), degree, limits, random_state)
    learner.fit(rows[fitted], targets[fitted])
    reached = int(learner.degree_) if inputs == "uniform" else None
    if needed is None and reached is not None:
        needed = task.rows_for_degree(reached, limits)
        why = (
            f"{why}: {learner.degree_reason_} If the weight above degree {reached}, noise included, is at most "
            f"{epsilon / 4:g}, {needed:,.0f} uniform rows are proved to be enough."
        )
    if not assumed:
        why += f" y_range was not given: the bound is for targets clipped to {_interval(limits)}."
    losses = (np.clip(learner.predict(rows[held_out]), *limits) - np.clip(targets[held_out], *limits)) ** 2
    error, bound = float(losses.mean()), held_out_bound(losses, _largest(limits), doubt)
    if bound > epsilon:
        raise ValueError(task.refusal(error, bound, len(held_out), _largest(limits), doubt, why))
    beyond = int(((targets[held_out] < limits[0]) | (targets[held_out] > limits[1])).sum())
    outside = 0.0 if assumed else float(betaincinv(beyond + 1, max(len(held_out) - beyond, 1e-9), 1 - doubt))
    return PACHypothesis(
        learner, reached, bound, epsilon, delta, error, len(fitted), len(held_out), needed or inf, limits, outside, why
    )


def _checked_rows(X: ArrayLike, y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.float64]]:
    rows, targets = np.asarray(X), checked_reals(y, "`y`")
    if rows.ndim != 2 or targets.shape != (len(rows),):
        raise ValueError(
            f"`X` must be a table and `y` hold one target per row; got shapes {rows.shape} and {targets.shape}. "
            "Learn several targets one at a time, each with a share of delta."
        )
    if len(rows) < 8:
        raise ValueError(f"rows are fitted and held out, at least 4 of each; got {len(rows)} rows: pass more.")
    return rows, targets


def _checked_network(inputs: str, real: bool, **parameters: float | None) -> dict[str, Any]:
    """The given parameters of a class: s and k, or k, W and B, or none."""
    given = {name: value for name, value in parameters.items() if value is not None}
    check_named(**given)
    if inputs == "uniform" and real:
        raise ValueError(
            'inputs="uniform" is for points of the cube, and `X` holds other numbers; pass signs or bits, '
            'or inputs="any" with n_units and max_active.'
        )
    if inputs == "any" and not {"s", "k"} <= set(given):
        raise ValueError('inputs="any" learns a network: pass n_units and max_active.')
    lacking = [name for key, name in (("k", "max_active"), ("W", "W"), ("B", "B")) if key not in given]
    if lacking and set(given) & {"W", "B"}:
        raise ValueError(f"a class of networks has max_active, W and B: pass {' and '.join(lacking)}, too.")
    if not lacking and real and "R" not in given:
        raise ValueError("the range of the targets follows from the largest norm of an input: pass R, or no W and B.")
    return given


def _largest(limits: Range) -> float:
    """Largest squared error within an interval; 1 where that is a point."""
    return (limits[1] - limits[0]) ** 2 or 1.0


def _interval(limits: Range) -> str:
    return f"[{limits[0]:.4g}, {limits[1]:.4g}]"


@dataclass(frozen=True)
class _Task:
    """What is to be learned, of networks with the parameters ``network`` (all of k, W and B, or no class)."""

    n: int
    inputs: str
    epsilon: float
    delta: float
    network: dict[str, Any]

    @property
    def has_class(self) -> bool:
        return "W" in self.network

    def checked_range(self, targets: NDArray[np.float64], y_range: Range | None) -> tuple[Range, bool]:
        """Range of the targets, and whether it is an assumption."""
        if y_range is None and not self.has_class:
            return (-inf, inf), False
        C = self._largest_value() if self.has_class else 0.0
        low, high = (-C, C) if y_range is None else map(float, y_range)
        if not (isfinite(low) and isfinite(high) and low <= high):
            raise ValueError(f"`y_range` must be two finite numbers, the smaller first; got {y_range!r}.")
        beyond = np.flatnonzero((targets < low) | (targets > high))
        if len(beyond):
            raise ValueError(
                f"targets must lie within {_interval((low, high))}, by `y_range` or by the class; y[{beyond[0]}] = "
                f"{targets[beyond[0]]:g} does not. Pass a range that holds every target."
            )
        return (low, high), True

    def split(self, m: int, limits: Range | None, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows to fit; and rows to hold out, from a fifth to a half, as many as a bound of twice the error takes.

        Without a range, which must not come from the rows to be held out, a half.
        """
        wanted = self._held_out(limits) if limits else m
        order = np.random.default_rng(seed).permutation(m)
        n_held_out = int(min(m // 2, max(m // 5, wanted)))
        return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])

    def check_rows(self, m: int, n_held_out: int, limits: Range, doubt: float) -> None:
        """Refuse rows that could not prove the error of a hypothesis that has none."""
        least = held_out_rows(0.0, self.epsilon, _largest(limits), doubt, 0.5)
        if least > n_held_out:
            raise ValueError(
                f"an error of at most {self.epsilon:g} for targets within {_interval(limits)} needs {least:,.0f} "
                f"held-out rows, even for a model without errors; got {n_held_out:,} (of {m:,} rows): pass "
                f"{2 * least:,.0f} rows or more, a larger epsilon, or a narrower y_range."
            )

    def learner(self, m: int, degree: int | str, limits: Range, seed: int) -> tuple[Any, float | None, str]:
        """What to fit, the rows needed where the class implies them, and why."""
        if self.inputs == "any":
            s, k = self.network["s"], self.network["k"]
            network = SparselyActivatedRegressor(n_units=s, max_active=k, random_state=seed)
            needed = self._rows_for_network(limits) if self.has_class else inf
            known = f"; {needed:,.0f} rows are proved to be enough where a network of the class fits them exactly"
            why = f"A network of at most {k} active units, by empirical risk{known if needed < inf else ''}."
            return network, needed, why
        if not self.has_class or degree != "auto":
            return LowDegreeRegressor(degree=degree), None, "Low degree"
        k, W = self.network["k"], self.network["W"]
        enough = min(self.n, sufficient_degree(k, W, self.epsilon / 4, self.network.get("s")))
        needed = self.rows_for_degree(enough, limits)
        known = f"without noise degree {enough} is enough for every network of the class, and {needed:,.0f} rows for it"
        if needed <= m and n_subsets(self.n, enough) <= _LARGEST_SYSTEM:
            return LowDegreeRegressor(degree=enough), needed, f"It is proved beforehand that {known}."
        why = f"The least held-out error; that {known} is proved beforehand."
        return LowDegreeRegressor(degree="auto"), needed, why

    def rows_for_degree(self, degree: int, limits: Range) -> float:
        """Rows that are enough for a degree with this split."""
        return _with_split(*low_degree_parts(self.n, degree, sqrt(_largest(limits)) / 2, self.epsilon, self.delta))

    def _rows_for_network(self, limits: Range) -> float:
        """The same for a network that fits all rows exactly; Lemma 18's loss is half of the squared error."""
        sizes = {name: self.network[name] for name in ("s", "k", "W", "B", "R")}
        sizes |= {"epsilon": self.epsilon / 4, "delta": self.delta * 2 / 3}
        C = max(abs(limit) for limit in (*limits, self._largest_value()))
        fit = general_samples_explicit(self.n, **sizes, C=C, realizable=True)
        return _with_split(fit, self._held_out(limits))

    def _held_out(self, limits: Range) -> float:
        return held_out_rows(self.epsilon / 2, self.epsilon, _largest(limits), self.delta, self.delta / 3)

    def _largest_value(self) -> float:
        return float(self.network["k"] * (self.network["W"] * self.network["R"] + self.network["B"]))

    def refusal(self, error: float, bound: float, n_held_out: int, largest: float, doubt: float, why: str) -> str:
        """Why there is no hypothesis, and what would help."""
        enough = held_out_rows(error, self.epsilon, largest, doubt, 0.5)
        fact = (
            f"no error bound of {self.epsilon:g} can be had with probability {1 - self.delta:g}: on {n_held_out:,} "
            f"held-out rows the squared error is {error:.3g}, and its bound {bound:.3g}. {why}"
        )
        if error < self.epsilon and enough < inf:
            return f"{fact} About {2 * enough:,.0f} rows would show an error of {error:.3g}; or pass a larger epsilon."
        return f"{fact} Pass more rows, so that a higher degree or a better network can be fitted, or a larger epsilon."


def _with_split(fit: float, held_out: float) -> float:
    """Total of rows from which the given numbers are fitted and held out, where from a fifth to a half are held out."""
    return max(fit + held_out, 1.25 * fit + 2, 2 * held_out + 2) // 1

"""Solutions of low-degree models as plain state and arrays, and back."""

from __future__ import annotations

from typing import Final

import numpy as np

from sparsact.hypercube import WORD
from sparsact.learners.low_degree.choose import CVSelection
from sparsact.learners.low_degree.coefficient_precision import Design, InnerProducts, KnownDesign
from sparsact.learners.low_degree.polynomial import Family, FittedPolynomial, Penalty, Solution
from sparsact.learners.low_degree.solvers.kernel import DualPolynomial, KernelDesign
from sparsact.learners.low_degree.solvers.solver import solvers
from sparsact.learners.points import Points
from sparsact.saving import schema
from sparsact.saving.schema import ArrayField, Arrays, State
from sparsact.validation.parameters import checked_positive

_TARGETS: Final = {"intercept": ArrayField("T"), "squared_error": ArrayField("T"), "target_squares": ArrayField("T")}
_DUAL: Final = {
    "columns": ArrayField("n words", np.uint64),
    "weights": ArrayField("rows T"),
    "kernel": ArrayField("sizes"),
    "row_weights": ArrayField("rows", finite=True, nonnegative=True, optional=True),
}
_COEF: Final = {"coef": ArrayField("D T")}
_COLUMNS: Final = {
    "first_alike": ArrayField("n", np.intp, optional=True),
    "frequencies": ArrayField("n", finite=True, nonnegative=True, optional=True),
}
_TERMS: Final = {
    "variances": ArrayField("terms", optional=True),
    "identified": ArrayField("terms", np.bool_, optional=True),
    "products": ArrayField("pairs", finite=True, optional=True),  # the lower triangle
}
_MOST_KEPT: Final = 512  # monomials, whose inner products take a megabyte of the file


def solution_state(solution: Solution) -> tuple[State, Arrays]:
    """A solution as JSON and arrays."""
    polynomial, penalty = solution.polynomial, solution.penalty
    family = polynomial.family
    _ = solution.residual_degrees_of_freedom  # so that the number of parameters is known
    arrays: Arrays = {name: getattr(solution, name) for name in ("squared_error", "target_squares")}
    arrays["intercept"] = polynomial.intercept
    columns = {name: getattr(solution, name) for name in _COLUMNS}
    arrays |= {name: values for name, values in columns.items() if values is not None}
    names = ("solver", "reason", "n_rows", "total_weight", "unit", "parameters", "encoding")
    state: State = {name: getattr(solution, name) for name in names} | {"n": family.n, "span": family.degree_range}
    state["penalty"] = [penalty.kind, penalty.alpha, bool(penalty.fit_intercept)]
    if solution.choice is not None:
        state["choice"] = [solution.choice.degree, solution.choice.alpha, solution.choice.score]
        arrays |= schema.add_prefix("cv", solution.choice.results)
    if family.degree_range is None:
        arrays["masks"] = family.masks
    if isinstance(polynomial, DualPolynomial):
        points = polynomial.points
        state["dual_rows"] = points.n_rows
        arrays |= {"dual.columns": points.columns, "dual.weights": polynomial.weights, "dual.kernel": polynomial.kernel}
        if isinstance(solution.design, KernelDesign) and solution.design.weights is not None:
            arrays["dual.row_weights"] = solution.design.weights
        return {"solution": state}, arrays
    arrays["coef"] = polynomial.coef
    variances = solution.design.all_variances(penalty.alpha) if penalty.kind == "ridge" else None
    terms = {"variances": variances, "identified": solution.design.identified}
    inner = solution.design.products(penalty.alpha) if penalty.kind == "ridge" and len(family) <= _MOST_KEPT else None
    if inner is not None:
        state["rank"], terms["products"] = inner.rank, inner.gram[np.tril_indices(len(family))]
    return {"solution": state}, arrays | {name: values for name, values in terms.items() if values is not None}


def read_solution(state: State, arrays: Arrays) -> Solution:
    """The solution that :func:`solution_state` took apart."""
    n, (kind, alpha, fit_intercept) = int(state["n"]), state["penalty"]
    if kind not in {solver.penalty for solver in solvers().values()}:
        raise ValueError(f"unknown penalty {kind!r}")
    penalty = Penalty(kind, schema.as_nonnegative(alpha, "alpha"), schema.as_bool(fit_intercept, "fit_intercept"))
    choice = None
    if "choice" in state:
        degree, best, score = state["choice"]
        choice = CVSelection(int(degree), float(best), float(score), schema.strip_prefix("cv", arrays))
    found = schema.read_arrays(_TARGETS, arrays)
    T = len(found["intercept"])
    columns = schema.read_arrays(_COLUMNS, arrays, n=n)
    first = columns.get("first_alike")
    if first is not None and not ((first >= -1) & (first <= np.arange(n))).all():
        raise ValueError("columns that are like later ones")
    design: Design
    if "dual_rows" in state:
        rows, family = int(state["dual_rows"]), Family.of_file(n, state["span"], arrays)
        parts = schema.read_arrays(_DUAL, arrays, "dual.", n=n, words=-(-rows // WORD), rows=rows, T=T, sizes=n + 1)
        points = Points(parts["columns"], rows)
        polynomial: FittedPolynomial
        polynomial = DualPolynomial(family, points, parts["weights"], parts["kernel"], found["intercept"])
        design = KernelDesign(points, family, penalty.fit_intercept, parts.get("row_weights"))
    else:
        coef = schema.read_arrays(_COEF, arrays, T=T)["coef"]
        family = Family.of_file(n, state["span"], arrays, len(coef))
        if len(coef) != len(family):
            raise ValueError(f"{len(coef)} coefficients of {len(family)} monomials")
        polynomial = FittedPolynomial(family, coef, found["intercept"])
        size, inner = len(family), None
        terms = schema.read_arrays(_TERMS, arrays, terms=size + 1, pairs=size * (size + 1) // 2)
        if "products" in terms:
            gram = np.zeros((size, size))
            gram[np.tril_indices(size)] = terms["products"]
            inner = InnerProducts(gram + np.tril(gram, -1).T, schema.as_count(state["rank"], "rank"))
        design = KnownDesign(float(size), terms.get("variances"), terms.get("identified"), inner)
    return Solution(
        polynomial,
        str(state["solver"]),
        str(state["reason"]),
        found["squared_error"],
        found["target_squares"],
        schema.as_n_rows(state["n_rows"], "n_rows"),
        schema.as_nonnegative(state["total_weight"], "total_weight"),
        penalty,
        design,
        encoding=schema.as_encoding(state["encoding"]),
        parameters=None if state["parameters"] is None else float(state["parameters"]),
        choice=choice,
        unit=checked_positive(state["unit"], "the unit of targets"),
        first_alike=first,
        frequencies=columns.get("frequencies"),
    )

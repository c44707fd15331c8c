"""Every iterative solver says whether it converged: its residual, measured here, is what it promises, or it warns."""

import ast
from pathlib import Path

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning

import sparsact
from sparsact import CubeKernel, LowDegreeRegressor
from sparsact.hypercube import points
from sparsact.learners.cube_gp import fisher_scoring, hyperparameters
from sparsact.learners.cube_gp.merged_rows import DistinctRows
from sparsact.learners.gp.systems.cube import CubeSystem
from sparsact.learners.gp.systems.inducing import InducingSystem
from sparsact.learners.gp.systems.kronecker_grid import GridSystem
from sparsact.learners.letters.kernel import LetterKernel
from sparsact.learners.letters.process import dual_coefficients, on_grid, system_of
from sparsact.learners.low_degree.polynomial import Family
from sparsact.learners.low_degree.solvers import lasso
from sparsact.learners.low_degree.solvers.cells import CellEquations
from sparsact.statistics.solved import Solved, conjugate_gradients

SOLVERS = {"minimize", "cg", "bicgstab", "gmres", "minres", "lsmr", "lsqr", "milp", "linprog", "eigsh", "svds", "root"}


def test_the_message_names_need_fact_and_remedy():
    assert Solved(3.0, 5, 0.1, 0.2, True).checked("Newton", "raise max_steps") == 3.0
    with pytest.warns(ConvergenceWarning) as told:
        assert Solved(3.0, 5_000, 0.25, 0.001, False).checked("Newton's method", "raise max_steps") == 3.0
    text = "Newton's method left a residual of 0.25, where 0.001 was to be reached, after 5,000 steps; raise max_steps."
    assert str(told[0].message) == text
    assert Path(told[0].filename).name == "test_solved.py"


def test_conjugate_gradients():
    """In as many steps as there are unknowns; a residual of exactly the last step counts, and none of a zero vector."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(7, 7))
    matrix, right = root @ root.T + np.eye(7), np.stack([rng.normal(size=7), np.zeros(7)])
    found = conjugate_gradients(lambda v: v @ matrix, right.copy(), 1e-9, 50)
    assert found.converged
    assert found.steps < 15
    assert np.linalg.norm(found.value[0] @ matrix - right[0]) < 1e-8 * np.linalg.norm(right[0])
    assert not found.value[1].any()
    assert conjugate_gradients(lambda v: v @ matrix, right.copy(), 1e-9, found.steps).converged
    few = conjugate_gradients(lambda v: v @ matrix, right.copy(), 1e-9, 2)
    left = np.linalg.norm(few.value[0] @ matrix - right[0]) / np.linalg.norm(right[0])
    assert (few.steps, few.converged, few.tolerance) == (2, False, 1e-9)
    assert few.residual == pytest.approx(left, rel=1e-9)


@pytest.mark.parametrize(("m", "correlation"), [(200, 0.3), (901, 0.9)])  # solved at the points, and for coefficients
def test_systems_of_the_cube(m, correlation):
    rng, n = np.random.default_rng(1), 10
    codes = rng.permutation(2**n)[:m]
    kernel = CubeKernel.product(1.0, np.full(n, correlation))
    noise, targets = 1e-3 * np.exp(rng.normal(size=m)), rng.normal(size=(2, m))
    system = CubeSystem(kernel, (codes[:, None] >> np.arange(n) & 1).astype(float), noise)
    assert system.solves_coefficients == (m == 901)
    found = system.solve(targets, 1e-6)
    left = found.value @ (kernel(points(n)[codes]) + np.diag(noise)) - targets
    assert found.converged
    assert (np.linalg.norm(left, axis=1) <= 1.01e-6 * np.linalg.norm(targets, axis=1)).all()
    assert not system.solve(targets, 1e-6, max_steps=1).converged
    if system.solves_coefficients:
        with pytest.warns(ConvergenceWarning, match=r"for draws left a residual of .* after 1 steps; raise noise_var"):
            system.deviations(3, rng, max_steps=1)


def test_inducing_points():
    rng, n, m = np.random.default_rng(2), 23, 90
    X = rng.integers(0, 2, (m, n)).astype(float)
    rows = DistinctRows.of(X, rng.normal(size=m), np.ones(m))
    kernel = CubeKernel.product(1.0, np.full(n, 0.95))
    system = InducingSystem(kernel, rows.bits, np.full(m, 0.05), np.arange(3))
    left = (kernel.covariance(rows.bits, rows.bits) + 0.05 * np.eye(m)) @ system.dual_coefficients(rows.y) - rows.y
    assert np.linalg.norm(left) < 1.1e-3 * np.linalg.norm(rows.y)
    few = system.solve(rows.y[None], system.tolerance, max_steps=1)
    with pytest.warns(ConvergenceWarning, match=r"left a residual of .* after 1 steps; raise max_inducing"):
        few.checked(system.solver, system.remedy)


def letters(noise, m=1_300):
    """Rows of three sites of 18 letters on a grid, and a kernel of long range and little noise: ill-conditioned."""
    rng = np.random.default_rng(3)
    kernel = LetterKernel.start([rng.normal(size=(18, 4)) for _ in range(3)])
    theta = kernel.theta.copy()
    theta[1] = np.log(noise)
    codes = np.stack(np.unravel_index(rng.permutation(18**3)[:m], (18,) * 3), axis=1)
    return kernel.with_theta(theta), codes, rng.normal(size=18)[codes[:, 0]] + rng.normal(size=18)[codes[:, 1]]


@pytest.mark.parametrize("noise", [0.1, 1e-5])
def test_letters_on_a_grid_are_solved(noise):
    kernel, codes, y = letters(noise)
    kept = np.ones((2, len(y)), dtype=bool)
    kept[1, ::3] = False
    assert on_grid(codes)
    alpha = dual_coefficients(system_of(kernel, codes, np.ones(len(y))), y, kept)
    matrix = kernel.covariance(codes, codes) + kernel.noise_variance * np.eye(len(y))
    for found, rows in zip(alpha, kept, strict=True):
        assert not found[~rows].any()
        assert np.linalg.norm((matrix @ found - y)[rows]) < 1.2 * GridSystem.tolerance * np.linalg.norm(y[rows])


def test_letters_on_a_grid_that_are_not_solved():
    kernel, codes, y = letters(1e-5)
    system = GridSystem(kernel, codes, np.full(len(y), 1e-5))
    found = system.solve(y[None], system.tolerance, max_steps=7)
    assert (found.steps, found.converged) == (7, False)
    with pytest.warns(ConvergenceWarning, match=r"grid of letters left a residual of .*, where 0.001 .* after 7 steps"):
        found.checked(system.solver, system.remedy)


def test_the_search_for_kernel_and_noise():
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 2, (80, 6)).astype(float)
    y = bits[:, 0] - 2 * bits[:, 1] * bits[:, 2] + 0.1 * rng.normal(size=80)
    rows = DistinctRows.of(bits, (y - y.mean()) / y.std(), np.ones(80))
    prior = hyperparameters.prior_of("product", 6)
    begun = hyperparameters.HyperparameterPosterior(prior, rows, None, prior.mean)
    best = hyperparameters.most_probable(begun)
    with pytest.warns(ConvergenceWarning, match=r"kernel and noise .* after 1 steps; choose a kernel of fewer"):
        hyperparameters.most_probable(begun, max_steps=1)

    def density(mode):
        value = prior.hyperparameters(mode, None).log_likelihood_gradient(rows)[0]
        return value + prior.log_density(mode)[0]

    slopes = [(density(best.mode + h) - density(best.mode - h)) / 2e-4 for h in 1e-4 * np.eye(len(best.mode))]
    assert np.abs(slopes).max() < 0.1  # of a log density: steps of a deviation change it by one
    moved = fisher_scoring.more_probable(begun, rows, max_steps=1, rng=rng)
    assert (moved.steps, moved.converged) == (1, False)
    ended = fisher_scoring.more_probable(best, rows, rng=rng)
    assert ended.converged
    assert ended.residual < 0.5


def test_least_squares_over_cells():
    """Residuals of the normal equations of centred products, written out."""
    rng = np.random.default_rng(6)
    X, y = rng.choice([-1, 1], (97, 6)), rng.normal(size=97)
    statistic = LowDegreeRegressor(2, solver="cells").fit(X, y).accumulator_.statistics[0]
    family = Family.full(6, 2)
    coef, _, _ = CellEquations(statistic, family, fit_intercept=True, n_threads=1).solve(0.3)
    design = np.stack([X[:, subset].prod(axis=1) for subset in family.subsets], axis=1)
    design = design - design.mean(axis=0)
    right = design.T @ y
    left = design.T @ (design @ coef[:, 0]) + 0.3 * coef[:, 0] - right
    assert np.linalg.norm(left) < 1e-11 * np.linalg.norm(right)
    few = CellEquations(statistic, family, fit_intercept=True, n_threads=1, max_steps=2)
    with pytest.warns(ConvergenceWarning, match=r"on cells left a residual of .* after 2 steps; the rows hardly"):
        few.solve(0.3)


def test_the_lasso():
    """The gap between the objective and that of scikit-learn, whose coordinate descent goes on far longer."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 9)) + 3 * rng.normal(size=(40, 1))
    y = X[:, 0] - X[:, 4] + rng.normal(size=40)
    gram, right = X.T @ X, X.T @ y
    problem = (gram, right, 40 * 0.02, float(y @ y), np.zeros(9))
    found = lasso._ended(*problem, lasso.MAX_STEPS)
    best = linear_model.Lasso(alpha=0.02, fit_intercept=False, tol=1e-14, max_iter=10**6).fit(X, y).coef_
    objective, least = (0.5 * np.sum((y - X @ b) ** 2) + 0.8 * np.abs(b).sum() for b in (found.value, best))
    assert found.converged
    assert objective <= least * (1 + 1e-9)
    few = lasso._ended(*problem, 1)
    assert (few.steps, few.converged) == (1, False)
    with pytest.warns(ConvergenceWarning, match="after 1 steps; pass a larger alpha"):
        few.checked("the lasso", "pass a larger alpha")


def test_no_answer_of_an_iterative_solver_is_taken_without_its_status():
    """Whoever calls one of SciPy's reads why it ended in the same module."""
    folder, called = Path(sparsact.__file__).parent, set()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in SOLVERS):
            continue
        imported = {
            alias.name
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scipy.")
            for alias in node.names
        }
        if imported & SOLVERS:
            called |= imported & SOLVERS
            assert "Solved(" in text or ".status" in text or ".x is None" in text, path
    assert called == {"minimize", "milp", "linprog"}

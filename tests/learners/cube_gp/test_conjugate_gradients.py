"""When the coefficients of the cube are solved for, in how many steps, and draws of them."""

from __future__ import annotations

import numpy as np

from sparsact import CubeKernel
from sparsact.hypercube import characters, points
from sparsact.learners.gp.systems.cube import CubeSystem


def system_at(kernel, codes, noise):
    return CubeSystem(kernel, (codes[:, None] >> np.arange(kernel.n) & 1).astype(float), noise)


def test_the_coefficients_of_an_even_table_are_solved_in_a_few_steps():
    """The whole cube with equal noise in one; with 90 % of it, and with weights of 1 and 2, in ten."""
    rng, n = np.random.default_rng(30), 10
    kernel = CubeKernel.product(1.0, np.full(n, 0.9))
    for share, weights, most in ((1.0, 1.0, 1), (0.9, 1.0, 10), (1.0, rng.integers(1, 3, 2**n), 10)):
        codes = rng.permutation(2**n)[: round(share * 2**n)]
        noise = 0.05 / np.broadcast_to(weights, 2**n)[codes]
        system = system_at(kernel, codes, noise)
        assert system.solves_coefficients
        assert system.solve(rng.normal(size=(1, len(codes))), 1e-3).steps <= most


def test_few_rows_of_a_rough_function_are_solved_at_the_points():
    rng, n = np.random.default_rng(31), 10
    kernel = CubeKernel.product(1.0, np.full(n, 0.3))
    codes = rng.permutation(2**n)[:200]
    system = system_at(kernel, codes, 1e-3 * np.exp(rng.normal(size=200)))
    assert not system.solves_coefficients
    assert system.solve(rng.normal(size=(1, 200)), 1e-3).steps <= 20


def test_draws_of_coefficients_have_the_moments_of_the_posterior():
    """4,000 draws by the coefficients' system: means within five standard errors, covariances within 10 %."""
    rng, n = np.random.default_rng(32), 4
    kernel, codes = CubeKernel.product(1.0, [0.9, 0.6, 0.8, 0.7]), rng.permutation(16)[:13]
    noise = rng.uniform(0.1, 0.3, 13)
    subsets = [tuple(i for i in range(4) if code >> i & 1) for code in range(16)]
    draws = system_at(kernel, codes, noise).deviations(4_000, rng)
    cross = characters(points(n)[codes], subsets) * kernel.spectrum
    inverse = np.linalg.inv(kernel(points(n)[codes]) + np.diag(noise))
    expected = np.diag(kernel.spectrum) - cross.T @ inverse @ cross
    deviation = np.sqrt(expected.diagonal())
    assert (abs(draws.mean(axis=0)) < 5 * deviation / np.sqrt(4_000)).all()
    scale = np.outer(deviation, deviation)
    np.testing.assert_allclose(np.cov(draws.T) / scale, expected / scale, atol=0.1)

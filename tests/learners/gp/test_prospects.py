"""Posteriors after further rows: rank-one updates beside fits to all rows, and gains beside their definitions."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from sparsact.hypercube import characters
from sparsact.learners.cube_gp.kernel import CubeKernel
from sparsact.learners.gp.posterior import Posterior
from sparsact.learners.gp.prospects import Belief, Prospects, Quantities
from sparsact.learners.gp.systems.dense import DenseSystem
from sparsact.learners.letters.effects import letter_effects
from sparsact.learners.letters.kernel import LetterKernel

N_BITS, NOISE = 5, 0.3
SUBSETS = [subset for size in range(N_BITS + 1) for subset in combinations(range(N_BITS), size)]
WANTED = [subset for subset in SUBSETS if 1 <= len(subset) <= 2]


@pytest.fixture
def setting():
    """A belief after seven rows of unequal noise, the quantities, and thirteen candidates, two of them measured."""
    rng = np.random.default_rng(3)
    kernel = CubeKernel.degree_by_site(rng.normal(size=N_BITS + 1), rng.normal(size=N_BITS))
    cube = np.array(list(product((0.0, 1.0), repeat=N_BITS)))
    order = rng.permutation(len(cube))
    rows, candidates = cube[order[:7]], cube[order[5:18]]
    system = DenseSystem(kernel, rows, rng.uniform(0.1, 1, 7))
    belief = Belief(Posterior(system, system.dual_coefficients(rng.normal(size=7))), system, NOISE)
    variances = kernel.variances_of(WANTED)
    return belief, Quantities(variances, lambda X: (characters(1 - 2 * X, WANTED) * variances).T), candidates


def weight_covariance(kernel, rows, noise):
    """Posterior covariance of all coefficients, by Bayesian linear regression on all characters."""
    features = characters(1 - 2 * rows, SUBSETS)
    return np.linalg.inv(np.diag(1 / kernel.variances_of(SUBSETS)) + features.T @ (features / noise[:, None]))


def test_updates_equal_a_fit_to_all_rows(setting):
    belief, quantities, candidates = setting
    prospects = Prospects.of(belief, candidates, quantities, room=3)
    features, kept = characters(1 - 2 * candidates, SUBSETS), [SUBSETS.index(one) for one in WANTED]
    taken = []
    for place in (4, 11, 0):
        prospects.measure(prospects.at(place))
        taken.append(candidates[place])
        after = belief.with_rows(np.array(taken))
        covariance = weight_covariance(after.system.kernel, after.system.points, after.system.noise)
        np.testing.assert_allclose(prospects.variances, np.diag(features @ covariance @ features.T), atol=1e-10)
        np.testing.assert_allclose(prospects.covariances, (covariance @ features.T)[kept], atol=1e-10)
        np.testing.assert_allclose(after.variances(quantities), np.diag(covariance)[kept], atol=1e-10)
        anew = Prospects.of(after, candidates, quantities, room=3 - len(taken))
        np.testing.assert_allclose(anew.half, prospects.half, atol=1e-10)
        np.testing.assert_allclose(anew.means, prospects.means)


def test_falls_are_differences_of_summed_variances(setting):
    belief, quantities, candidates = setting
    before = belief.variances(quantities).sum()
    falls = Prospects.of(belief, candidates, quantities, room=0).falls()
    after = [belief.with_rows(candidates[[i]]).variances(quantities).sum() for i in range(len(candidates))]
    np.testing.assert_allclose(falls, before - np.array(after), atol=1e-10)


@pytest.mark.parametrize("sign", [1, -1])
def test_improvements_are_integrals(setting, sign):
    belief, quantities, candidates = setting
    prospects = Prospects.of(belief, candidates, quantities, room=0)
    found = prospects.improvements(0.2, sign)
    for mean, deviation, one in zip(prospects.means, np.sqrt(prospects.variances), found, strict=True):
        density = norm(mean, deviation).pdf
        ends = sorted((0.2, max(sign * 0.2, sign * mean + 12 * deviation) * sign))
        expected = quad(lambda x, density=density: abs(x - 0.2) * density(x), *ends, limit=200)[0]
        assert one == pytest.approx(expected, abs=1e-7)


def test_a_known_value_has_no_improvement_but_its_own(setting):
    belief, quantities, candidates = setting
    prospects = Prospects.of(belief, candidates, quantities, room=0)
    prospects.variances[:] = 0.0
    np.testing.assert_allclose(prospects.improvements(0.0, 1), np.maximum(prospects.means, 0.0), atol=1e-12)


def test_effects_of_letters_are_sums_over_all_combinations():
    """Each effect as weights on the whole grid: its mean with the letters less the means of smaller effects."""
    rng, sizes = np.random.default_rng(1), (3, 2, 4)
    kernel = LetterKernel.start([rng.normal(size=(q, 3)) for q in sizes])
    kernel = kernel.with_theta(kernel.theta + 0.4 * rng.normal(size=kernel.theta.size))
    grid = np.indices(sizes).reshape(3, -1).T
    weights = []
    for sites in ((0,), (2,), (0, 2)):
        for letters in product(*(range(sizes[i]) for i in sites)):
            factors = [sizes[i] * (grid[:, i] == a) - 1.0 for i, a in zip(sites, letters, strict=True)]
            weights.append(np.prod(factors, axis=0) / len(grid))
    weights, covariance = np.array(weights), kernel.covariance(grid, grid)
    found = letter_effects(kernel, [(0,), (2,), (0, 2)])
    np.testing.assert_allclose(found.covariances(grid[5:12]), weights @ covariance[:, 5:12], atol=1e-12)
    np.testing.assert_allclose(found.variances, np.diag(weights @ covariance @ weights.T), atol=1e-12)

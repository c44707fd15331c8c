"""Whatever draws at random takes a generator, and says so to whoever passes a seed."""

from __future__ import annotations

import numpy as np
import pytest

import sparsact as sa
from sparsact_papers import data

NET, WIDE = sa.constructions.indexing(2), sa.SparselyActivatedNetwork([1.0], np.ones((1, 40)), [3.0])
ROWS, SIGNS = sa.hypercube.points(4), sa.hypercube.points(4)[:, 0]
CUBE = data.Cube(2)
POLYNOMIAL = data.Polynomial(2, 1, [0.0, 1.0, 2.0])
PARITY = sa.hardness.parity_distribution((0, 2), 5)
DRAWING = {
    "random network": lambda rng: sa.constructions.random_network(7, 3, 1, rng=rng),
    "uniform": lambda rng: sa.constructions.uniform(3)(2, rng),
    "lift": lambda rng: sa.constructions.lifted(sa.Lift.quadratic(3))(2, rng),
    "residues": lambda rng: sa.constructions.lifted(sa.constructions.ResidueLift(2, 5))(3, rng),
    "certificate": lambda rng: NET.certify(method="sampled", rng=rng),
    "certificate by programming": lambda rng: NET.certify(method="milp", rng=rng),
    "average sensitivity": lambda rng: sa.fourier.estimate_average_sensitivity(NET, n_samples=3, rng=rng),
    "noise sensitivity": lambda rng: sa.fourier.estimate_noise_sensitivity(NET, None, 0.5, n_samples=3, rng=rng),
    "influences": lambda rng: sa.fourier.estimate_influences(NET, n_samples=3, rng=rng),
    "coefficient": lambda rng: sa.fourier.estimate_coefficient(NET, (0,), n_samples=3, rng=rng),
    "weight by degree": lambda rng: sa.fourier.estimate_weight_by_degree(NET, n_groups=3, n_samples=2, rng=rng),
    "degree of a network": lambda rng: sa.bounds.degree_for(WIDE, 0.1, rng=rng),
    "degree of rows": lambda rng: sa.bounds.degree_for((ROWS, SIGNS), 0.1, rng=rng),
    "unexplained variance": lambda rng: sa.bounds.unexplained_variance(ROWS, SIGNS, rng=rng),
    "examples": lambda rng: PARITY.sample(3, rng=rng),
    "rounding": lambda rng: sa.hardness.LearningWithRounding([3, 1], 2, 5).sample(3, rng=rng),
    "contest": lambda rng: sa.hardness.parity_contest(5, (0, 2), rng=rng),
    "statistical queries": lambda rng: sa.hardness.StatisticalQueryOracle(PARITY, 0.1, rng=rng),
    "heavy": lambda rng: sa.hardness.heavy_coefficients(sa.hardness.MembershipOracle(NET, 6), 0.9, rng=rng),
    "polynomial": lambda rng: data.random_polynomial(2, 3, rng=rng),
    "hypercube function": lambda rng: data.random_hypercube(2, rng=rng),
    "composed": lambda rng: data.random_composed(POLYNOMIAL, 3, rng=rng),
    "cones": lambda rng: data.random_cones(data.Subspace([[1.0], [0.0]]), 0.3, rng=rng),
    "cosines": lambda rng: data.random_analytic(1, 0.01, rng=rng),
    "subspace": lambda rng: data.random_subspace(3, 2, rng=rng),
    "diagonal subspace": lambda rng: data.diagonal_subspace(3, 2, rng=rng),
    "points": lambda rng: CUBE.sample(3, rng=rng),
    "rotation": lambda rng: data.Sphere(2, 4).rotated(rng=rng),
    "description": lambda rng: data.describe(POLYNOMIAL, CUBE, rng=rng),
    "complexity": lambda rng: sa.rademacher.lower_complexity([[1.0], [-1.0]], 1, rng=rng),
}


@pytest.mark.parametrize("draw", DRAWING.values(), ids=DRAWING)
def test_a_seed_is_no_generator(draw):
    with pytest.raises(ValueError, match=r"`rng` must be a numpy.random.Generator; got 0: pass numpy"):
        draw(0)

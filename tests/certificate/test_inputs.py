"""Certificates over parts of the cube, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from grids import few_of
from random_networks import KINDS, random_network
from scipy.optimize import LinearConstraint

from sparsact.certificate import certify
from sparsact.certificate.inputs import Inputs
from sparsact.constructions import ResidueLift, indexing, rounding
from sparsact.hypercube import points
from sparsact.lift import Lift

METHODS = ("auto", "enumeration", "orbits", "milp")


def meets(x, A, lb, ub):
    sums = [sum(Fraction(a) * int(v) for a, v in zip(row, x, strict=True)) for row in A]
    return all(low == -np.inf or total >= Fraction(low) for total, low in zip(sums, lb, strict=True)) and all(
        high == np.inf or total <= Fraction(high) for total, high in zip(sums, ub, strict=True)
    )


@pytest.mark.parametrize("kind", few_of(KINDS, ["integers", "tenths", "far", "subnormal"]))
def test_brute_force_over_constrained_sets(kind):
    """Integers and tenths in the constraints, met and missed by nothing; sets may be empty."""
    rng = np.random.default_rng(4)
    empty = 0
    for step in (1, 0.1, 1, 0.1):
        network = random_network(kind, 4, 5, rng)
        A, lb = rng.integers(-2, 3, (2, 5)) * step, rng.integers(-3, 2, 2) * step
        ub = np.where(rng.random(2) < 0.5, np.inf, lb + rng.integers(0, 3, 2) * step)
        X = points(5)[[meets(x, A, lb, ub) for x in points(5)]]
        empty += not len(X)
        for method in METHODS:
            certificate = network.certify(method, inputs=LinearConstraint(A, lb, ub))
            assert "constraints" in certificate.inputs
            if not len(X):
                assert certificate.vacuous
                assert certificate.witness is None
                assert "constraints allow no input" in str(certificate)
            else:
                assert certificate.max_active == certificate.upper == network.n_active(X).max()
                assert (certificate.witness == X).all(axis=1).any()
    assert empty < 4


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_set_is_called_empty(method):
    impossible = LinearConstraint(np.ones((1, 6)), 7, np.inf)
    odd = LinearConstraint(np.ones((1, 6)), 1, 1)  # a sum of six signs is even
    for constraint in (impossible, odd, [odd, impossible], LinearConstraint(np.zeros((1, 6)), 1, 2)):
        certificate = indexing(2).certify(method, inputs=constraint)
        assert certificate.vacuous
        assert certificate.exact
        assert (certificate.max_active, certificate.upper, certificate.witness) == (0, 0, None)


@pytest.mark.parametrize("method", METHODS)
def test_several_constraints_sparse_or_open_on_a_side(method):
    network = indexing(2)
    first = LinearConstraint(sp.csr_array(np.eye(2, 6)), -1, [-1, np.inf])  # x_0 = -1
    second = LinearConstraint(np.ones(6), ub=0)
    X = points(6)
    X = X[(X[:, 0] == -1) & (X.sum(axis=1) <= 0)]
    certificate = network.certify(method, inputs=[first, second])
    assert certificate.upper == network.n_active(X).max()
    assert (certificate.witness == X).all(axis=1).any()


def test_membership_is_exact():
    """0.1 + 0.2 of the numbers stored is above 0.3, and 0.1 + 0.7 below 0.8."""
    above = Inputs.of(LinearConstraint([[0.1, 0.2]], ub=0.3), 2)
    below = Inputs.of(LinearConstraint([[0.1, 0.7]], lb=0.8), 2)
    assert not above.contains(np.array([[1, 1]]))[0]
    assert not below.contains(np.array([[1, 1]]))[0]
    assert above.contains(np.array([[1, -1]]))[0]


def test_what_does_not_fit_is_refused():
    network = indexing(2)
    for inputs, error, message in (
        (LinearConstraint(np.ones((1, 5)), 0, 1), ValueError, "6 columns"),
        (LinearConstraint([[1, 1, 1, 1, 1, np.nan]], 0, 1), ValueError, "finite"),
        (LinearConstraint(np.ones((1, 6)), np.nan, 1), ValueError, "`lb`"),
        (LinearConstraint(np.ones((1, 6)), np.inf, np.inf), ValueError, "`lb`"),
        (LinearConstraint(np.ones((1, 6)), -np.inf, -np.inf), ValueError, "`ub`"),
        (Lift.quadratic(2), ValueError, "the lift must have 6 outputs"),
        ("the cube", TypeError, "LinearConstraint"),
        (np.ones((3, 6)), TypeError, "LinearConstraint"),
    ):
        with pytest.raises(error, match=message):
            network.certify(inputs=inputs)


def test_arguments_out_of_range_are_refused():
    network, rng = indexing(2), np.random.default_rng(0)
    for arguments, message in (
        ({"method": "guess"}, "one of auto, enumeration"),
        ({"time_limit": -1}, "`time_limit`"),
        ({"time_limit": float("nan")}, "`time_limit`"),
        ({"max_active": 2}, "`max_active` is for method='sampled'"),
        ({"distribution": points(6)}, "`distribution` is for method='sampled'"),
        ({"n_threads": 0}, "the number of threads is 0"),
        ({"method": "sampled"}, "needs a generator"),
        ({"method": "sampled", "rng": rng, "confidence": 1}, "`confidence`"),
        ({"method": "sampled", "rng": rng, "n_samples": 0}, "`n_samples`"),
        ({"method": "sampled", "rng": rng, "max_active": 5}, "`max_active`"),
        ({"method": "sampled", "rng": rng, "max_active": -1}, "`max_active`"),
        ({"method": "sampled", "distribution": np.ones((0, 6))}, "at least one row"),
        ({"method": "sampled", "distribution": np.ones((2, 5))}, "6 columns"),
        ({"method": "sampled", "rng": rng, "distribution": lambda m, rng: np.ones((m + 1, 6))}, "must return 10000"),
    ):
        with pytest.raises(ValueError, match=message):
            network.certify(**arguments)


def test_too_many_points_are_refused_with_a_way_out():
    network = random_network("reals", 2, 40, np.random.default_rng(1))
    with pytest.raises(ValueError, match="method='milp'"):
        network.certify("enumeration")
    with pytest.raises(ValueError, match="method='milp'"):
        network.certify("orbits")


def test_a_lift_of_residues_names_the_lift_that_it_holds():
    lift, network = ResidueLift(2, 3), rounding([2, 1], 2, 3)
    with pytest.raises(TypeError, match="got ResidueLift: pass its `quadratic`"):
        network.certify(inputs=lift)
    assert network.certify(inputs=lift.quadratic).max_active == 1


def test_what_is_no_network_is_refused():
    with pytest.raises(TypeError, match="got ndarray: of a learner pass its `network_`"):
        certify(np.ones((2, 3)))

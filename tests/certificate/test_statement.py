"""What a certificate says, and that it can be written down and read again."""

import json

import numpy as np
import pytest
from random_networks import random_network
from scipy.optimize import LinearConstraint

from sparsact import Certificate
from sparsact.constructions import indexing
from sparsact.network import SparselyActivatedNetwork


def certificates():
    rng = np.random.default_rng(0)
    network = indexing(2)
    yield network.certify()
    yield network.certify("milp")
    yield network.certify("orbits", inputs=LinearConstraint(np.ones((1, 6)), 7, np.inf))
    yield network.certify("sampled", n_samples=30, rng=rng)
    yield random_network("reals", 3, 4, rng).certify("sampled", distribution=rng.normal(size=(7, 4)))
    yield random_network("reals", 20, 20, rng).certify("milp", time_limit=0)


@pytest.mark.parametrize("certificate", list(certificates()), ids=lambda certificate: str(certificate)[:30])
def test_json_there_and_back(certificate):
    text = certificate.to_json()
    read = Certificate.from_json(text)
    assert read.to_json() == text
    assert str(read) == str(certificate)
    assert json.loads(text)["exact"] == certificate.exact
    if certificate.witness is not None:
        np.testing.assert_array_equal(read.witness, certificate.witness)
        assert read.witness.dtype == certificate.witness.dtype


def test_what_is_no_certificate_is_refused():
    good = json.loads(indexing(2).certify().to_json())
    for text in ("", "[]", "{}", json.dumps(good | {"exact": False}), json.dumps(good | {"colour": 1})):
        with pytest.raises(ValueError, match="not a certificate"):
            Certificate.from_json(text)


def test_words():
    assert str(indexing(2).certify()) == (
        "at most 1 of 4 units is active at any point of {-1,1}^6: proved by enumeration of all 64 points"
    )
    one = SparselyActivatedNetwork([1.0], [[1, 1]], [3])
    assert str(one.certify()).startswith("at most 0 of 1 unit are active at any point of {-1,1}^2")


def test_frozen():
    certificate = indexing(2).certify()
    with pytest.raises(AttributeError):
        certificate.upper = 3
    with pytest.raises(ValueError, match="read-only"):
        certificate.witness[0] = 1
    assert certificate.seconds > 0

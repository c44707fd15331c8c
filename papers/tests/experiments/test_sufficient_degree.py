import numpy as np

from sparsact.bounds import degree_for
from sparsact_papers.common.networks import network_of
from sparsact_papers.paper_a.sufficient_degree import (
    SHARES,
    measure,
)


def test_the_degree_matches_the_library():
    task = {"model": "sparse", "n": 7, "s": 12, "k": 2, "seed": 1}
    found = measure(**task)
    assert found == measure(**task)
    expected = [degree_for(network_of(**task), epsilon, k=2).degree for epsilon in found["epsilon"]]
    assert found["measured"] == expected
    assert np.all(np.diff(found["measured"]) >= 0)
    assert found["measured"][-1] > 1


def test_copies_need_degree_one_and_the_bound_knows_their_variance():
    found = measure(model="copies", n=5, s=6, k=3, seed=0)
    assert found["measured"] == [1] * len(SHARES)
    np.testing.assert_allclose(np.array(found["epsilon"]) / SHARES, 36)
    assert found["sharper"][0] == 1

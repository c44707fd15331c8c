"""The definitions, against loops a child could write."""

import numpy as np
import pytest
from hypothesis import given
from identities import boolean_tables, tables

from sparsact import SparselyActivatedNetwork
from sparsact.fourier import Spectrum, average_sensitivity, influences, sensitivity


@given(values=tables(max_n=5))
def test_against_loops(values):
    n = len(values).bit_length() - 1
    quarter = [[(values[p] - values[p ^ (1 << i)]) ** 2 / 4 for i in range(n)] for p in range(len(values))]
    np.testing.assert_allclose(sensitivity(values), [sum(row) for row in quarter], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(influences(values), np.mean(quarter, axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(average_sensitivity(values), np.sum(quarter) / len(values), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(Spectrum.of(values).influences(), np.mean(quarter, axis=0), rtol=1e-10, atol=1e-10)


@given(values=boolean_tables())
def test_with_signs_it_counts_the_flips_that_matter(values):
    counts = sensitivity(values)
    assert np.array_equal(counts, counts.astype(int))
    assert counts.max() <= len(values).bit_length() - 1


def test_sharp_constant_of_paper_a():
    """2 x_1 = relu(x_1 + 1) - relu(1 - x_1) has AS = 4."""
    assert average_sensitivity([2, -2]) == 4


@pytest.mark.parametrize("function", [sensitivity, average_sensitivity, influences])
def test_doors(function):
    values = np.arange(8)
    function(values)
    np.testing.assert_array_equal(values, np.arange(8))
    with pytest.raises(ValueError, match=r"length 2\*\*n; got shape \(6,\)"):
        function(np.arange(6))
    with pytest.raises(TypeError, match=r"got a function \(SparselyActivatedNetwork\): pass its values"):
        function(SparselyActivatedNetwork([1.0], [[1.0, 1.0]], [1.0]))

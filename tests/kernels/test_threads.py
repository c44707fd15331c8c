import pytest
from threadpoolctl import threadpool_limits

from sparsact import kernels
from sparsact.kernels.threads import threads


def test_kernels_obey_threadpoolctl():
    before = kernels.max_threads()
    with threadpool_limits(1):
        assert kernels.max_threads() == 1
    assert kernels.max_threads() == before


def test_the_reference_has_one_thread():
    with kernels.using("reference"):
        assert kernels.max_threads() == 1


def test_what_n_jobs_means():
    assert threads(None) == 0
    assert threads(3) == 3
    assert threads(-1) >= 1
    with pytest.raises(ValueError, match="n_jobs"):
        threads(0)

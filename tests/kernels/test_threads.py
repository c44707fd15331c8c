import pytest
import scipy.linalg  # noqa: F401 # its BLAS is there before any limit is set
from threadpoolctl import threadpool_info, threadpool_limits

from sparsact import kernels
from sparsact.kernels.dispatch import blas_threads, threads


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


def blas():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_small_linear_algebra_has_one_blas_thread_and_large_what_is_allowed():
    with threadpool_limits(2, user_api="blas"):
        with blas_threads(1e6):
            assert blas() == {1}
            with blas_threads(0):
                assert blas() == {1}
            assert blas() == {1}
        assert blas() == {2}
        with blas_threads(1e12):
            assert blas() == {2}


def test_an_error_ends_the_limit():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), blas_threads(0):
            raise ZeroDivisionError
        assert blas() == {2}

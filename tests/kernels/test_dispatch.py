from importlib import import_module
from pkgutil import iter_modules

import pytest
import scipy.linalg  # noqa: F401 # its BLAS is there before any limit is set
from joblib import effective_n_jobs
from threadpoolctl import threadpool_info, threadpool_limits

from sparsact import kernels
from sparsact.kernels import dispatch
from sparsact.kernels.dispatch import blas_threads, threads


@pytest.mark.skipif(dispatch.native is None, reason="built without a compiler")
def test_every_native_kernel_has_a_reference_of_its_name():
    for module in iter_modules(kernels.__path__, "sparsact.kernels."):
        import_module(module.name)
    others = {"isa", "widest_isa", "use_isa", "max_threads", "read_past_the_end"}
    others.add("LayerCall")  # no kernel: a layer without it asks in full
    native = {name for name in dir(dispatch.native) if not name.startswith("_")} - others
    assert set(vars(dispatch.reference)) == native


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
    assert threads(-1) == effective_n_jobs(-1)
    with pytest.raises(ValueError, match="-1 for every core"):
        threads(0)
    with pytest.raises(TypeError):
        threads(1.5)


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

"""Variables that force a processor's code path do have that effect; `make test-cpus` sets them."""

import os

import pytest
from threadpoolctl import threadpool_info

from sparsact import kernels
from sparsact.kernels import dispatch


def forced(variable):
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set")
    return value


def test_openblas_runs_the_core_type_that_is_forced():
    core = forced("OPENBLAS_CORETYPE")
    import scipy.linalg  # noqa: F401 # loads its own OpenBLAS

    cores = {each["architecture"] for each in threadpool_info() if each["internal_api"] == "openblas"}
    assert cores in ({core}, {"Haswell"} if core == "Zen" else {core})  # Zen runs Haswell's, and may say so


def test_the_kernels_run_on_the_instruction_set_that_is_forced():
    assert kernels.description() == f"native ({forced('SPARSACT_ISA')})"


def test_the_forced_kernels_are_used():
    assert kernels.backend() == forced("SPARSACT_KERNELS")


def test_int8_products_use_vnni_where_it_is_forced():
    assert dispatch.native.vnni() == (forced("SPARSACT_VNNI") == "1")


def test_products_of_several_inputs_use_amx_where_it_is_forced():
    assert dispatch.native.amx() == (forced("SPARSACT_AMX") == "1")


def test_the_first_cache_is_the_one_that_is_forced():
    assert dispatch.native.cache_ways() == int(forced("SPARSACT_CACHE_WAYS"))


def test_threads_are_as_many_as_are_forced():
    torch = pytest.importorskip("torch")
    n_threads = int(forced("OMP_NUM_THREADS"))
    assert torch.get_num_threads() == n_threads
    if dispatch.native is not None:
        assert dispatch.native.max_threads() == n_threads

"""Variables that force a processor's code path do have that effect; `make test-cpus` sets them."""

import os

import pytest
from threadpoolctl import threadpool_info

from sparsact import kernels


def test_openblas_runs_the_core_type_that_is_forced():
    forced = os.environ.get("OPENBLAS_CORETYPE")
    if not forced:
        pytest.skip("OPENBLAS_CORETYPE is not set")
    import scipy.linalg  # noqa: F401 # loads its own OpenBLAS

    cores = {each["architecture"] for each in threadpool_info() if each["internal_api"] == "openblas"}
    assert cores in ({forced}, {"Haswell"} if forced == "Zen" else {forced})  # Zen runs Haswell's, and may say so


def test_the_kernels_run_on_the_instruction_set_that_is_forced():
    forced = os.environ.get("SPARSACT_ISA")
    if not forced:
        pytest.skip("SPARSACT_ISA is not set")
    assert kernels.description() == f"native ({forced})"

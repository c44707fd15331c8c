import sys
from importlib import import_module, invalidate_caches
from importlib.machinery import EXTENSION_SUFFIXES
from pkgutil import iter_modules
from types import SimpleNamespace

import pytest
import scipy.linalg  # noqa: F401 # its BLAS is there before any limit is set
from joblib import effective_n_jobs
from threadpoolctl import threadpool_info, threadpool_limits

from sparsact import kernels
from sparsact.kernels import dispatch
from sparsact.kernels.dispatch import blas_threads, check_lock, threads


@pytest.mark.skipif(dispatch.native is None, reason="built without a compiler")
def test_every_native_kernel_has_a_reference_of_its_name():
    for module in iter_modules(kernels.__path__, "sparsact.kernels."):
        import_module(module.name)
    others = {"isa", "widest_isa", "use_isa", "max_threads", "read_past_the_end"}
    others |= {"vnni", "allow_vnni", "amx", "allow_amx", "cache_ways", "use_cache_ways"}
    others.add("LayerCall")  # no kernel: a layer without it asks in full
    others.add("active_counts")  # of builds before it went
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


def obey(monkeypatch, **variables):
    """What is chosen under these variables alone."""
    for name in ("KERNELS", "ISA", "VNNI", "AMX", "CACHE_WAYS"):
        monkeypatch.setenv(f"SPARSACT_{name}", variables.get(name, ""))
    dispatch._obey_environment()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"ISA": "avx1024"}, "SPARSACT_ISA must be one of portable, avx2, avx512; got 'avx1024'"),
        ({"ISA": "avx", "KERNELS": "reference"}, "SPARSACT_ISA must be one of portable, avx2, avx512; got 'avx'"),
        ({"KERNELS": "numpy"}, "SPARSACT_KERNELS must be one of native, reference; got 'numpy'"),
        ({"VNNI": "no"}, "SPARSACT_VNNI must be one of 0, 1; got 'no'"),
        ({"AMX": "2"}, "SPARSACT_AMX must be one of 0, 1; got '2'"),
        ({"CACHE_WAYS": "9"}, "SPARSACT_CACHE_WAYS must be one of 8, 12; got '9'"),
    ],
)
@pytest.mark.parametrize("built", [True, False])
def test_unknown_values_are_refused(monkeypatch, variables, message, built):
    """Whether there are native kernels or not, and before anything is chosen."""
    if not built:
        monkeypatch.setattr(dispatch, "native", None)
    before = dispatch.chosen
    with pytest.raises(ValueError, match=message):
        obey(monkeypatch, **variables)
    assert dispatch.chosen is before


def test_upper_case_is_the_same(monkeypatch):
    monkeypatch.setattr(dispatch, "chosen", dispatch.chosen)  # is put back
    obey(monkeypatch, KERNELS="REFERENCE")
    assert kernels.description() == "reference (NumPy)"
    if dispatch.native is not None:
        with kernels.using("native"):
            obey(monkeypatch, KERNELS="Native", ISA="PORTABLE")
            assert kernels.description() == "native (portable)"


def test_what_this_processor_lacks_is_refused(monkeypatch):
    lacking = {"vnni": lambda: False, "allow_vnni": lambda _: None, "amx": lambda: False, "allow_amx": lambda _: None}
    old = SimpleNamespace(widest_isa=lambda: "avx2", isa=lambda: "avx2", **lacking)
    monkeypatch.setattr(dispatch, "native", old)
    monkeypatch.setattr(dispatch, "chosen", dispatch.chosen)
    with pytest.raises(ValueError, match="SPARSACT_ISA=avx512: this processor has no avx512; set avx2 at most"):
        obey(monkeypatch, ISA="AVX512")
    with pytest.raises(ValueError, match="SPARSACT_VNNI=1: avx2 has no VNNI on this processor"):
        obey(monkeypatch, VNNI="1")
    with pytest.raises(ValueError, match="SPARSACT_AMX=1: avx2 has no AMX on this system"):
        obey(monkeypatch, AMX="1")


@pytest.mark.parametrize(("variables", "message"), [({"ISA": "avx2"}, "ISA=avx2"), ({"KERNELS": "native"}, "=native")])
def test_native_kernels_that_were_not_built_are_not_replaced_in_silence(monkeypatch, variables, message):
    monkeypatch.setattr(dispatch, "native", None)
    monkeypatch.setattr(dispatch, "lacking", dispatch.NOT_BUILT)
    monkeypatch.setattr(dispatch, "chosen", dispatch.chosen)
    with pytest.raises(ImportError, match=f"{message} needs native kernels, but .* without a C\\+\\+ compiler"):
        obey(monkeypatch, **variables)
    obey(monkeypatch, KERNELS="reference", ISA="avx2")
    assert kernels.backend() == "reference"


@pytest.mark.parametrize("enabled", [True, False, None])
def test_a_python_without_its_lock_is_refused(enabled, monkeypatch):
    """Free-threaded builds say whether the lock is on; others have no such function."""
    if enabled is None:
        monkeypatch.delattr(sys, "_is_gil_enabled", raising=False)
    else:
        monkeypatch.setattr(sys, "_is_gil_enabled", lambda: enabled, raising=False)
    if enabled is False:
        with pytest.raises(ImportError, match=r"needs the interpreter's lock, .*; start Python with -X gil=1\.$"):
            check_lock()
    else:
        check_lock()


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_kernels", raising=False)
    return tmp_path


def test_kernels_that_are_not_built_are_told_from_those_that_do_not_load(package):
    """A module that the system's loader refuses, as one of another system or of a missing library."""
    assert dispatch.loaded("broken_kernels") == (None, dispatch.NOT_BUILT)
    (package / f"broken_kernels{EXTENSION_SUFFIXES[0]}").write_bytes(b"no library")
    invalidate_caches()
    native, why = dispatch.loaded("broken_kernels")
    assert native is None
    assert "built but do not load here (" in why
    assert "broken_kernels" in why
    assert why.endswith("reinstall sparsact for this Python and system")


def test_broken_kernels_warn_unless_the_reference_is_chosen(monkeypatch):
    for name in ("SPARSACT_KERNELS", "SPARSACT_ISA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(dispatch, "native", None)
    monkeypatch.setattr(dispatch, "chosen", dispatch.chosen)
    monkeypatch.setattr(dispatch, "lacking", "they are built but do not load here (GLIBC): reinstall")
    with pytest.warns(RuntimeWarning, match=r"NumPy's kernels, several times slower, .* \(GLIBC\): reinstall"):
        dispatch._obey_environment()
    monkeypatch.setenv("SPARSACT_KERNELS", "reference")
    dispatch._obey_environment()
    monkeypatch.setenv("SPARSACT_KERNELS", "native")
    with pytest.raises(ImportError, match=r"needs native kernels, but they are built .* \(GLIBC\)"):
        dispatch._obey_environment()

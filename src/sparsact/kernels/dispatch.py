"""The kernels in use, native or reference, what they choose by the processor, and their threads.

Variables force each choice that the processor decides otherwise, when sparsact is imported. Upper case is the same,
an empty value the processor's choice; another value, or one that this machine cannot serve, is an error. Results do
not depend on them: native kernels and the reference give the same bits.

=======================  ===========================  ===================================================
variable                 values                       what it forces
=======================  ===========================  ===================================================
``SPARSACT_KERNELS``     ``native``, ``reference``    C++ or NumPy
``SPARSACT_ISA``         ``portable``, ``avx2``,      instruction set of native kernels
                         ``avx512``
``SPARSACT_VNNI``        ``0``, ``1``                 whether int8 products are VNNI's
``SPARSACT_AMX``         ``0``, ``1``                 whether several inputs take AMX's products
``SPARSACT_CACHE_WAYS``  ``8``, ``12``                the first cache, whose shape orders Walsh-Hadamard
                                                      transforms of ``2**25`` bytes or more
``OMP_NUM_THREADS``      a number                     threads of kernels, NumPy and torch
=======================  ===========================  ===================================================
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from operator import index
from types import SimpleNamespace
from typing import Any, Final, TypeVar

Definition = TypeVar("Definition", bound=Callable[..., Any])

NOT_BUILT: Final = "sparsact was built without a C++ compiler: install one and reinstall sparsact"


def loaded(name: str) -> tuple[Any, str]:
    """Load a native module, or return None with the reason and a remedy."""
    try:
        return import_module(name), ""
    except ModuleNotFoundError:
        return None, NOT_BUILT
    except ImportError as error:
        return None, f"they are built but do not load here ({error}): reinstall sparsact for this Python and system"


native, lacking = loaded("sparsact.kernels._native")


def check_lock() -> None:
    """Raise an ImportError in free-threaded Python: updates rely on the lock of the interpreter."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError("sparsact needs the interpreter's lock, which is off here; start Python with -X gil=1.")


check_lock()

reference: Any = SimpleNamespace()  # the NumPy definition of each kernel, under the name of its native twin
chosen: Any = reference  # the kernels in use: `dispatch.chosen.NAME(...)` calls one of them

KERNELS: Final = ("native", "reference")
ISAS: Final = ("portable", "avx2", "avx512")  # each has what those before it have
NO_OR_YES: Final = ("0", "1")
WAYS: Final = ("8", "12")  # lines in a set of the first cache, on either side of what the transform asks
AS_ALLOWED: Final = 0
WORTH_BLAS_THREADS: Final = 2e9  # multiplications: about a tenth of a second on one core
MAX_THREADS: Final = max(16, os.cpu_count() or 1)  # more gain nothing, and too many can end the process


def kernel(definition: Definition) -> Definition:
    """Register ``_NAME``, a kernel in NumPy, as the reference of ``NAME`` in ``src/native``.

    Both take the same positional arguments and give the same bits, unless the kernel's documentation says otherwise.
    """
    setattr(reference, definition.__name__.removeprefix("_"), definition)
    return definition


def backend() -> str:
    """Name of the kernels in use: ``"native"`` or ``"reference"``.

    Returns
    -------
    name : str
        One of the two.
    """
    return "reference" if chosen is reference else "native"


def max_threads() -> int:
    """Number of threads that a kernel uses when OpenMP decides; 1 for the reference."""
    return 1 if chosen is reference else int(native.max_threads())


def description() -> str:
    """Describe the kernels in use and their instruction set in a text.

    Returns
    -------
    text : str
        Such as ``native (avx512)``.
    """
    return "reference (NumPy)" if chosen is reference else f"native ({native.isa()})"


@contextmanager
def using(name: str, isa: str | None = None) -> Iterator[None]:
    """Run a block on the named kernels (and instruction set); for tests and benchmarks.

    Parameters
    ----------
    name : {"native", "reference"}
        The kernels.
    isa : str, optional
        Instruction set of the native kernels.

    Yields
    ------
    None
        The previous choice is restored afterwards.
    """
    before, before_isa = backend(), None if native is None else native.isa()
    try:
        _choose(name)
        if isa is not None:
            native.use_isa(isa)
        yield
    finally:
        _choose(before)
        if native is not None:
            native.use_isa(before_isa)


def _choose(name: str) -> None:
    global chosen
    chosen = reference if name == "reference" or native is None else native


def forced(variable: str, values: tuple[str, ...]) -> str:
    """Lower-case value of an environment variable that overrides a choice; empty if it is not set.

    A ValueError is raised if it is none of ``values``.
    """
    value = os.environ.get(variable, "").lower()
    if value not in ("", *values):
        raise ValueError(f"{variable} must be one of {', '.join(values)}; got {value!r}. Correct it, or unset it.")
    return value


def _obey_environment() -> None:
    """Choose kernels by the environment variables; errors name the variable."""
    name = forced("SPARSACT_KERNELS", KERNELS)
    isa, vnni = forced("SPARSACT_ISA", ISAS), forced("SPARSACT_VNNI", NO_OR_YES)
    amx, ways = forced("SPARSACT_AMX", NO_OR_YES), forced("SPARSACT_CACHE_WAYS", WAYS)
    _choose(name)
    if native is None:
        if name == "native" or (isa and not name):
            raise ImportError(
                f"{'SPARSACT_KERNELS=native' if name else f'SPARSACT_ISA={isa}'} needs native kernels, but {lacking}, "
                "or unset the variable."
            )
        if lacking != NOT_BUILT and not name:
            warnings.warn(
                f"NumPy's kernels, several times slower, replace the native ones: {lacking}, or set "
                "SPARSACT_KERNELS=reference to silence this warning.",
                RuntimeWarning,
                stacklevel=2,
            )
        return
    if isa:
        widest = native.widest_isa()
        if ISAS.index(isa) > ISAS.index(widest):
            raise ValueError(f"SPARSACT_ISA={isa}: this processor has no {isa}; set {widest} at most, or unset it.")
        native.use_isa(isa)
    if vnni:
        native.allow_vnni(vnni == "1")
        if vnni == "1" and not native.vnni():
            raise ValueError(f"SPARSACT_VNNI=1: {native.isa()} has no VNNI on this processor; set 0, or unset it.")
    if amx:
        native.allow_amx(amx == "1")
        if amx == "1" and not native.amx():
            raise ValueError(f"SPARSACT_AMX=1: {native.isa()} has no AMX on this system; set 0, or unset it.")
    if ways:
        native.use_cache_ways(int(ways))


def threads(wanted: int | None) -> int:
    """Number of threads for a kernel, from the ``n_jobs`` or ``n_threads`` of its caller.

    ``None`` gives 0, which leaves the number to OpenMP: it obeys ``OMP_NUM_THREADS`` and ``threadpoolctl``. ``-1`` is
    every core, ``-2`` all but one, and so on as in joblib. The number is at most that of the cores, or 16 where there
    are fewer. Only native kernels have threads, and no result depends on their number.

    Raises
    ------
    ValueError
        If it is 0.

    >>> threads(3), threads(None)
    (3, 0)
    """
    if wanted is None:
        return AS_ALLOWED
    if index(wanted) == 0:
        raise ValueError("the number of threads is 0; pass 1 or more, -1 for every core, or None for OpenMP's choice.")
    if wanted > 0:
        return min(index(wanted), MAX_THREADS)
    from joblib import effective_n_jobs  # slow to import, and seldom needed

    return min(int(effective_n_jobs(wanted)), MAX_THREADS)


@contextmanager
def blas_threads(operations: float) -> Iterator[None]:
    """Limit BLAS to one thread for at most 2e9 multiplications; larger work keeps its threads.

    OpenBLAS's threads wait for one another in a busy loop. On cores that others use as well, a short product
    then waits for much longer than a second thread could save (results/benchmarks.jsonl, benchmark busy). The limit
    holds for the whole process. Of several threads inside such blocks one sets and ends it, as ``threadpoolctl``
    documents; results do not change.

    Use it as ``with blas_threads(D**3):`` or, above a function whose products are all small, ``@blas_threads(0)``.
    """
    if operations > WORTH_BLAS_THREADS:
        yield
    else:
        with _blas().limit(limits=1):
            yield


@cache
def _blas() -> Any:
    """The BLAS libraries of NumPy and SciPy; finding them takes milliseconds, limiting them microseconds."""
    import scipy.linalg  # noqa: F401 # brings a library of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


_obey_environment()

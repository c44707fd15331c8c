"""Backends that tests of kernels run on: the reference, and every instruction set of this processor."""

import pytest

from sparsact.kernels import dispatch

HERE = () if dispatch.native is None else dispatch.ISAS[: dispatch.ISAS.index(dispatch.native.widest_isa()) + 1]
IN_USE = "" if dispatch.native is None else dispatch.native.isa()

# (name, isa) as `kernels.using` takes them. Quick runs have the reference and the set in use, the widest unless
# SPARSACT_ISA forces another: `make test-cpus` does so for each, `make test-grids` and `make sanitize` run all at once.
BACKENDS = [
    ("reference", None),
    *(pytest.param(("native", isa), marks=[] if isa == IN_USE else pytest.mark.grid) for isa in HERE),
]
OTHERS = BACKENDS[1:] or BACKENDS  # than the reference, which equals itself


def name_of(backend: tuple[str, str | None]) -> str:
    return backend[1] or backend[0]


against_reference = pytest.mark.parametrize("backend", OTHERS, indirect=True, ids=name_of)

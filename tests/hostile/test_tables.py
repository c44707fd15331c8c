"""Tables damaged at random: refused by name, or read; never a crash, and in little memory."""

from __future__ import annotations

import io
import zipfile
from random import Random

import numpy as np
import pytest
from hostile.memory import little_memory
from hostile.mutations import damaged, write
from hostile.tables import ENDINGS, read_table, tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparsact.datasets.table_stream import open_table

bounded = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return dict(tables(tmp_path_factory.mktemp("tables")))


def test_every_form_is_read_whole(whole, tmp_path):
    for ending, content in whole.items():
        assert read_table(write(tmp_path / f"t{ending}", content))


@pytest.mark.grid
@settings(bounded, max_examples=200)
@given(ending=st.sampled_from(ENDINGS), seed=st.integers(0, 2**40))
def test_damaged_tables(whole, tmp_path_factory, ending, seed):
    with little_memory():
        read_table(write(tmp_path_factory.getbasetemp() / f"t{ending}", damaged(whole[ending], Random(seed))))


@pytest.mark.slow
@settings(bounded, max_examples=5000)
@given(ending=st.sampled_from(ENDINGS), seed=st.integers(0, 2**40))
def test_many_damaged_tables(whole, tmp_path_factory, ending, seed):
    with little_memory():
        read_table(write(tmp_path_factory.getbasetemp() / f"t{ending}", damaged(whole[ending], Random(seed))))


@pytest.mark.parametrize("shape", [(3, 2**40), (2**40, 3), (0, 2**40), (2**31, 2**31), (-1, 3), (3, 2**62)])
def test_arrays_that_claim_more_than_they_hold(tmp_path, shape):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i1", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(tmp_path / "t.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(100))
    with little_memory(), pytest.raises(ValueError, match=r"t\.npz"):
        open_table(tmp_path / "t.npz", "X[0]")

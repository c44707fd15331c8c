import gzip
import os

import numpy as np
import pytest

from sparsact_papers.data import load_tabular

needs_data = pytest.mark.skipif(
    not os.environ.get("SPARSACT_DATA"), reason="SPARSACT_DATA does not name a folder with the real data"
)


@needs_data
@pytest.mark.parametrize(("name", "shape"), [("kin40k", (40000, 8)), ("elevators", (16599, 18)), ("pol", (15000, 26))])
def test_every_row_is_in_one_test_fold(name, shape):
    data = load_tabular(name)
    assert data.X.shape == shape
    assert data.y.shape == shape[:1]
    assert data.test_masks.shape == (10, shape[0])
    assert data.test_masks.dtype == bool
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    np.testing.assert_array_equal(data.test_masks.sum(axis=0), 1)
    np.testing.assert_allclose(data.test_masks.sum(axis=1), shape[0] / 10, atol=1)


@pytest.fixture
def folder(tmp_path):
    """A folder with a small ``pol``."""
    (tmp_path / "tabular").mkdir()
    write(tmp_path, "data", "1,2.5,-3\n4,5,6\n7,8,9e-2\n")
    write(tmp_path, "test_mask", "1,0\n0,1\n1,0\n")
    return tmp_path


def write(folder, part, text):
    with gzip.open(folder / "tabular" / f"pol.{part}.csv.gz", "wt") as file:
        file.write(text)


def test_the_first_row_is_data_and_the_last_column_the_target(folder):
    data = load_tabular("pol", folder)
    np.testing.assert_array_equal(data.X, [[1, 2.5], [4, 5], [7, 8]])
    np.testing.assert_array_equal(data.y, [-3, 6, 0.09])
    np.testing.assert_array_equal(data.test_masks, [[True, False, True], [False, True, False]])


@pytest.mark.parametrize("masks", ["1,0\n0,1\n", "1,0\n0,2\n1,0\n"])
def test_masks_of_another_table_are_refused(folder, masks):
    write(folder, "test_mask", masks)
    with pytest.raises(ValueError, match="the test masks of pol do not belong to its 3 rows"):
        load_tabular("pol", folder)


def test_a_missing_folder_and_an_unknown_name(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARSACT_DATA", str(tmp_path / "empty"))
    with pytest.raises(FileNotFoundError, match=r"no tabular/kin40k\.data\.csv\.gz in .*empty; set SPARSACT_DATA"):
        load_tabular("kin40k")
    with pytest.raises(ValueError, match="name='sarcos' is unknown; choose one of kin40k, elevators, pol"):
        load_tabular("sarcos")

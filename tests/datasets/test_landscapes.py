import csv
import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sparsact.datasets
from sparsact.datasets import config_performance, iwls2020, load_poelwijk, moulana_s309, phillips_cr6261

needs_data = pytest.mark.skipif(
    not os.environ.get("SPARSACT_DATA"), reason="SPARSACT_DATA does not name a folder with the real data"
)


@pytest.mark.parametrize(
    ("load", "shape"),
    [
        (load_poelwijk, (8192, 13)),
        pytest.param(moulana_s309, (32768, 15), marks=needs_data),
        pytest.param(lambda: config_performance("LLVM"), (1024, 10), marks=needs_data),
    ],
)
def test_complete_landscapes_hold_every_point_once(load, shape):
    landscape = load()
    assert landscape.X.shape == shape
    assert landscape.X.dtype == np.uint8
    assert landscape.y.shape == shape[:1]
    assert len(landscape.names) == shape[1]
    numbers = landscape.X @ (1 << np.arange(shape[1]))
    np.testing.assert_array_equal(np.sort(numbers), np.arange(shape[0]))


def test_the_table_of_the_package_is_the_one_that_its_licence_names():
    folder = Path(sparsact.datasets.__file__).parent
    digest = hashlib.sha256((folder / "poelwijk2019.csv.gz").read_bytes()).hexdigest()
    assert digest in (folder / "poelwijk2019.LICENCE.txt").read_text()


@needs_data
def test_the_table_of_the_package_is_the_one_that_was_published():
    with gzip.open(Path(os.environ["SPARSACT_DATA"]) / "landscapes/poelwijk2019_eqfp611_2e13.csv.gz", "rt") as file:
        published = {row["aa"]: float(row["brightness_combined"]) for row in csv.DictReader(file)}
    landscape = load_poelwijk()
    acids = [(name[0], name[-1]) for name in landscape.names]
    sequences = ["".join(acids[i][bit] for i, bit in enumerate(row)) for row in landscape.X]
    assert dict(zip(sequences, landscape.y, strict=True)) == published


def test_a_landscape_is_a_table_of_arrow():
    landscape = load_poelwijk()
    table = pa.table(landscape).to_pydict()
    assert list(table) == [*landscape.names, "brightness"]
    assert table["N11D"] == landscape.X[:, 10].tolist()
    assert table["brightness"] == landscape.y.tolist()


@needs_data
def test_cr6261_keeps_only_what_was_measured_on_both_antigens():
    landscape = phillips_cr6261()
    assert landscape.X.shape[1] == 11
    assert landscape.y.shape == (len(landscape.X), 2)
    assert 1000 < len(landscape.X) <= 2048
    assert np.isfinite(landscape.y).all()


@needs_data
def test_example_74_is_a_parity_of_16_bits():
    landscape = iwls2020(74)
    assert landscape.X.shape == (6400, 16)
    parity = landscape.X.sum(axis=1) % 2
    assert abs(np.corrcoef(parity, landscape.y)[0, 1]) == pytest.approx(1.0)


def test_a_missing_folder_is_named_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARSACT_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="set SPARSACT_DATA"):
        moulana_s309()
    with pytest.raises(ValueError, match="system='Linux' is unknown"):
        config_performance("Linux")
    with pytest.raises(ValueError, match="need 0 <= example < 80"):
        iwls2020(80)

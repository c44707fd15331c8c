import os

import numpy as np
import pytest

from sparsact.datasets import config_performance, iwls2020, moulana_s309, phillips_cr6261, poelwijk

needs_data = pytest.mark.skipif(
    "SPARSACT_DATA" not in os.environ, reason="SPARSACT_DATA does not name a folder with the real data"
)


@needs_data
@pytest.mark.parametrize(
    ("load", "shape"),
    [
        (poelwijk, (8192, 13)),
        (moulana_s309, (32768, 15)),
        (lambda: config_performance("LLVM"), (1024, 10)),
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
        poelwijk()
    with pytest.raises(ValueError, match="system='Linux' is unknown"):
        config_performance("Linux")
    with pytest.raises(ValueError, match="need 0 <= example < 80"):
        iwls2020(80)

"""Names of coordinates: they come from the frame that was learned from, and stay with the function."""

from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import sparsact as sa
from sparsact.datasets.landscapes import Landscape
from sparsact.fourier import Spectrum, interactions

NAMES = ["age", "sex", "dose", "site"]
PLAIN = Spectrum.of({(): 0.5, (0, 2): -2.0, (3,): 1.0}, n=4)
NAMED = PLAIN.named(NAMES)


def test_a_model_of_a_frame_names_the_coordinates_of_its_spectrum():
    bits = np.random.default_rng(0).integers(0, 2, (90, 4))
    y = bits[:, 0] ^ bits[:, 2]
    frame = pd.DataFrame(bits, columns=NAMES)
    found = sa.LowDegreeRegressor(degree=2).fit(frame, y).spectrum_
    assert found.top(1, min_degree=1)[0][0] == (0, 2)
    assert found.to_frame(2)["subset"][1] == ("age", "dose")
    assert "age dose" in repr(found)
    assert found.plot(n_terms=1).labels == ["age × dose"]
    assert sa.LowDegreeRegressor(degree=2).fit(bits, y).spectrum_.feature_names is None
    each = sa.LowDegreeRegressor(degree=1).fit(frame, np.column_stack([y, 1 - y, y])).spectrum_
    assert [one.feature_names for one in each] == [tuple(NAMES)] * 3


def test_names_stay_with_the_function():
    others = NAMED.noise(0.5), NAMED.truncate(1), 2 * NAMED, -NAMED, NAMED + PLAIN, NAMED.to_dense().to_sparse()
    for found in (*others, NAMED.under(0.3), NAMED.under(0.3).under("uniform"), Spectrum.of(NAMED)):
        assert found.feature_names == tuple(NAMES)
    assert NAMED.restrict({0: 1, 3: -1}).feature_names == ("sex", "dose")
    assert NAMED.under(0.3).restrict({1: 1}).feature_names == ("age", "dose", "site")
    for found in (interactions(NAMED), interactions(NAMED, "SII"), interactions(NAMED).spectrum()):
        assert found.feature_names == tuple(NAMES)
    assert interactions(PLAIN).feature_names is interactions(PLAIN).spectrum().feature_names is None
    assert NAMED == PLAIN
    assert PLAIN.feature_names is None


def test_names_are_shown():
    assert repr(NAMED) == "<Spectrum on 4 coordinates, degree 2: -2 age dose + 1 site + 0.5>"
    rows = [[cell.text for cell in row] for row in ET.fromstring(NAMED._repr_html_()).iter("tr")]
    assert rows[1:] == [["age dose", "-2"], ["site", "1"], ["1", "0.5"]]
    assert list(NAMED.to_frame(feature_names=list("abcd"))["subset"]) == [("a", "c"), ("d",), ()]
    assert list(PLAIN.to_frame()["subset"]) == [(0, 2), (3,), ()]


def test_there_are_as_many_names_as_coordinates():
    with pytest.raises(ValueError, match="4 coordinates need as many names; got 3"):
        PLAIN.named(NAMES[:3])
    assert PLAIN.named(None) is PLAIN


def test_a_landscape_is_a_frame():
    X, y = np.random.default_rng(1).integers(0, 2, (7, 3), dtype=np.uint8), np.arange(14.0).reshape(7, 2)
    frame = Landscape(X, y, ("a", "b", "c"), ("y", "z"), "nobody", "none").to_frame()
    assert list(frame) == ["a", "b", "c", "y", "z"]
    np.testing.assert_array_equal(frame.to_numpy(), np.column_stack([X, y]))

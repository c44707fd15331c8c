"""A table is what its rows are: how they are cut into files, batches and blocks changes no bit of what is read."""

import tempfile
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsact.datasets.dialect as dialects
from sparsact import LowDegreeRegressor
from sparsact.datasets import open_table

WORDS = ("red", "blue", "1", "01", "1.0", "1e3", "1000", "true", "gr ün")
HUGE = 2**53


def column(kind, m):
    """Values that make a column of one kind or, at the edge, of another."""
    cell = {
        "bits": st.sampled_from(["0", "1"]),
        "strings": st.sampled_from(["100", "101", "110", "111", "010"]),
        "almost strings": st.sampled_from(["100", "101", "110", "111", "112", "97"]),
        "words": st.sampled_from(WORDS),
        "floats": st.floats(-1e6, 1e6).map(repr),
        "wide": st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300).map(repr),
        "integers": st.integers(-200, 200).map(str),
        "huge": st.integers(HUGE, HUGE + 9).map(str),
    }[kind]
    return st.lists(cell, min_size=m, max_size=m)


KINDS = ("bits", "strings", "almost strings", "words", "floats", "wide", "integers", "huge")


@st.composite
def tables(draw):
    """Columns of texts, places to cut the rows into files, and rows of a batch."""
    m = draw(st.integers(2, 90))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    columns = {f"{kind} {i}": draw(column(kind, m)) for i, kind in enumerate(kinds)}
    cuts = sorted(draw(st.sets(st.integers(1, m - 1), max_size=3)))
    return columns, [0, *cuts, m], draw(st.integers(1, m))


def typed(texts, kind):
    """Values as Parquet and NPZ hold them."""
    if kind in ("floats", "wide"):
        return np.array(texts, dtype=np.float64)
    if kind in ("bits", "integers", "huge"):
        return np.array(texts, dtype=np.int64)
    return np.array(texts)


def write(path, columns, bounds, suffix):
    """A file for each piece of the rows, in their order."""
    for number, (start, stop) in enumerate(pairwise(bounds)):
        name = path / f"part-{number}{suffix}"
        if suffix == ".csv":
            rows = zip(*(values[start:stop] for values in columns.values()), strict=True)
            name.write_text(",".join(columns) + "\n" + "".join(",".join(row) + "\n" for row in rows))
            continue
        pieces = {of: typed(values[start:stop], of.rsplit(" ", 1)[0]) for of, values in columns.items()}
        pieces["y 0"] = np.array(columns["y 0"][start:stop], dtype=np.float64)
        if suffix == ".npz":
            np.savez(name, **pieces)
        else:
            pa.parquet.write_table(pa.table(pieces), name, row_group_size=7)


def read(path, batch_rows):
    """Encoding and encoded rows, or the error without the place that it names."""
    try:
        table = open_table([*path.iterdir()], "y 0", domain="auto", batch_rows=batch_rows)
        X, y = (np.concatenate(of) for of in zip(*table.batches(), strict=True))
    except ValueError as error:
        return str(error).split(",")[0].split(": ")[-1]
    return table.encoding.to_json(), X.tobytes(), y.tobytes()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@given(made=tables())
@pytest.mark.grid
def test_cuts_change_nothing(suffix, made):
    columns, bounds, batch_rows = made
    m = bounds[-1]
    columns = {**columns, "y 0": [repr(float(i * i % 17)) for i in range(m)]}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        whole, cut = Path(folder, "whole"), Path(folder, "cut")
        whole.mkdir(), cut.mkdir()
        write(whole, columns, [0, m], suffix)
        write(cut, columns, bounds, suffix)
        expected = read(whole, 1 << 16)
        patch.setattr(dialects, "BLOCK_BYTES", 512)  # several blocks a file
        assert read(cut, batch_rows) == expected


@pytest.mark.parametrize("bounds", [[0, 80, 160], [0, 3, 160]])
def test_the_model_is_the_same_where_the_first_file_holds_bit_strings_by_chance(tmp_path, bounds):
    """A model of numbers; the first 80 of them look like strings of bits."""
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.choice([100, 101, 110, 111], 80), rng.integers(0, 100, 80)])
    columns = {"almost strings 0": list(map(str, values)), "y 0": list(map(repr, (values * 0.5 + 1).tolist()))}
    models = []
    for name, cut in (("whole", [0, 160]), ("cut", bounds)):
        (tmp_path / name).mkdir()
        write(tmp_path / name, columns, cut, ".csv")
        table = open_table([*(tmp_path / name).iterdir()], "y 0", domain="auto")
        (real,) = table.encoding.columns
        assert (real.centre, real.scale) == (pytest.approx(values.mean(), rel=1e-15), pytest.approx(values.std()))
        model = LowDegreeRegressor(domain="real")
        for X, y in table.batches():
            model.partial_fit(X, y)
        models.append((real, *model.coefficients_, model.intercept_))
    assert models[0][0] == models[1][0]
    np.testing.assert_allclose(models[0][1:], models[1][1:], rtol=1e-13)  # sums of products of numbers are rounded


@given(st.lists(st.one_of(st.floats(-1e300, 1e300), st.integers(-(2**63), 2**63 - 1)), min_size=3, max_size=70))
def test_mean_and_deviation_match_exact_arithmetic(numbers):
    """In float64, of the numbers as the file has them: integers whole, the rest as float64."""
    numbers = [*numbers, 1.5, 2, 7]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_text("a,y\n" + "".join(f"{value!r},{i}\n" for i, value in enumerate(numbers)))
        table = open_table(path, "y", domain="auto", batch_rows=11)
    exact = [Fraction(value) for value in numbers]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / len(exact)
    (real,) = table.encoding.columns
    assert real.centre == float(mean)
    assert abs(Fraction(real.scale) ** 2 / variance - 1) < Fraction(1, 10**14)

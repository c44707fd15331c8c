"""Tables that lack values: filled and marked for hash tables, refused elsewhere, and where they are dropped gone."""

import numpy as np
import pandas as pd
import pytest

import sparsact as sa
from sparsact.datasets import Encoding
from sparsact.datasets.table_files import Parts
from sparsact.datasets.table_stream import Table, TableSurvey


def surveyed(frame, **options):
    survey = TableSurvey.of(Parts.open(frame), "y", None, 100, domain="auto", keep_missing=True, **options)
    for batch in survey.batches():
        survey.add(batch)
    return Table(survey.parts, survey.encoding(), survey.n_rows, survey.batch_rows)


def houses(m=600, seed=0):
    rng = np.random.default_rng(seed)
    size, kind = rng.uniform(50, 150, m), rng.integers(0, 3, m)
    y = size / 20 + np.array([0.0, 1.0, 3.0])[kind] + 0.1 * rng.normal(size=m)
    frame = pd.DataFrame({"size": size, "kind": np.array(["barn", "flat", "house"])[kind], "y": y})
    frame.loc[::4, "size"] = np.nan
    frame.loc[::7, "kind"] = None
    return frame


def test_what_is_missing_is_the_mean_beside_a_bit():
    frame = houses()
    table = surveyed(frame)
    assert table.feature_names == (
        *("size", "size is missing", "kind=(missing)", "kind=barn", "kind=flat", "kind=house"),
    )
    X = np.concatenate(list(table.points()))
    size, there = frame["size"].to_numpy(), frame["size"].notna().to_numpy()
    standard = (size - size[there].mean()) / size[there].std()
    np.testing.assert_allclose(X[:, 0], np.where(there, standard, 0), atol=1e-9)
    np.testing.assert_array_equal(X[:, 1] < 0, ~there)
    np.testing.assert_array_equal(X[:, 2] < 0, frame["kind"].isna())
    assert (X[:, 2:] < 0).sum(axis=1).tolist() == [1] * len(X)
    again = Encoding.from_json(table.encoding.to_json())
    assert again == table.encoding
    assert "size: bit 1 stands for missing, bit 0 for present." in table.encoding.notes


def test_pieces_of_any_size_are_encoded_alike(tmp_path):
    frame = houses()
    frame.loc[100:250, "size"] = np.nan  # whole batches without a number
    frame.to_csv(tmp_path / "houses.csv", index=False)
    of_file, of_frame = surveyed(tmp_path / "houses.csv"), surveyed(frame)
    for a, b in zip(of_file.points(), of_frame.points(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.grid
def test_hash_tables_are_fitted_and_asked_with_missing_values(tmp_path):
    frame = houses(300)
    result = sa.fit_table(frame, "y", model="lsh", folds=2)
    assert result.targets[0].r2.mean > 0.6
    new = houses(50, seed=1).drop(columns="y")
    found = result.predict(new)
    assert np.isfinite(found).all()
    new.loc[:, "size"] = np.nan  # one that lacks it all
    assert np.isfinite(result.predict(new)).all()
    result.model.save(tmp_path / "model")
    encoding = Encoding.from_json(sa.load(tmp_path / "model").table_encoding_)
    assert encoding == result.encoding


@pytest.mark.grid
def test_other_models_refuse_them_and_dropping_them_still_does():
    frame = houses()
    with pytest.raises(ValueError, match="column 'size', row 1: the value is missing"):
        sa.fit_table(frame, "y", model="low-degree")
    dropped = sa.fit_table(frame, "y", model="lsh", drop_missing=True)
    assert dropped.n_rows == frame.notna().all(axis=1).sum()
    frame["y"] = frame["y"].where(np.arange(len(frame)) != 3)
    with pytest.raises(ValueError, match="column 'y', row 4: the value is missing"):
        sa.fit_table(frame, "y", model="lsh")


def test_sequences_may_lack_nothing():
    frame = pd.DataFrame(
        {"bits": ["0101", "0011", None, "1111"] * 9, "size": np.arange(36.0), "y": np.arange(36.0) ** 2}
    )
    with pytest.raises(
        ValueError, match="column 'bits' has missing values, which only numbers and categories may have"
    ):
        sa.fit_table(frame, "y", model="lsh")

"""`fit_table`: the command in Python, of files and of tables in memory."""

import signal
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from commands import fit_json, run
from grids import few_of

import sparsact as sa
from sparsact.cli.terminal import as_options
from sparsact.datasets import encoded_table
from sparsact.environment import Interrupted
from sparsact.fit.candidates import candidates
from sparsact.fit.candidates.sparse import degrees_to_scan

pytestmark = pytest.mark.usefixtures("few_rivals")

M = 211
MEASURED = {"seconds", "peak_memory_bytes"}


def columns():
    rng = np.random.default_rng(3)
    bits, x = rng.integers(0, 2, (M, 4)), rng.uniform(-2, 2, (M, 2))
    s = 1 - 2 * bits
    y = 2 * s[:, 0] * s[:, 2] + s[:, 1] + 0.1 * rng.normal(size=M)
    return {f"b{i}": bits[:, i] for i in range(4)} | {
        "u": x[:, 0], "v": x[:, 1], "y": y, "z": y**2 + s[:, 3], "bent": np.abs(x[:, 0]) + np.abs(x[:, 1]),
        "kind": np.where(y > 1, "high", np.where(y < -1, "low", "some")),
    }  # fmt: skip


BITS, NUMBERS = tuple(f"b{i}" for i in range(4)), ("u", "v", "b0")
CASES = {  # file, targets, options by their names in Python
    "csv": ("t.csv", ["y"], {"columns": BITS, "folds": 3}),
    "parquet": ("t.parquet", ["y"], {"columns": BITS, "folds": 3, "random_state": 4, "degree": 2, "alpha": 0.5}),
    "npz": ("t.npz", ["y"], {"alpha": 1.0}),
    "classes": ("t.csv", ["kind"], {"columns": BITS}),
    "targets": ("t.parquet", ["y", "z"], {"columns": BITS}),
    "hash tables": ("t.csv", ["bent"], {"columns": NUMBERS, "folds": 2}),
    "numbers": ("t.csv", ["y"], {"ignore": ("z", "kind", "bent"), "model": "low-degree", "domain": "real"}),
    "parts": ("part-*.csv", ["y"], {"columns": BITS, "model": "low-degree"}),
}
IN_THE_COMMAND = {"columns": "--columns", "ignore": "--ignore", "random_state": "--random-state"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, table = tmp_path_factory.mktemp("tables"), pa.table(columns())
    pa.csv.write_csv(table, path / "t.csv")
    pa.parquet.write_table(table, path / "t.parquet", row_group_size=50)
    np.savez(path / "t.npz", X=np.stack([columns()[name] for name in BITS], axis=1), y=columns()["y"])
    for part, (start, n_rows) in enumerate([(0, 60), (60, 40), (100, 111)]):
        pa.csv.write_csv(table.slice(start, n_rows), path / f"part-{part}.csv")
    return path


def words(targets, options):
    found = [word for target in targets for word in ("--target", target)]
    for name, value in options.items():
        for one in value if isinstance(value, tuple) else (value,):
            found += [IN_THE_COMMAND.get(name, f"--{name}"), one]
    return found


@pytest.fixture(scope="module")
def fitted(folder):
    """The result of a case, fitted once."""

    @cache
    def of(case):
        file, targets, options = CASES[case]
        return sa.fit_table(folder / file if case != "parts" else str(folder / file), targets, **options)

    return of


@pytest.mark.parametrize("case", few_of(CASES, ["parquet", "npz", "classes", "hash tables", "parts"]))
def test_the_result_is_what_the_command_prints(capsys, folder, tmp_path, fitted, case):
    """Field by field as JSON, byte by byte as a model file."""
    file, targets, options = CASES[case]
    result = copy(fitted(case))
    printed = fit_json(capsys, folder / file, *words(targets, options), "--out", tmp_path / "command")
    assert printed.pop("model") == str(tmp_path / "command")
    found = result.to_dict()
    assert found.pop("model") is None
    assert list(found) == list(printed)
    for name in found.keys() - MEASURED:
        assert found[name] == printed[name], name
    result.save(tmp_path / "python")
    assert (tmp_path / "python").read_bytes() == (tmp_path / "command").read_bytes()
    assert str(result).splitlines()[-1] == f"  model: {tmp_path / 'python'}"


@pytest.mark.parametrize("case", few_of(CASES, ["npz", "classes", "targets"]))
def test_the_result_is_the_text_that_the_command_prints(capsys, folder, fitted, case):
    file, targets, options = CASES[case]
    found, printed = fitted(case), run(capsys, "fit", folder / file, *words(targets, options))[1]
    result, lines = as_options(str(replace(found, written={}))).splitlines(), printed.splitlines()
    assert result[: len(lines) - 1] == lines[:-1]  # the last has seconds and memory


class Exporting:
    """What polars exports: a stream of Arrow, texts as views, categories as dictionaries of views."""

    def __init__(self, *, categories):
        self.columns = list(columns())
        kind = pa.array(columns()["kind"]).cast(pa.string_view())
        if categories:
            places = np.unique(columns()["kind"], return_inverse=True)[1].astype(np.uint32)
            kind = pa.DictionaryArray.from_arrays(places, pa.array(["high", "low", "some"], pa.string_view()))
        self.table = pa.table(columns() | {"kind": kind})

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


IN_MEMORY = {
    "pandas": lambda: pd.DataFrame(columns(), index=np.arange(M) + 7),
    "categories": lambda: pd.DataFrame(columns()).astype({"kind": "category", "b2": "category"}),
    "arrow": lambda: pa.table(columns()),
    "chunks": lambda: pa.concat_tables([pa.table(columns()).slice(i, 13) for i in range(0, M, 13)]),
    "views": lambda: Exporting(categories=False),
    "dictionaries of views": lambda: Exporting(categories=True),
}


@pytest.fixture(scope="module")
def of_file(folder):
    """What the fit of a target to some columns of the Parquet file tells."""
    options = {"folds": 3, "model": "low-degree"}
    return cache(lambda target, features: sa.fit_table(folder / "t.parquet", target, columns=features, **options))


@pytest.mark.parametrize("kind", IN_MEMORY)
@pytest.mark.parametrize(
    ("target", "features"),
    few_of([("y", BITS), ("kind", BITS), ("bent", NUMBERS)], [("kind", BITS), ("bent", NUMBERS)]),
)
def test_a_table_in_memory_gives_what_its_parquet_file_gives(of_file, kind, target, features):
    result = sa.fit_table(IN_MEMORY[kind](), target, columns=features, folds=3, model="low-degree")
    found, expected = result.to_dict(), of_file(target, features).to_dict()
    assert found.pop("table") == "the table"
    for name in found.keys() - MEASURED:
        assert found[name] == expected[name], name
    assert result.call == f"sa.fit_table(data, {target!r}, model='low-degree', columns={list(features)!r}, folds=3)"


def test_inputs_stay_as_they_are():
    frame, names, options = IN_MEMORY["pandas"](), ["y", "z"], {"columns": list(BITS), "ignore": ["u"]}
    before = frame.copy(deep=True)
    sa.fit_table(frame, names, degree=1, alpha=1, **options)
    pd.testing.assert_frame_equal(frame, before)
    assert (names, options) == (["y", "z"], {"columns": list(BITS), "ignore": ["u"]})


def test_the_model_predicts_new_rows_by_the_encoding(folder):
    result = sa.fit_table(folder / "t.csv", "bent", columns=NUMBERS)
    (X,) = encoded_table(pd.DataFrame(columns()).iloc[:9], result.encoding).points()
    assert np.abs(result.model.predict(X) - columns()["bent"][:9]).max() < 0.3
    assert result.scores.r2["bent"].mean > 0.98 > result.scores.linear_r2["bent"].mean
    assert result.scores.rmse.mean < 0.1
    assert result.choices.low_degree is None
    assert [model.chosen for model in result.choices.models] == [True, *[False] * (len(result.choices.models) - 1)]


def test_scores_of_classes_have_a_confusion(folder):
    result = sa.fit_table(folder / "t.csv", "kind", columns=BITS)
    assert set(result.scores.r2) == {"high", "low", "some"}
    assert result.scores.rmse is None
    assert result.scores.confusion.counts.sum() == M
    assert result.scores.confusion.accuracy > result.scores.confusion.majority


@pytest.mark.parametrize("target", ["y", "bent"])
def test_an_encoding_stands_for_the_survey(folder, target):
    features = {"y": BITS, "bent": NUMBERS}[target]
    options = {"folds": 3, "model": "low-degree"}
    first = sa.fit_table(folder / "t.csv", target, columns=features, **options)
    again = sa.fit_table(folder / "t.csv", target, encoding=first.encoding, **options)
    assert again.encoding == first.encoding
    for name in again.to_dict().keys() - MEASURED:
        assert again.to_dict()[name] == first.to_dict()[name], name


@pytest.mark.grid
def test_without_explanations_the_model_and_the_scores_are_the_same(folder):
    for target, features, model in (("y", BITS, "auto"), ("bent", NUMBERS, "lsh")):
        options = {"columns": features, "model": model, "folds": 2}
        short, whole = (sa.fit_table(folder / "t.csv", target, explain=e, **options) for e in (False, True))
        assert short.scores == whole.scores
        assert (short.targets[0].terms, short.details.to_dict()) == ((), {})
        assert short.choices == whole.choices
        assert str(short).splitlines()[0] == str(whole).splitlines()[0]


@pytest.mark.usefixtures("unrendered")
def test_the_page_draws_held_out_rows_where_they_were_kept(folder, tmp_path):
    for kept in (False, True):
        result = sa.fit_table(folder / "t.csv", "y", columns=BITS, degree=2, explain=False, held_out_rows=kept)
        result.report(tmp_path / "r.html")
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert ("Predicted, actual and residual" in page) is kept
        assert "sparsact fit" not in page
        assert "sa.fit_table(&#39;t.csv&#39;, &#39;y&#39;, degree=2, columns=" in page
        assert str(tmp_path) not in page
        assert result.to_dict()["report"] == str(tmp_path / "r.html")


def test_the_call_fits_the_table_again(folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = sa.fit_table("t.parquet", ["y", "z"], columns=BITS, folds=3, alpha=2, ignore="kind")
    again = eval(result.call, {"sa": sa})
    assert again.call == result.call
    assert {k: v for k, v in again.to_dict().items() if k not in MEASURED} == {
        k: v for k, v in result.to_dict().items() if k not in MEASURED
    }


@pytest.mark.grid
def test_progress_counts_the_rows_of_every_stage(folder):
    seen = []
    result = sa.fit_table(folder / "t.csv", "y", columns=BITS, progress=lambda now: seen.append(vars(now) | {}))
    last = {now["stage"]: now for now in seen}
    rows_of = {
        "reading": M,
        "choosing": M,
        "searching monomials": (1 + 5 * len(degrees_to_scan(len(BITS), M))) * M,
        "choosing terms by the lasso": 0,
        "fitting Gaussian processes": 2 * 6 * M,  # of the one rival, plain and warped
        "fitting trees": len(candidates()["trees"].sizes) * 6 * M,
        "weighting models": 0,
        "summing up": 0,
    }
    assert list(last) == list(rows_of) == list(dict(result.resources.stages))
    assert [now["n_rows"] for now in last.values()] == list(rows_of.values())
    assert [now["seconds"] for now in last.values()] == list(dict(result.resources.stages).values())


def test_a_fit_that_was_stopped_goes_on(folder, tmp_path):
    statistic, table = tmp_path / "statistic", str(folder / "part-*.csv")
    whole = sa.fit_table(table, "y", columns=BITS, degree=2)

    def stop(now):
        if now.stage == "choosing" and now.n_rows == 100:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match=f"choosing, after 100 rows; go on with resume='{statistic}'"):
        sa.fit_table(table, "y", columns=BITS, degree=2, resume=statistic, progress=stop)
    assert statistic.is_file()
    with pytest.raises(ValueError, match="--degree was 2, now it is auto; undo that, or name another file"):
        sa.fit_table(table, "y", columns=BITS, resume=statistic)
    resumed = {}
    options = {"resume": statistic, "progress": lambda now: resumed.update({now.stage: now.resumed})}
    result = sa.fit_table(table, "y", columns=BITS, degree=2, **options)
    assert resumed == {"reading": M, "choosing": 100, "summing up": 0}
    assert not statistic.exists()
    np.testing.assert_array_equal(result.model.coefficients_, whole.model.coefficients_)
    assert result.scores == whole.scores


def test_a_client_sums_up_the_files(folder):
    from distributed import Client

    options = {"columns": BITS, "model": "low-degree", "folds": 2}
    with Client(processes=False, n_workers=2, dashboard_address=":0") as client:
        result = sa.fit_table(str(folder / "part-*.csv"), "y", cluster=client, **options)
    whole = sa.fit_table(folder / "t.csv", "y", **options)
    np.testing.assert_array_equal(result.model.coefficients_, whole.model.coefficients_)


def frame(**changed):
    return pd.DataFrame({name: values for name, values in (columns() | changed).items() if values is not None})


@pytest.mark.parametrize(
    ("data", "target", "options", "message"),
    [
        (frame(), "yy", {}, "no target 'yy' in the table; did you mean 'y'"),
        (frame(), "y", {"columns": ["bo"]}, "no column 'bo' in the table; did you mean 'b3'"),
        (frame(), "y", {"columns": ["y"]}, "no column is left to learn from"),
        (frame(), [], {}, "no target is given; name at least one column"),
        (frame().iloc[:0], "y", {}, "has no rows"),
        (frame().iloc[:3], "y", {"columns": BITS}, "3 rows are fewer than 5 folds; choose folds 3"),
        (frame(y=np.ones(M)), "y", {}, "target 'y' is constant"),
        (frame(y=[1, 2, 3, 4, None, *range(206)]), "y", {}, "column 'y', row 5: the value is missing"),
        (frame(b1=pd.date_range("2020", periods=M)), "y", {}, "column 'b1' holds timestamp"),
        (frame(b1=[1, "two", 3.5] * 70 + [None]), "y", {}, "a column mixes kinds of values .*b1.*convert"),
        (frame().rename(columns={"b1": "b0"}), "y", {}, "the table has two columns named 'b0'; give each its own"),
        (pa.table([[0, 1], [1, 0], [2.0, 3.0]], ["a", "a", "y"]), "y", {}, "two columns named 'a'"),
        (frame(), "y", {"model": "forest"}, "model 'forest' is none of 'auto', 'low-degree', 'sparse', 'gp',"),
        (frame(), "y", {"degree": 0}, "degree 0 is neither 'auto' nor a whole number from 1"),
        (frame(), "y", {"degree": 1.5}, "degree 1.5 is neither"),
        (frame(), "y", {"degree": 8, "columns": BITS}, "degree 8 is above the number of columns, 4; choose at most 4"),
        (frame(), "y", {"alpha": np.nan}, "alpha nan is neither 'auto' nor a number"),
        (frame(), "y", {"folds": 1}, "folds 1: held-out scores need at least 2"),
        (frame(), "y", {"random_state": 2**32}, "^random_state must lie between 0 and 4294967295; got 4294967296"),
        (frame(), "y", {"model": "lsh", "degree": 2}, "degree 2 applies to low-degree .*; leave one of the two out"),
        (frame(), "y", {"resume": "s"}, "`resume` needs a table on disk, but this one is in memory; write it"),
        (frame(), "y", {"cluster": "local:1"}, "`cluster` needs a table on disk"),
        ("no.csv", "y", {}, "no table 'no.csv'; check the path"),
        ([], "y", {}, "no table is given"),
    ],
)  # fmt: skip
def test_bad_input(data, target, options, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        sa.fit_table(data, target, **options)


@pytest.mark.parametrize("data", [{"a": [1]}, None, 7])
def test_what_is_no_table(data):
    with pytest.raises(TypeError, match="pass paths, a pandas or polars DataFrame, a pyarrow"):
        sa.fit_table(data, "y")


def test_an_encoding_that_does_not_fit(folder):
    encoding = sa.fit_table(folder / "t.csv", "y", columns=NUMBERS, degree=1, alpha=1).encoding
    for target, options, message in (
        ("z", {}, "the encoding was learned for target y, not z"),
        ("y", {"ignore": ["u"]}, "the encoding fixes ignore"),
        ("y", {"domain": "cube"}, "domain 'cube' takes bits, but the encoding has columns of numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            sa.fit_table(folder / "t.csv", target, encoding=encoding, **options)
    with pytest.raises(ValueError, match="no column 'u' in the table"):
        sa.fit_table(frame(u=None), "y", encoding=encoding)


@pytest.mark.parametrize("name", ["csv", "parquet", "classes", "targets", "numbers"])
def test_predictions_for_another_table(fitted, name):
    """They equal the model's on the encoded rows, in any order of the columns; other columns are ignored."""
    targets, result = CASES[name][1], fitted(name)
    other = pd.DataFrame(columns()).drop(columns=targets).iloc[::-1, ::-1]
    predicted = result.predict(other)
    (X,) = encoded_table(other, result.encoding).points()
    expected = result.model.predict(X)
    np.testing.assert_array_equal(predicted, expected)
    assert predicted.shape == ((M, 2) if name == "targets" else (M,))
    assert len(result.predict(other[:0])) == 0

"""Columns that a fit leaves out, and says so: identifiers and exact repetitions; and what it warns of."""

import numpy as np
import pytest

from sparsact.datasets import encoded_table, open_table
from sparsact.datasets.repeated_columns import suspicions

M = 120
RNG = np.random.default_rng(8)
BITS = RNG.integers(0, 2, (M, 4))
X = RNG.normal(size=M).round(3)
Y = (BITS[:, 0] + X).round(3)
SEQUENCES = np.array(["".join("ACGT"[2 * p + bit] for p, bit in enumerate(row)) for row in BITS[:, :2]])


def write(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text(",".join(columns) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def names(path, **options):
    return [column.name for column in open_table(path, "y", domain="auto", **options).encoding.columns]


def warnings(path, target="y"):
    table = open_table(path, target, domain="auto", batch_rows=50)
    return suspicions(table.encoding, *map(np.concatenate, zip(*table.batches(), strict=True)))


IDENTIFIERS = {
    "names": [f"n{i}" for i in range(M)],
    "nearly all different": [f"n{max(i, 2)}" for i in range(M)],
    "codes": [f"{i * 7:05d}" for i in range(M)],
    "id": range(M),
    "Index": range(1, M + 1),
    "row_id": RNG.permutation(M),
    "": range(M),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
@pytest.mark.parametrize("rows", [M, 31])
def test_identifiers_are_left_out_and_strict_refuses_them(tmp_path, name, rows):
    some = {"a": BITS[:rows, 0], name: [*IDENTIFIERS[name]][:rows], "b": BITS[:rows, 1], "y": Y[:rows]}
    if name == "row_id":
        some[name] = np.argsort(some[name])  # a permutation of fewer
    path = write(tmp_path / "t.csv", **some)
    table = open_table(path, "y", domain="auto")
    assert table.feature_names == ("a", "b")
    assert [note for note in table.encoding.notes if note.startswith("left out") and (name or "''") in note]
    for options in ({"strict": True}, {"columns": ["a", name]}):
        with pytest.raises(ValueError, match=f"column {name!r} (has|holds|numbers).*ignore="):
            open_table(path, "y", domain="auto", **options)


OTHERS = {
    "five texts of five": (["p", "q", "r", "s", "t"], "id"),
    "numbers": (X, "id"),  # distinct, but no row numbers
    "other name": (range(M), "day"),
    "from 2": (range(2, M + 2), "id"),
    "one twice": ([0, 0, *range(2, M)], "id"),
    "a gap that sums hide": ([0, 0, 3, *range(3, M)], "id"),
    "cities": ([f"c{i % 30}" for i in range(M)], "name"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_columns_stay(tmp_path, case):
    cells, name = OTHERS[case]
    rows = len(cells)
    path = write(tmp_path / "t.csv", **{name: cells, "y": Y[:rows]})
    assert names(path) == [name]


@pytest.mark.parametrize(
    ("columns", "kept"),
    [
        ({"a": BITS[:, 0], "b": BITS[:, 0]}, ["a"]),
        ({"a": BITS[:, 0], "b": 1 - BITS[:, 0]}, ["a"]),
        ({"a": BITS[:, 0], "b": np.where(BITS[:, 0], "no", "yes")}, ["a"]),
        ({"s": BITS[:, 0], "g": ["".join(map(str, row)) for row in BITS]}, ["g"]),  # the wider stays
        ({"g": ["".join(map(str, row)) for row in BITS], **{f"s{i}": BITS[:, i] for i in range(4)}}, ["g"]),
        ({**{f"s{i}": BITS[:, i] for i in range(3)}, "g": ["".join(map(str, r)) for r in BITS]}, ["g"]),
        ({"seq": SEQUENCES, "p0": BITS[:, 0], "p1": BITS[:, 1]}, ["p0", "p1"]),
        ({"seq": SEQUENCES, "p0": BITS[:, 0]}, ["seq", "p0"]),
        ({"c": np.array(["x", "y", "z"])[BITS[:, 0] + BITS[:, 1]], "n": BITS[:, 0] + BITS[:, 1]}, ["c", "n"]),
        ({"c": np.array(["x", "y", "z"])[BITS[:, 0] + BITS[:, 1]], "is_x": BITS[:, 0] + BITS[:, 1] == 0}, ["c"]),
        ({"n": X, "again": X, "scaled": 2 * X}, ["n", "scaled"]),
        ({"few": BITS[:, 0] * 3 + BITS[:, 1], "again": [f"{v}.0" for v in BITS[:, 0] * 3 + BITS[:, 1]]}, ["few"]),
        ({"a": [1] * M, "b": ["z"] * M}, ["a", "b"]),
        ({"a": BITS[:, 0], "b": [*BITS[:-1, 0], 1 - BITS[-1, 0]]}, ["a", "b"]),
    ],
)
@pytest.mark.parametrize("batch_rows", [7, 1000])
def test_columns_that_repeat_others_are_left_out(tmp_path, columns, kept, batch_rows):
    path = write(tmp_path / "t.csv", **columns, y=Y)
    table = open_table(path, "y", domain="auto", batch_rows=batch_rows)
    assert [column.name for column in table.encoding.columns] == kept
    gone = [name for name in columns if name not in kept]
    assert any("are equal or opposite" in note for note in table.encoding.notes) == bool(gone)
    for note in table.encoding.notes:
        assert "opposite" not in note or all(f"{name} (see " in note for name in gone)
    if gone:
        with pytest.raises(ValueError, match=f"column '{gone[0]}' repeats"):
            open_table(path, "y", domain="auto", strict=True)
        new = write(tmp_path / "new.csv", **{name: columns[name] for name in kept})
        assert len(next(iter(encoded_table(new, table.encoding).points()))) == M


def test_columns_without_two_values_are_left_out(tmp_path):
    path = write(tmp_path / "t.csv", a=[1] * M, b=["z"] * M, c=BITS[:, 0], y=Y)
    encoding = open_table(path, "y").encoding
    assert [column.name for column in encoding.columns] == ["c"]
    assert "left out, since they are the same in every row: a, b." in encoding.notes
    with pytest.raises(ValueError, match="column 'a' is the same in every row; leave it out with ignore='a'"):
        open_table(path, "y", strict=True)


def test_values_keep_their_text_and_integers_their_digits(tmp_path):
    big = 2**53 + BITS.sum(axis=1)
    path = write(
        tmp_path / "t.csv",
        code=np.where(BITS[:, 0], "01234", "1234"),
        size=np.where(BITS[:, 1], "1e3", "1000"),
        version=np.array(["1.1", "1.10", "rc"])[BITS[:, 0] + BITS[:, 1]],
        two=2**53 + BITS[:, 2],
        big=big,
        y=Y,
    )
    table = open_table(path, "y", domain="auto")
    assert [getattr(column, "values", None) for column in table.encoding.columns] == [
        ("01234", "1234"),
        ("1000", "1e3"),
        ("1.1", "1.10", "rc"),
        (str(2**53), str(2**53 + 1)),
        None,
    ]
    read = next(iter(table.batches()))[0]
    counts = BITS.sum(axis=1)
    centre, scale = table.encoding.columns[-1].centre, counts.std()
    expected = [float(int(value) - int(centre)) / scale for value in big]
    np.testing.assert_allclose(read[:, -1], expected, rtol=1e-14)
    with pytest.raises(ValueError, match=r"column 'big', row \d+: .* an integer beyond 2\*\*53, .* subtract a"):
        list(open_table(path, "y", domain="real").batches())


@pytest.mark.parametrize("suffix", [".csv", ".npz"])
def test_a_target_that_float64_would_round_is_refused(tmp_path, suffix):
    y = 2**53 + 1 + np.arange(M)
    if suffix == ".csv":
        write(tmp_path / "t.csv", a=BITS[:, 0], y=y)
    else:
        np.savez(tmp_path / "t.npz", a=BITS[:, 0], y=y)
    with pytest.raises(ValueError, match=f"column 'y', row 1: {2**53 + 1} is an integer beyond"):
        open_table(tmp_path / f"t{suffix}", "y")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["x" if i == 40 else i / 8 for i in range(M)], "row 41: 'x' is not a finite number, unlike the other values"),
        (["x" if i == 100 else i / 8 for i in range(M)], "row 101: 'x' is not a finite number"),
        (["inf" if i == 3 else i % 5 / 2 for i in range(M)], "row 4: 'inf' is not a finite number"),
        (["-" if i == 7 else i / 8 for i in range(M)], "row 8: '-' is not a finite number, .* with drop_missing=True"),
        ([f"{i} %" for i in range(M)], "row 1: '0 %' is not a finite number"),
    ],
)
def test_slips_in_numbers_are_refused(tmp_path, cells, message):
    with pytest.raises(ValueError, match=message):
        open_table(write(tmp_path / "t.csv", a=BITS[:, 0], x=cells, y=Y), "y", domain="auto")


def test_texts_of_digits_and_letters_alone_say_what_to_do(tmp_path):
    texts = ["".join(RNG.choice(list("AC01"), 7)) for _ in range(M)]
    with pytest.raises(ValueError, match=r"no column is left .* write each of their 7 letters in its own column"):
        open_table(write(tmp_path / "t.csv", g=texts, y=Y), "y")


def test_columns_like_the_target_are_warned_of(tmp_path):
    path = write(
        tmp_path / "t.csv",
        a=BITS[:, 0],
        copy=3 * Y + 1,
        falling=-np.exp(Y),
        noisy=Y + RNG.normal(size=M),
        signal_blue=RNG.normal(size=M),
        y=Y,
    )
    (warning,) = warnings(path)
    assert "function of it: copy, falling;" in warning
    path = write(tmp_path / "t.csv", a=BITS[:, 0], signal_blue=X, signal_a=BITS[:, 1], signal_red=Y)
    (warning,) = warnings(path, "signal_red")
    assert "named like the target: signal_blue;" in warning
    path = write(tmp_path / "t.csv", a=BITS[:, 0], fitness_sd=X, fit=RNG.normal(size=M), fitness=Y)
    (warning,) = warnings(path, "fitness")
    assert "named like the target: fitness_sd;" in warning
    path = write(tmp_path / "t.csv", a=BITS[:, 0], b=BITS[:, 1], x=X, y=np.array(["u", "v", "w"])[BITS[:, :2].sum(1)])
    assert warnings(path) == []


@pytest.mark.parametrize("dtype", [np.float16, ">f4", ">i2"])
def test_arrays_of_other_types_are_read(tmp_path, dtype):
    np.savez(tmp_path / "t.npz", X=BITS.astype(dtype), y=np.arange(M).astype(dtype))
    ((points, y),) = open_table(tmp_path / "t.npz", "y").batches()
    np.testing.assert_array_equal(points, BITS)
    np.testing.assert_array_equal(y, np.arange(M))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": BITS, "X[0]": Y}, "two columns named 'X\\[0\\]'"),
        ({"X": BITS * 1j}, "column 'X\\[0\\]' holds complex128"),
        ({"X": BITS, "d": np.arange(M).astype("M8[s]")}, "column 'd' holds timestamp"),
        ({"X": np.zeros((M, 0))}, "array 'X' is empty, of shape \\(120, 0\\)"),
    ],
)
def test_strange_arrays_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays, y=Y)
    with pytest.raises(ValueError, match=message):
        open_table(tmp_path / "t.npz", "y")


def test_a_loop_of_links_is_one_line(tmp_path):
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    with pytest.raises(FileNotFoundError, match="no table"):
        open_table(tmp_path / "a.csv", "y")

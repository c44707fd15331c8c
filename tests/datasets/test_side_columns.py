"""Columns that are no predictors, by name and values: what is left out, what is warned of, and what simply stays."""

import numpy as np
import pytest

from sparsact.datasets import open_table
from sparsact.datasets.splits import parts_of_split

M = 200
RNG = np.random.default_rng(8)
BITS = RNG.integers(0, 2, (M, 3))
Y = (BITS[:, 0] + RNG.normal(size=M)).round(3)
ERRORS = RNG.uniform(0.01, 2, M).round(3)
COUNTS = RNG.integers(1, 5000, M)
COVARIATE = RNG.normal(size=M).round(3)
WORDS = RNG.choice(["train", "valid", "test"], M)
PLATES = RNG.integers(1, 9, M)


def read(path, sides, target="y", **options):
    """Whether columns beside three bits are learned from, and what is said of them."""
    table = {f"s{i}": BITS[:, i] for i in range(3)} | sides | {target: Y}
    rows = zip(*table.values(), strict=True)
    path.write_text(",".join(table) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    encoding = open_table(path, target, domain="auto", **options).encoding
    return encoding.source_columns[3:], [note for note in encoding.notes if "look" in note or "suggests" in note]


OUT = {  # columns that are left out, with the option that takes them
    "set": (WORDS, "split='set'"),
    "anything": (np.where(PLATES > 3, "Training", "held-out"), "split='anything'"),
    "plate": ([f"P{i}" for i in PLATES], "groups='plate'"),
    "Replicate": (PLATES % 2 + 1, "groups='Replicate'"),
    "batch": (PLATES, "groups='batch'"),
    "fold": (PLATES % 5, "groups='fold'"),
    "counts": (COUNTS, "weights='counts'"),
    "nReads": (COUNTS, "weights='nReads'"),
    "input_ct": (COUNTS, "weights='input_ct'"),
    "n_rep": (PLATES % 3 + 1, "weights='n_rep'"),
    "sd": (ERRORS, "sigma='sd'"),
    "Std Err": (ERRORS, "sigma='Std Err'"),
    "dy": (ERRORS, "sigma='dy'"),
    "y_err": (ERRORS.round(1), "sigma='y_err'"),
    "var_y": (ERRORS, "variance='var_y'"),
    "variance": (ERRORS, "variance='variance'"),
}


@pytest.mark.parametrize("name", OUT)
def test_what_is_no_predictor_is_left_out_with_the_option_that_takes_it(tmp_path, name):
    values, option = OUT[name]
    learned, (note,) = read(tmp_path / "t.csv", {name: values})
    assert learned == []
    assert note.startswith("left out, since it looks like")
    assert f": {name}; use it with {option}, or learn from it with columns=" in note
    assert read(tmp_path / "t.csv", {name: values}, columns=["s?", name]) == ([name], [])
    assert read(tmp_path / "t.csv", {name: values}, columns=[f"*,{name}"], ignore=["y"]) == ([name], [])
    assert read(tmp_path / "t.csv", {name: values}, columns=["*"])[0] == []  # a pattern names no column
    with pytest.raises(ValueError, match=f"column '{name}' looks like .*{option}, or leave it out with ignore="):
        read(tmp_path / "t.csv", {name: values}, strict=True)


WARNED = {  # names that predictors have too
    "set": BITS[:, 1] ^ BITS[:, 2],
    "is_train": BITS[:, 1] ^ BITS[:, 2],
    "batch": 2 ** (PLATES % 4 + 4),
    "plate": BITS[:, 1] ^ BITS[:, 2],
    "reads": PLATES * 10,  # a few levels: of a design, or coarse
    "count": COUNTS,
    "err": ERRORS,
    "var": ERRORS,
    "sd": COUNTS,
    "std": ERRORS.round(0) + 1,
}


@pytest.mark.parametrize("name", WARNED)
def test_what_may_be_a_predictor_is_learned_from_with_a_warning(tmp_path, name):
    learned, (note,) = read(tmp_path / "t.csv", {name: WARNED[name]})
    assert learned == [name]
    assert note.startswith("warning: used as a predictor, but the name suggests ")
    assert f"leave it out with ignore={name!r}." in note


STAY = {  # without a word
    "set": PLATES,
    "set_size": PLATES,
    "batch_size": 2 ** (PLATES % 4 + 4),
    "sd": BITS[:, 1] ^ BITS[:, 2],
    "error": -ERRORS,
    "var1": ERRORS,
    "radius_se": ERRORS,
    "word_count": COUNTS,
    "template": [f"P{i}" for i in PLATES],
    "ct": ERRORS,  # cycles of a reaction
    "variant": [f"v{i}" for i in PLATES],
    "n_repeats": ERRORS,
    "kind": np.where(PLATES > 3, "test", "rest"),
    "level": np.where(PLATES > 3, "dev", "test"),
}


@pytest.mark.parametrize("name", STAY)
def test_predictors_stay(tmp_path, name):
    assert read(tmp_path / "t.csv", {name: STAY[name]}) == ([name], [])


def test_errors_among_covariates_are_left_out_only_by_the_name_of_a_target(tmp_path):
    sides = {"x": COVARIATE, "sd": ERRORS, "x_sd": ERRORS[::-1], "fit_se": ERRORS + 1, "n_reads": COUNTS}
    learned, notes = read(tmp_path / "t.csv", sides | {"disk_reads": COUNTS[::-1]}, target="fit")
    assert learned == ["x", "sd", "x_sd", "disk_reads"]
    starts = ["warning: used as a predictor", "left out", "left out", "warning: used as a predictor"]
    assert [note.split(",")[0] for note in notes] == starts
    assert "sd, x_sd" in notes[0]
    alike = {"fit_other": COVARIATE, "sd": ERRORS}  # another target, not a covariate
    assert read(tmp_path / "t.csv", alike, target="fit_first")[0] == ["fit_other"]


def test_a_table_of_nothing_else_is_learned_from(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("plate,y\n" + "".join(f"{plate},{y}\n" for plate, y in zip(PLATES, Y, strict=True)))
    encoding = open_table(path, "y", domain="auto").encoding
    assert encoding.source_columns == ["plate"]
    assert any(note.startswith("warning: used as a predictor") for note in encoding.notes)


def test_classes_have_no_weights(tmp_path):
    path = tmp_path / "t.csv"
    rows = zip(BITS[:, 0], COUNTS, PLATES, np.where(Y > 0, "a", "b"), strict=True)
    path.write_text("s,n_reads,plate,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    encoding = open_table(path, "y", domain="auto").encoding
    assert encoding.source_columns == ["s"]
    assert not any("weights=" in note for note in encoding.notes)
    assert any("groups='plate'" in note for note in encoding.notes)


@pytest.mark.parametrize(
    ("name", "values", "parts"),
    [
        ("set", ["Train", "VAL", "tst"], "tr va te"),
        ("set", ["training", "dev", "held-out"], "tr va te"),
        ("set", ["0", "1", "2"], "tr va te"),
        ("set", ["0", "1.0"], "tr te"),
        ("holdout", ["False", "True"], "tr te"),
        ("is_train", ["False", "true"], "te tr"),
        ("trainset", ["0", "1"], "te tr"),
        ("strain", ["0", "1"], "tr te"),
        ("set", ["train", "1"], None),
        ("set", ["0", "3"], None),
        ("set", ["a", "b"], None),
    ],
)
def test_values_of_a_split(name, values, parts):
    found = parts_of_split(name, values)
    assert found is None if parts is None else [part[:2] for part in found.values()] == parts.split()
    if found is not None:
        assert list(found) == values


@pytest.mark.parametrize(
    ("columns", "learned"),
    [
        (["s0,s2"], ["s0", "s2"]),
        (["s[12]"], ["s1", "s2"]),
        (["a,b", "s0"], ["a,b", "s0"]),  # a name with a comma
        (["s?, a*"], ["s0", "s1", "s2", "a,b"]),
    ],
)
def test_columns_are_chosen_by_lists_and_patterns(tmp_path, columns, learned):
    path = tmp_path / "t.csv"
    rows = zip(*BITS.T, ERRORS, Y, strict=True)
    path.write_text('s0,s1,s2,"a,b",y\n' + "".join(",".join(map(str, row)) + "\n" for row in rows))
    assert sorted(open_table(path, "y", columns, domain="auto").encoding.source_columns) == sorted(learned)
    left = [name for name in ("s0", "s1", "s2", "a,b") if name not in learned]
    if left:
        assert open_table(path, "y", domain="auto", ignore=columns).encoding.source_columns == left
    for wrong in ("t*", "s0,t9"):
        with pytest.raises(ValueError, match="no column"):
            open_table(path, "y", [wrong])

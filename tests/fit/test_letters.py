"""Tables whose columns are letters: the model that competes, what it says, and what it refuses."""

import json
from io import StringIO
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from grids import few_of

import sparsact as sa
from sparsact.cli import main

pytestmark = pytest.mark.usefixtures("few_rivals", "unrendered")
RNG = np.random.default_rng(0)
LETTERS = ("ACGT", "ACG", "GT", "ACGT")
CELLS = ["".join(one) for one in product(*LETTERS)]
EFFECT = dict(zip("ACGT", (0.0, 1.0, -1.0, 2.0), strict=True))


def value(text):
    """One letter's effect, and a pair's; site 2 does not matter."""
    return EFFECT[text[0]] + 2.0 * (text[1] == "G" and text[3] == "T")


def from_reference(f, reference, changes):
    """Alternating sum of a function of texts over changes, such as ``g[1]=A→T``, from the letters of a reference."""
    if not changes:
        return f("".join(reference))
    (first, *rest), changed = changes, list(reference)
    changed[int(first[2]) - 1] = first[-1]
    return from_reference(f, changed, rest) - from_reference(f, reference, rest)


@pytest.fixture(scope="module")
def table():
    seen = [CELLS[i] for i in RNG.permutation(len(CELLS))[:80]]
    y = [value(text) + 0.05 * RNG.normal() for text in seen]
    return pa.table({"g": seen, "y": y})


@pytest.fixture(scope="module")
def result(table):
    return sa.fit_table(table, "y", model="letters", held_out_rows=True)


def test_rows_that_were_not_seen_are_predicted(result):
    predicted = result.predict(pa.table({"g": CELLS}))
    expected = np.array([value(text) for text in CELLS])
    assert np.mean((predicted - expected) ** 2) < 0.1 * expected.var()
    assert result.scores.r2["y"].mean > 0.8
    assert result.choices.kind == "letters"
    assert len(result.scores.r2["y"].folds) == 5


def test_what_it_consists_of(result, table):
    """Close to the components of the planted function under the frequencies of the table's letters."""
    (target,) = result.targets
    counts = [
        [sum(text[i] == letter for text in table["g"].to_pylist()) for letter in one] for i, one in enumerate(LETTERS)
    ]
    expected = sa.fourier.anova(np.array([value(text) for text in CELLS]).reshape(4, 3, 2, 4), counts)
    whole = expected.variance_by_degree().sum()
    np.testing.assert_allclose(target.weights, expected.variance_by_degree(), atol=0.1 * whole)
    names, influences = zip(*target.influences, strict=True)
    assert names == ("g[1]", "g[2]", "g[3]", "g[4]")
    np.testing.assert_allclose(influences, expected.variance_by_site(), atol=0.1 * whole)
    term = target.terms[0]
    assert term.effect == pytest.approx(from_reference(value, result.encoding.reference, term.subset), abs=0.3)
    assert term.low < term.effect < term.high
    assert f"the most frequent letter of each site ({''.join(result.encoding.reference)})" in str(result)


def test_the_command_says_intervals(result, tmp_path, capsys):
    """They cover about as many cells as requested, and have the width that rows left out require."""
    result.save(tmp_path / "m.sparsact")
    (tmp_path / "n.csv").write_text("g\n" + "\n".join(CELLS) + "\n")
    assert main(["predict", str(tmp_path / "m.sparsact"), str(tmp_path / "n.csv"), "--confidence", "0.9"]) == 0
    found = pd.read_csv(StringIO(capsys.readouterr().out))
    expected = np.array([value(text) for text in CELLS])
    assert ((found["y_low"] <= expected) & (expected <= found["y_high"])).mean() > 0.8
    np.testing.assert_allclose(found["y"], result.predict(pa.table({"g": CELLS})))
    np.testing.assert_array_equal(sa.load(tmp_path / "m.sparsact").predict(CELLS), found["y"])
    width = result.model.prediction_intervals(CELLS[:1], 0.9)
    np.testing.assert_allclose(found["y_high"] - found["y_low"], width[0, 1] - width[0, 0])


@pytest.mark.grid
@pytest.mark.parametrize("model", few_of(["low-degree", "network"], ["low-degree"]))
def test_any_model_of_letters_is_decomposed(table, model, tmp_path, capsys):
    """Its predictions at all cells are decomposed, by the frequencies of the table's letters."""
    chosen = sa.fit_table(table, "y", model=model, folds=2)
    (target,) = chosen.targets
    counts = [
        [sum(text[i] == letter for text in table["g"].to_pylist()) for letter in one] for i, one in enumerate(LETTERS)
    ]
    expected = sa.fourier.anova(chosen.predict(pa.table({"g": CELLS})).reshape(4, 3, 2, 4), counts)
    np.testing.assert_allclose(target.anova.values, expected.values, atol=1e-9)
    np.testing.assert_allclose(target.weights, expected.variance_by_degree(), atol=1e-9)
    np.testing.assert_allclose(dict(target.influences)["g[1]"], expected.variance_by_site()[0])
    reference, predicted = chosen.encoding.reference, dict(zip(CELLS, expected.values.ravel(), strict=True))
    for term in target.terms[:20]:
        assert term.effect == pytest.approx(from_reference(predicted.get, reference, term.subset))
    assert "the most frequent letter of each site" in str(chosen)
    chosen.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for title in ("Sites and pairs of sites", "Effects of letters", "Variance by how many sites act together"):
        assert title in page
    assert "changes the effect of the other" not in page  # which is said of bits
    if model == "low-degree":
        chosen.save(tmp_path / "m.sparsact")
        assert main(["inspect", str(tmp_path / "m.sparsact"), "--top", "3"]) == 0
        assert target.terms[0].label in capsys.readouterr().out


def test_polynomials_of_more_letters_than_any_grid_have_effects(tmp_path, capsys):
    """Twelve sites of four letters of unequal frequency: variances under these, and with all equally often, by hand."""
    rng, frequency = np.random.default_rng(4), [0.55, 0.25, 0.15, 0.05]
    texts = rng.choice(list("ACGT"), (1000, 12), p=frequency)
    y = 2.0 * (texts[:, 7] == "T") + (texts[:, 10] == "C")
    data = pa.table({"g": ["".join(row) for row in texts], "y": y})
    found = sa.fit_table(data, "y", model="low-degree", degree=1, alpha=0.0, folds=2)
    (target,), seen = found.targets, [np.mean(texts[:, i] == letter) for i, letter in ((7, "T"), (10, "C"))]
    expected = {f"g[{i}]": (s * p * (1 - p)) for i, s, p in zip((8, 11), (4, 1), seen, strict=True)}
    influences = dict(target.influences)
    assert {name: influences[name] for name in expected} == pytest.approx(expected)
    assert max(one for name, one in influences.items() if name not in expected) < 1e-9
    assert [term.label for term in target.terms[:2]] == ["g[8]=A→T", "g[11]=A→C"]
    assert [term.effect for term in target.terms[:2]] == pytest.approx([2.0, 1.0])
    found.save(tmp_path / "m.sparsact")
    for measure, due in (("data", sum(expected.values())), ("uniform", 5 * 3 / 16)):
        assert main(["inspect", str(tmp_path / "m.sparsact"), "--measure", measure, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["measure"] == measure
        assert sum(told["targets"][0]["weight_by_degree"]) == pytest.approx(due)


def test_effects_of_mutations_have_intervals(table):
    wild = [letters[0] for letters in LETTERS]
    lists = [
        ":".join(f"{w}{i}{c}" for i, (w, c) in enumerate(zip(wild, text, strict=True), 5) if c != w) or "WT"
        for text in table["g"].to_pylist()
    ]
    (target,) = sa.fit_table(pa.table({"mutant": lists, "y": table["y"]}), "y", degree=1).targets
    assert target.of_letters
    assert all(term.low < term.effect < term.high for term in target.terms)
    assert target.anova.n_sites == 4
    assert sum(target.weights[1:]) < 1e-9 < target.weights[0]


def test_classes_are_decomposed_one_by_one(table):
    named = [
        ("high" if y > 1 else "low") if text[3] != "C" else "c"
        for text, y in zip(table["g"].to_pylist(), table["y"].to_pylist(), strict=True)
    ]
    found = sa.fit_table(pa.table({"g": table["g"], "y": named}), "y", degree=1)
    assert [target.name for target in found.targets] == ["c", "high", "low"]
    assert found.targets[0].influences[3][1] == max(value for _, value in found.targets[0].influences)


@pytest.mark.grid
def test_a_wild_type_that_no_row_has(table):
    """Effects exist for letters that rows have; to predict the wild type's letter is an error."""
    lists = [":".join(f"M{i + 5}{c}" for i, c in enumerate(text)) for text in table["g"].to_pylist()]
    found = sa.fit_table(pa.table({"g": lists, "y": table["y"]}), "y", model="letters", folds=2)
    assert [letters for _, letters in found.targets[0].sites] == [tuple(one) for one in LETTERS]
    with pytest.raises(ValueError, match="letter 'M' was not learned"):
        found.predict(pa.table({"g": ["WT"]}))


@pytest.mark.grid
def test_it_competes_on_the_same_folds(table):
    chosen = sa.fit_table(table, "y", explain=False, folds=3)
    models = {model.name: model.r2 for model in chosen.choices.models}
    assert "a model of letters" in models
    assert all(len(r2.folds) == 3 for r2 in models.values())
    best = max(models.values(), key=lambda r2: r2.mean)
    assert chosen.choices.models[0].r2 == best


@pytest.mark.grid
@pytest.mark.parametrize("kind", few_of(["columns", "mutations"], ["columns"]))
def test_columns_of_categories_and_mutations_are_sites_too(table, kind):
    texts = table["g"].to_pylist()
    columns = {name: [text[i] for text in texts] for i, name in enumerate("abcd")}
    if kind == "mutations":
        lists = [":".join(f"A{i + 5}{c}" for i, c in enumerate(text) if c != "A") or "WT" for text in texts]
        columns = {"mutant": lists}
    found = sa.fit_table(pa.table(columns | {"y": table["y"]}), "y", model="letters", explain=False, folds=2)
    assert found.scores.r2["y"].mean > 0.7
    assert [name for name, _ in found.encoding.sites] == {
        "columns": list("abcd"),
        "mutations": ["A5", "A6", "A7", "A8"],
    }[kind]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"a": [0, 1] * 20, "y": range(40)},
            "no column has three values; choose model auto",
        ),
        (
            {"a": list("XYZW") * 20, "b": np.arange(80) / 7, "y": range(80)},
            "'b' has more than 64 different numbers; choose model auto",
        ),
        ({"a": list("XYZW") * 10, "y": ["yes", "no"] * 20}, "needs numbers to predict .* the target is classes"),
        ({"a": list("XYZW") * 10, "y": range(40), "z": range(40)}, "takes one target, got 2"),
    ],
)
def test_tables_that_it_cannot_take(columns, message):
    targets = [name for name in columns if name in "yz"]
    with pytest.raises(ValueError, match=message):
        sa.fit_table(pa.table({name: list(column) for name, column in columns.items()}), targets, model="letters")


def test_a_wild_type_is_an_option_of_the_command(tmp_path, table, capsys):
    path = tmp_path / "t.csv"
    rows = zip(table["g"].to_pylist(), table["y"].to_pylist(), strict=True)
    path.write_text("g,y\n" + "\n".join(f"{g},{y}" for g, y in rows) + "\n")
    assert main(["fit", str(path), "-t", "y", "--wild-type", "ACG"]) == 2
    assert "the wild type has 3 letters, and the rows have 4" in capsys.readouterr().err

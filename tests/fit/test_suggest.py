"""`suggest_rows` and `sparsact suggest`: gains beside brute force over all candidates, batches, spellings, refusals."""

import csv
import json
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from commands import run

import sparsact as sa
from sparsact.datasets import Encoding, encoded_table, open_table
from sparsact.datasets.combinations import neighbours, patterns_of, spelled
from sparsact.datasets.sites import combined
from sparsact.fit.next_rows import Search, keys_of, process_of
from sparsact.hypercube import characters
from sparsact.learners import CubeEnsemble

NAMES = tuple("abcdef")
WANTED = [subset for size in (1, 2) for subset in combinations(range(6), size)]


def table_of(X, y):
    return pa.table({name: X[:, i] for i, name in enumerate(NAMES)} | {"y": y})


def with_table(model, data):
    """A model of bits as a fit of the table would leave it."""
    model.table_encoding_ = open_table(data, "y").encoding.to_json()
    return model


@pytest.fixture(scope="module")
def fitted():
    """Eleven of the 64 combinations, and a process whose kernel and noise are known."""
    rng = np.random.default_rng(2)
    cube = np.array(list(product((0, 1), repeat=6)))
    X = cube[rng.permutation(64)[:11]]
    y = X[:, 0] - 2.0 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=11)
    kernel = sa.CubeKernel.product(2.0, [0.4, 0.5, 0.6, 0.9, 0.95, 0.7])
    model = sa.CubeGPRegressor(kernel, noise_variance=0.05, optimizer=None, domain="cube").fit(X.astype(bool), y)
    return cube, X, table_of(X, y), with_table(model, table_of(X, y))


def summed_variance(model, rows, wanted):
    """Summed variance of coefficients given noisy values at rows, by Bayesian linear regression on all characters."""
    subsets = [subset for size in range(7) for subset in combinations(range(6), size)]
    features = characters(1 - 2 * rows, subsets)
    precision = np.diag(1 / model.kernel_.variances_of(subsets)) + features.T @ features / model.noise_variance_
    return np.linalg.inv(precision)[np.diag_indices(64)][[subsets.index(one) for one in wanted]].sum()


def roughness(model, X, y, cube):
    """At all points, by fits that leave each row out: squared errors over variances, by squared correlations."""
    covariance, centred = model.kernel_(cube), y - model.y_mean_
    places = X @ (1 << np.arange(5, -1, -1))
    squares = []
    for i, place in enumerate(places):
        others = np.delete(places, i)
        matrix = covariance[np.ix_(others, others)] + model.noise_variance_ * np.eye(len(others))
        weights = np.linalg.solve(matrix, covariance[others, place])
        variance = covariance[place, place] + model.noise_variance_ - weights @ covariance[others, place]
        squares.append((centred[i] - weights @ np.delete(centred, i)) ** 2 / variance)
    near = (covariance[:, places] / covariance[0, 0]) ** 2
    return (near @ squares / np.mean(squares) + 1) / (near.sum(axis=1) + 1)


@pytest.mark.parametrize("effects", [None, ["b", ("b", "c")]])
def test_each_row_is_the_best_of_all_by_brute_force(fitted, effects):
    cube, X, data, model = fitted
    wanted = WANTED if effects is None else [(1,), (1, 2)]
    found = sa.suggest_rows(model, 4, effects=effects).table
    rows, today = X, summed_variance(model, X, wanted)
    rough = roughness(model, X, data["y"].to_numpy(), cube)
    assert rough.min() < 0.9 < 1.1 < rough.max()
    for chosen in found.to_pylist():
        free = [i for i, one in enumerate(cube) if not (one == rows).all(axis=1).any()]
        before = summed_variance(model, rows, wanted)
        gains = {i: (before - summed_variance(model, np.vstack([rows, cube[i]]), wanted)) / today for i in free}
        own = np.array([chosen[name] for name in NAMES])
        place = int((cube == own).all(axis=1).argmax())
        assert chosen["gain"] == pytest.approx(gains[place], rel=1e-6)
        assert gains[place] * rough[place] == pytest.approx(max(gains[i] * rough[i] for i in free), rel=1e-6)
        rows = np.vstack([rows, own])


def test_variance_is_the_mean_over_all_candidates(fitted):
    """By Parseval the mean variance over the cube is the summed variance of all coefficients."""
    cube, X, _, model = fitted
    every = [subset for size in range(7) for subset in combinations(range(6), size)]
    (row,) = sa.suggest_rows(model, 1, goal="variance").table.to_pylist()
    own = np.array([row[name] for name in NAMES])
    assert (own == cube).all(axis=1).any()
    expected = 1 - summed_variance(model, np.vstack([X, own]), every) / summed_variance(model, X, every)
    assert row["gain"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("goal", "sign"), [("maximum", 1), ("minimum", -1)])
def test_improvement_is_the_mean_over_draws(fitted, goal, sign):
    """For the first row, by 40,000 draws of its value: within five standard errors, except with probability 1e-6."""
    cube, X, _, model = fitted
    found = sa.suggest_rows(model, 3, goal=goal).table
    own = np.array([found[name][0].as_py() for name in NAMES])
    best = (sign * model.predict(X.astype(bool))).max()
    draws = model.sample_y(cube.astype(bool), 40_000, random_state=0)
    gains = np.maximum(sign * draws - best, 0)
    free = ~np.array([(one == X).all(axis=1).any() for one in cube])
    place = int((cube == own).all(axis=1).argmax())
    error = 5 * gains[place].std() / 200
    assert free[place]
    assert found["gain"][0].as_py() == pytest.approx(gains[place].mean(), abs=error)
    assert gains[place].mean() > gains[free].mean(axis=1).max() - 2 * error


def test_batches_hold_no_row_twice_and_none_that_was_measured(fitted):
    _, X, _, model = fitted
    measured = set(map(tuple, X.tolist()))
    found = sa.suggest_rows(model, 53).table
    rows = {tuple(row[name] for name in NAMES) for row in found.to_pylist()}
    assert len(rows) == 53
    assert not rows & measured
    with pytest.raises(ValueError, match=r"a budget of 54 rows needs as many candidates, and 53 are there"):
        sa.suggest_rows(model, 54)
    again = sa.suggest_rows(model, 64, repeat=True).table
    assert {tuple(row[name] for name in NAMES) for row in again.to_pylist()} == rows | measured


def test_a_table_of_candidates_keeps_its_columns_and_costs_count(fitted):
    cube, X, data, model = fitted
    rough = roughness(model, X, data["y"].to_numpy(), cube)
    rng = np.random.default_rng(0)
    rows = cube[rng.integers(0, 64, 30)]
    columns = {name: rows[:, i] for i, name in reversed(list(enumerate(NAMES)))}
    table = pa.table(
        {"plate": [f"p{i}" for i in range(30)]} | columns | {"price": rng.uniform(1, 9, 30), "gain": [0] * 30}
    )
    found = sa.suggest_rows(model, 5, table).table
    assert found.column_names == [*table.column_names, "gain_"]
    kept = found.drop_columns("gain_").to_pylist()
    assert all(row in table.to_pylist() for row in kept)
    one = sa.suggest_rows(model, 10.0, table, costs="price").table
    free = sa.suggest_rows(model, 1, table, costs=np.ones(30)).table
    assert free["plate"][0] == found["plate"][0]
    assert sum(one["price"].to_pylist()) <= 10
    alone = {}
    for i in range(30):
        row = table.slice(i, 1)
        try:
            gain = sa.suggest_rows(model, 1, row).table["gain_"][0].as_py()
        except ValueError:  # it was measured
            continue
        bits = np.array([[row[name][0].as_py() for name in NAMES]])
        alone[f"p{i}"] = gain * rough[int((cube == bits).all(axis=1).argmax())] / row["price"][0].as_py()
    assert one["plate"][0].as_py() == max(alone, key=alone.__getitem__)


def test_a_row_found_by_search_is_best_among_its_neighbours():
    """Among 2**17 combinations; none of its neighbours gains more."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (25, 17))
    y = X[:, 0] - 2.0 * X[:, 1] * X[:, 2]
    data = pa.table({f"x{i}": X[:, i] for i in range(17)} | {"y": y})
    kernel = sa.CubeKernel.product(1.0, np.linspace(0.5, 0.97, 17))
    model = sa.CubeGPRegressor(kernel, noise_variance=0.1, optimizer=None, domain="cube").fit(X.astype(bool), y)
    found = sa.suggest_rows(with_table(model, data), 3)
    assert "1.31e+05 combinations are too many to list" in found.notes[1]
    encoding = Encoding.from_json(model.table_encoding_)
    process, patterns = process_of(model, encoding), patterns_of(encoding)
    (belief,) = process.beliefs(1, rng)
    chosen = np.concatenate(list(encoded_table(found.table, encoding).points()))
    quantities = process.effects(belief.system.kernel, [one for k in (1, 2) for one in combinations(range(17), k)])
    total = belief.variances(quantities).sum()
    for step, row in enumerate(chosen):
        known = belief.with_rows(chosen[:step].astype(float))
        search = Search(process, [known], [quantities], 0, 1)
        near = neighbours(patterns, row)
        assert len(near) == 17
        gains = search.gains(search.prospects([known], process.points(np.vstack([row, near])), 1))
        rough = search.process.beliefs(1, rng)[0].roughness(process.points(np.vstack([row, near])))
        scale = known.variances(quantities).sum() / total
        assert gains[0] * scale == pytest.approx(found.table["gain"][step].as_py(), rel=1e-6)
        assert (gains * rough)[1:].max() <= (gains * rough)[0]
    assert len(set(keys_of(chosen))) == 3


KINDS = {
    "switch": ["on", "off"],
    "number": ["1", "2"],
    "bits": ["0110", "1010", "0011", "0111"],
    "colour": ["red", "green", "blue"],
    "letters": ["ACDA", "ACEA", "GCDA", "ACFG"],
    "mutant": ["WT", "A12V", "A12V:G45D", "G45S"],
}


def test_rows_are_spelled_as_the_table_spells_them():
    """What is spelled is encoded to the same bits again, and every value of a column appears."""
    rng = np.random.default_rng(0)
    columns = {name: [values[i] for i in rng.integers(0, len(values), 90)] for name, values in KINDS.items()}
    data = pa.table(columns | {"y": rng.normal(size=90)})
    encoding = open_table(data, "y").encoding
    patterns = patterns_of(encoding)
    X = combined(patterns, rng.integers(0, [len(own) for own in patterns], (400, len(patterns))))
    found = spelled(encoding, X)
    assert found.column_names == list(KINDS)
    np.testing.assert_array_equal(np.concatenate(list(encoded_table(found, encoding).points())), X)
    assert set(found["switch"].to_pylist()) == {"on", "off"}
    assert set(found["number"].to_pylist()) == {1, 2}
    assert set(found["mutant"].to_pylist()) == {"WT", "A12V", "G45D", "G45S", "A12V:G45D", "A12V:G45S"}
    assert {text[0] for text in found["letters"].to_pylist()} == {"A", "G"}
    assert {text[1] for text in found["letters"].to_pylist()} == {"C"}


@pytest.mark.slow
def test_letters_are_suggested_as_sequences():
    """By a model of letters, and by one that is fitted beside a polynomial."""
    rng = np.random.default_rng(0)
    words = ["".join(word) for word in rng.choice(list("ACGT"), (60, 3))]
    y = [(word[0] == "A") + 2.0 * (word[1:] == "CG") + 0.1 * rng.normal() for word in words]
    data = pa.table({"site": words, "y": y})
    model = with_table(sa.LettersRegressor(random_state=0).fit(words, y), data)
    polynomial = sa.fit_table(data, "y", degree=1)
    for found in (sa.suggest_rows(model, 3, effects=["site[1]"]), polynomial.suggest(3, measured=data)):
        chosen = found.table["site"].to_pylist()
        assert len(set(chosen)) == 3
        assert not set(chosen) & set(words)
        assert {letter for word in chosen for letter in word} <= set("ACGT")
    assert "4 effects" in sa.suggest_rows(model, 3, effects=["site[1]"]).notes[0]


def test_other_models_need_the_rows(fitted, tmp_path):
    _, _, data, model = fitted
    other = with_table(CubeEnsemble(np.zeros(64), {"a": 1.0}, [0.1]), data)
    with pytest.raises(ValueError, match=r"this model is a CubeEnsemble; .*model='gp'.*measured="):
        sa.suggest_rows(other, 2)
    beside = sa.suggest_rows(other, 2, measured=data).table
    assert beside.num_rows == 2
    model.save(tmp_path / "m.sparsact")
    assert sa.suggest_rows(sa.load(tmp_path / "m.sparsact"), 5).table == sa.suggest_rows(model, 5).table


REFUSED = {
    "goal must be one of": {"goal": "best"},
    "random_state must lie between 0 and 4294967295": {"random_state": 2**32},
    "budget must be a finite number above 0": {"budget": 0},
    "a budget of 2.5 is not a number of rows": {"budget": 2.5},
    "no effect 'z' in the table": {"effects": ["z"]},
    "no effect is named": {"effects": []},
    "effects are given, but the goal is maximum": {"effects": ["a"], "goal": "maximum"},
    "costs belong to rows of a table": {"costs": [1.0]},
    "a budget of 1 buys none of 2 candidates that cost 4 or more": {
        "costs": [4.0, 5.0],
        "candidates": {name: [0, 1] for name in NAMES},
    },
    "costs must be 2 finite numbers above 0": {"costs": [1.0, 0.0], "candidates": {name: [0, 1] for name in NAMES}},
    "has no column 'f'": {"candidates": {name: [0, 1] for name in NAMES[:5]}},
    "no candidate can be read .2 of 2 rows; row 1, f: 7 is not": {"candidates": {name: [7, 7] for name in NAMES}},
    "has no rows below its header": {"candidates": {name: pa.array([], pa.int64()) for name in NAMES}},
    "no target 'y' in the table": {"measured": {name: [0, 1] for name in NAMES}},
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_input_is_refused(fitted, message):
    given = {"budget": 1} | REFUSED[message]
    given = {name: pa.table(value) if isinstance(value, dict) else value for name, value in given.items()}
    with pytest.raises((ValueError, TypeError), match=message):
        sa.suggest_rows(fitted[3], **given)


def test_rows_that_cannot_be_read_are_left_out_alone(fitted):
    cube, X, data, model = fitted
    table, wrong = table_of(cube, np.arange(64)), table_of(np.full((1, 6), 7), [9])
    costs = np.random.default_rng(0).uniform(1, 2, 64)
    expected = sa.suggest_rows(model, 5.0, table, costs=costs)
    every = pa.concat_tables([table[:3], wrong, table[3:]])
    found = sa.suggest_rows(model, 5.0, every, costs=np.insert(costs, 3, 0.1))
    assert found.table == expected.table
    assert found.notes[1].startswith("left out of the candidates: 1 of 65 rows; row 4, f: 7 is not among the values")
    for n_costs in (64, 66):
        with pytest.raises(ValueError, match="costs must be 65"):
            sa.suggest_rows(model, 5.0, every, costs=np.ones(n_costs))
    with pytest.raises(ValueError, match=r"none of the measured rows can be read \(1 of 1 rows; row 1, f: 7 is"):
        sa.suggest_rows(model, 3, measured=wrong)
    lacking = pa.concat_tables([data, table_of(X[:1], pa.array([None], data["y"].type))])
    found = sa.suggest_rows(model, 3, measured=lacking)
    assert found.table == sa.suggest_rows(model, 3, measured=data).table
    assert found.notes[2].startswith("left out of the measured rows: 1 of 12 rows; row 12, y: the value is missing")


def test_numbers_classes_and_several_targets_are_refused():
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, 2, 40) for name in "ab"} | {"u": rng.normal(size=40), "y": rng.normal(size=40)}
    data = pa.table(columns | {"z": rng.normal(size=40), "class": rng.choice(["red", "blue"], 40)})
    for target, ignore, message in (
        ("y", ("z", "class"), "'u' holds numbers"),
        ("class", ("u", "y", "z"), "a target of classes"),
        (("y", "z"), ("u", "class"), "2 targets"),
    ):
        result = sa.fit_table(data, target, ignore=ignore, degree=1)
        with pytest.raises(ValueError, match=message):
            result.suggest(2, measured=data)


def test_the_command(fitted, capsys, tmp_path):
    cube, _, _, model = fitted
    saved, rows, out = (tmp_path / name for name in ("m.sparsact", "rows.csv", "next.csv"))
    model.save(saved)
    expected = sa.suggest_rows(model, 3)
    status, told, _ = run(capsys, "suggest", saved, "--n", 3, "--json")
    assert status == 0
    assert json.loads(told) == {"notes": list(expected.notes), "rows": expected.table.to_pylist()}
    told = run(capsys, "suggest", saved, "--n", 3, "--effect", "a,b", "--out", out)[1]
    assert "summed variance of 1 effect" in told
    with out.open(encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [[int(row[name]) for name in NAMES] for row in written] == [
        [row[name] for name in NAMES] for row in sa.suggest_rows(model, 3, effects=[("a", "b")]).table.to_pylist()
    ]
    costs = pa.table({name: cube[:, i] for i, name in enumerate(NAMES)} | {"price": np.arange(1, 65)})
    pyarrow.csv.write_csv(costs, rows)
    told = run(capsys, "suggest", saved, rows, "--budget", 9.5, "--cost", "price", "--goal", "maximum")[1]
    assert "gain: expected improvement on the maximum of y" in told
    assert "price" in told
    status, _, err = run(capsys, "suggest", saved, "--n", 2.5)
    assert status == 2
    assert "a budget of 2.5 is not a number of rows" in err

"""Effects from the reference of a fit: alternating sums of predictions, deviations by definition, every model."""

import json

import numpy as np
import pyarrow as pa
import pytest
from commands import run
from scipy.sparse import csr_array
from scipy.stats import binom

import sparsact as sa
from sparsact.fit.effects import MOST_SETS, Background, reference_effects, seen_pairs
from sparsact.hypercube import characters
from sparsact.learners import CubeGPRegressor, LatentRegressor, LettersRegressor, LowDegreeRegressor
from sparsact.learners.contrasts import contrast_deviations

pytestmark = pytest.mark.usefixtures("few_rivals", "unrendered")
AMINO = list("ACDEFGHIKLMNPQRSTVWY")
WILD = "MKTAY"


def planted(n_rows, n_sites, letters, n_pairs, noise, seed, n_mutations=None):
    """Rows, targets, and effects: of single letters from the wild type, and of pairs beyond these.

    Letters are drawn at random, or ``n_mutations`` of the wild type's are changed. The first letter is the wild type's.
    """
    rng, q = np.random.default_rng(seed), len(letters)
    X = rng.integers(0, q, (n_rows, n_sites))
    if n_mutations:
        keep = rng.random((n_rows, n_sites)).argsort(axis=1) >= n_mutations
        X[keep] = 0
    single = rng.normal(size=(n_sites, q)) * (np.arange(q) > 0)
    pairs = {}
    while len(pairs) < n_pairs:
        i, j = np.sort(rng.choice(n_sites, 2, replace=False))
        a, b = X[rng.integers(n_rows), [i, j]]
        if a and b:
            pairs[(i, a), (j, b)] = 2.0 * rng.normal()
    y = single[np.arange(n_sites), X].sum(axis=1)
    for ((i, a), (j, b)), effect in pairs.items():
        y = y + effect * ((X[:, i] == a) & (X[:, j] == b))
    texts = ["".join(letters[one] for one in row) for row in X]
    table = pa.table({"seq": texts, "y": y + noise * rng.normal(size=n_rows)})
    effects = {((i, a),): single[i, a] for i in range(n_sites) for a in range(1, q)} | pairs
    return table, effects


@pytest.fixture(scope="module")
def fits():
    table, _ = planted(120, 4, "ACGT", 2, 0.1, 0)
    return {
        model: sa.fit_table(table, "y", model=model, folds=2, wild_type="AAAA", degree=degree)
        for model, degree in (("letters", "auto"), ("low-degree", 2))
    }


@pytest.mark.grid
@pytest.mark.parametrize("model", ["letters", "low-degree"])
def test_effects_are_alternating_sums_of_predictions(fits, model, tmp_path, capsys):
    """Also from other references, of a saved model and by the command."""
    result = fits[model]
    result.save(tmp_path / "m.sparsact")

    def f(text):
        return float(result.predict(pa.table({"seq": [text]}))[0])

    def with_changes(text, names):
        return "".join({name[1:-1]: name[-1] for name in names}.get(str(i), own) for i, own in enumerate(text, 1))

    for reference in ("AAAA", "CATG", "A1C:A3G"):
        text = {"A1C:A3G": "CAGA"}.get(reference, reference)
        listed = result.effects_from(reference)
        words = ("inspect", tmp_path / "m.sparsact", "--reference", reference, "--top", 5, "--json")
        for row, other in zip(json.loads(run(capsys, *words)[1])["reference_effects"], listed, strict=False):
            assert row["at_reference"] == pytest.approx(other["at_reference"], abs=1e-5)
        for row in listed[:6]:
            names = row["columns"]
            assert all(name[0] == text[int(name[1:-1]) - 1] for name in names)
            expected = f(with_changes(text, names)) - (f(text) if len(names) == 1 else 0)
            if len(names) == 2:
                expected += f(text) - sum(f(with_changes(text, [name])) for name in names)
            assert row["at_reference"] == pytest.approx(expected, abs=1e-5)
            assert row["low"] < row["at_reference"] < row["high"]
    assert all(term.low is not None for term in result.targets[0].terms)
    (found,) = result.contrast("A1C", "A2G", "A3T")
    assert found["value"] == pytest.approx(f("CATA") - f("AGTA"), abs=1e-5)
    assert found["low"] < found["value"] < found["high"]
    words = ("inspect", tmp_path / "m.sparsact", "--contrast", "A1C", "A2G", "--reference", "A3T")
    assert "A1C against A2G" in run(capsys, *words)[1]
    (loaded,) = json.loads(run(capsys, *words, "--json")[1])["contrasts"]
    assert loaded["value"] == pytest.approx(found["value"], abs=1e-5)
    assert result.contrast("WT", "AAAA")[0]["value"] == 0


def test_the_deviations_of_a_polynomial_are_of_its_ridge_posterior():
    rng = np.random.default_rng(0)
    weights = csr_array(np.array([[1.0, -1.0, 0.0], [0.5, 0.5, -1.0]]))
    for m, n, degree in ((200, 6, 2), (40, 9, 3)):  # by sums of monomials, and by a matrix of rows
        X = rng.choice([-1.0, 1.0], (m, n))
        y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=m)
        model = LowDegreeRegressor(degree, alpha=2.0, domain="cube").fit(X, y)
        points = rng.choice([-1.0, 1.0], (3, n))
        features = characters(X, model.subsets_)
        centred = features - features.mean(axis=0)
        inverse = np.linalg.inv(centred.T @ centred + 2.0 * np.eye(len(model.subsets_)))
        freedom = m - 1 - np.trace(centred @ inverse @ centred.T)
        noise = ((y - model.predict(X)) ** 2).sum() / freedom
        C = weights @ characters(points, model.subsets_)
        found = contrast_deviations(model, points, weights)
        np.testing.assert_allclose(found[:, 0] ** 2, noise * np.diag(C @ inverse @ C.T), rtol=1e-6)


def test_the_deviations_of_a_process_are_of_its_joint_posterior():
    """Against draws: a standard error of 2.2 %, so that eight of them fail in one of 1e12 runs."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (80, 6))
    y = X[:, 0] - X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=80)
    points, weights = np.eye(6, dtype=int)[:4], np.array([[1.0, -1.0, 0, 0], [1, 1, -1, -1.0]])
    model = CubeGPRegressor("product", domain="cube", random_state=0).fit(X, y)
    found = contrast_deviations(model, points, csr_array(weights))
    drawn = weights @ model.sample_y(points, 1_000)
    np.testing.assert_allclose(found[:, 0], drawn.std(axis=1), rtol=0.18)
    latent = LatentRegressor(degree=1, censoring=None, random_state=0).fit(X, y)
    found = contrast_deviations(latent, points[:2], csr_array([[1.0, -1.0]]))
    assert found[0, 0] > latent.standard_errors([(0,)])[0]


@pytest.mark.grid
def test_the_deviations_of_letters_are_of_processes_and_their_kernels():
    """By matrices of all rows, the jackknife of the folds, and the distance from the ensemble."""
    table, _ = planted(150, 3, "ACGT", 1, 0.2, 3)
    model = LettersRegressor(random_state=0).fit(table["seq"].to_pylist(), table["y"].to_numpy())
    texts = np.array([list(one) for one in ("AAA", "CAA", "ACA", "CCA")])
    weights = np.array([[-1.0, 1, 0, 0], [1, -1, -1, 1]])
    found, codes = contrast_deviations(model, texts, csr_array(weights)), model._alphabet.codes(texts)
    score, means, variances = model._ensemble.scores["process"], [], []
    for process in score.models:
        kernel, points = process.system.kernel, process.system.points
        inverse = np.linalg.inv(kernel.covariance(points, points) + np.diag(process.system.noise))
        y = np.linalg.solve(inverse, process.alpha)
        left_out = np.mean((inverse @ y) ** 2 / np.diag(inverse))
        cross = weights @ kernel.covariance(codes, points)
        prior = weights @ kernel.covariance(codes, codes) @ weights.T
        means.append(cross @ process.alpha)
        variances.append(np.diag(prior - cross @ inverse @ cross.T) * max(1.0, left_out))
    unit = score.scale * model._ensemble.unit
    away = weights @ model.predict(texts) - unit * np.mean(means, axis=0)
    jackknife = (len(means) - 1) * np.var(means, axis=0)
    expected = unit**2 * (np.mean(variances, axis=0) + jackknife) + away**2
    np.testing.assert_allclose(found[:, 0] ** 2, expected, rtol=1e-5)


@pytest.mark.grid
def test_sequences_of_any_length_have_effects(tmp_path):
    """55 sites have far more pairs than are evaluated: the planted ones are found, and the map has every letter."""
    table, effects = planted(700, 55, AMINO[:6], 3, 0.2, 0, n_mutations=4)
    result = sa.fit_table(table, "y", degree=1, wild_type="A" * 55)
    assert len(result.targets[0].sites) == 55
    seen = [len(set(column)) for column in zip(*table["seq"].to_pylist(), strict=True)]
    assert [len(of_site) for of_site in result.targets[0].letter_effects] == seen
    assert all(term.low is not None for term in result.targets[0].terms)
    rows = result.encoding.codes(result.encoding.columns[0].encode(table["seq"].combine_chunks(), 0))
    background = Background.of_rows(result.model, result.encoding, rows, None)
    pairs = seen_pairs(background, rows, table["y"].to_numpy())
    assert len(pairs) <= MOST_SETS
    strongest = [pair for pair, effect in effects.items() if len(pair) == 2 and abs(effect) > 1]
    assert strongest
    assert set(strongest) <= set(pairs[:100])
    assert len(reference_effects(result.model, result.encoding, top=7)) == 7
    result.report(tmp_path / "page.html")
    assert "Variance by how many sites act together" in (tmp_path / "page.html").read_text()


TABLES = {
    "bits": {"a": [0, 1, 1, 0, 1] * 16, "b": [0, 0, 1, 1] * 20, "c": [1, 0, 0, 1, 1, 0, 1, 0] * 10},
    "words": {"a": ["wt", "mut", "mut"] * 26 + ["wt", "mut"], "b": ["-", "+"] * 40},
    "strings of bits": {"g": [f"{i * 7 % 16:04b}" for i in range(80)]},
    "letters": {"g": ["".join(AMINO[i // k % 4] for k in (1, 4, 16)) for i in range(80)]},
    "two letters": {"g": ["".join("AG"[(i >> k) & 1] for k in range(4)) for i in range(80)]},
    "mutations": {"m": [f"M1{AMINO[i % 4]}:K2{AMINO[i % 3]}" for i in range(80)]},
    "categories": {"colour": ["red", "blue", "green", "tan"] * 20, "b": [0, 1, 1, 0, 1] * 16},
    "numbers": {"x": np.linspace(0, 3, 80) ** 2, "b": [0, 1, 1, 0, 1] * 16},
}
MODELS = ("auto", "low-degree", "sparse", "gp", "letters", "latent", "lsh", "network", "ensemble")


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("target", ["numbers", "classes"])
def test_every_model_of_every_table_can_be_inspected(kind, model, target, tmp_path, capsys):
    """Or its fit is refused in one sentence."""
    y = np.random.default_rng(0).normal(size=80) + (np.arange(80) % 3)
    values = y if target == "numbers" else ["low" if one < 1 else "high" for one in y]
    table = pa.table(TABLES[kind] | {"y": values})
    try:
        result = sa.fit_table(table, "y", model=model, folds=2)
    except ValueError as refused:
        if "\n" in str(refused) or model == "auto":
            raise
        return
    result.save(tmp_path / "m.sparsact")
    status, out, err = run(capsys, "inspect", tmp_path / "m.sparsact")
    assert (status, err) == (0, "")
    assert out
    found = json.loads(run(capsys, "inspect", tmp_path / "m.sparsact", "--json")[1])
    assert found["kind"] == type(result.model).__name__
    if kind != "numbers":
        assert reference_effects(result.model, result.encoding, top=1)


@pytest.mark.slow
@pytest.mark.parametrize("n_mutations", [None, 3])
def test_intervals_hold_what_was_planted(n_mutations):
    """Singles and pairs in eight tables: each is held with probability .95 or more; errors in a table move together.

    Were intervals right and independent, fewer than 88 % of 8 times 60 would be held in one of 1e9 runs, and 75 % of
    the 60 of a table in one of 5e6.
    """
    held: list[bool] = []
    for seed in range(8):
        table, effects = planted(500, 8, AMINO[:6], 4, 0.5, seed, n_mutations)
        result = sa.fit_table(table, "y", model="letters", folds=2, wild_type="A" * 8)
        names = {tuple(f"A{i + 1}{AMINO[a]}" for i, a in changes): effect for changes, effect in effects.items()}
        for term in result.targets[0].terms[:60]:
            held.append(term.low <= names.get(term.subset, 0.0) <= term.high)
        assert np.mean(held[-60:]) > 0.75
    assert binom.cdf(0.88 * len(held), len(held), 0.95) < 1e-8
    assert np.mean(held) > 0.88


def test_a_reference_is_any_long_sequence():
    """Longer than the names of files may be."""
    rng = np.random.default_rng(0)
    texts = ["A" * 297 + "".join(row) for row in rng.choice(list("ACG"), (60, 3))]
    result = sa.fit_table(pa.table({"seq": texts, "y": rng.normal(size=60)}), "y", model="low-degree", degree=1)
    ((found),) = result.contrast(texts[0], "A" * 297 + "GGG")
    points = result.predict(pa.table({"seq": [texts[0], "A" * 297 + "GGG"]}))
    assert found["value"] == pytest.approx(points[0] - points[1])


@pytest.mark.grid
def test_a_mutation_changes_the_letter_that_is_there(fits):
    for words in (("C1G", "WT"), ("A2G", "WT", "A2C")):
        with pytest.raises(ValueError, match=r"is there before the change; name the change from that, or a background"):
            fits["low-degree"].contrast(*words)
    assert fits["low-degree"].contrast("C2G", "WT", "A2C")[0]["value"] != 0

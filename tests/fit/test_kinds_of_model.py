"""Every kind of model through fit, save, load, predict by name, inspect and report; what its terms add up to."""

import json
import re
from dataclasses import fields
from inspect import signature
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from commands import run
from grids import few_of

import sparsact as sa
from sparsact.cli.fit import fit as command
from sparsact.datasets import open_table
from sparsact.fit.candidate import CandidateKind, Facts, Fit
from sparsact.fit.candidates import candidates
from sparsact.fit.held_out import HeldOutScores
from sparsact.fit.options import OPTIONS, FitOptions

RNG = np.random.default_rng(3)
BITS = pd.DataFrame(RNG.integers(0, 2, (90, 4)), columns=list("abcd"))
LETTERS = pd.DataFrame({f"s{i}": RNG.choice(list("ACG"), 90) for i in range(2)})
NUMBERS = pd.DataFrame(10 + 5 * RNG.normal(size=(90, 3)), columns=list("uvw"))
NOISE = 0.05 * RNG.normal(size=90)


def of_bits():
    return BITS.assign(y=3 + 2 * BITS.a - BITS.b * BITS.c + NOISE)


def of_letters():
    return LETTERS.assign(y=1.0 * (LETTERS.s0 == "A") + (LETTERS.s1 == "G") + NOISE)


def of_numbers():
    return NUMBERS.assign(y=NUMBERS.u - 2 * NUMBERS.w + NOISE)


def of_floors():
    return BITS.assign(y=np.maximum(1 + 2 * BITS.a - BITS.b * BITS.c, 0.5) + NOISE * (BITS.a == 1))


KINDS = {
    "low-degree": (of_bits, {"model": "low-degree", "degree": 2}),
    "numbers": (of_numbers, {"model": "low-degree", "degree": 1}),
    "sparse": (of_bits, {"model": "sparse"}),
    "gp": (of_bits, {"model": "gp"}),
    "letters": (of_letters, {"model": "letters"}),
    "latent": (of_floors, {"model": "latent", "censor": (0.5, None)}),
    "lsh": (of_numbers, {"model": "lsh"}),
    "network": (of_bits, {"model": "network"}),
    "ensemble": (of_bits, {"model": "ensemble"}),
}
QUICK = [kind for kind in KINDS if kind not in ("latent", "network")]  # these two take a second


REFUSED = {  # a table and options that a kind refuses, or that it leaves to others
    "lsh": (of_numbers, {"groups": "u"}),
    "sparse": (of_numbers, {}),
    "lasso": (of_letters, {}),
    "gp": (of_numbers, {}),
    "letters": (of_bits, {}),
    "latent": (of_numbers, {}),
    "network": (of_letters, {}),
    "ensemble": (of_numbers, {}),
}
NEVER_REFUSE = {"lasso", "network", "trees"}


def test_the_matrix_holds_every_kind():
    """A kind that is in no option, lasso polynomials and trees, is compared in default fits."""
    by_name = {options["model"] for _, options in KINDS.values()}
    assert by_name == set(OPTIONS["model"]) - {"auto"}
    assert set(candidates()) == by_name | {"lasso", "trees"} == set(REFUSED) | {"low-degree", "trees"}
    ranks = [each.rank for each in candidates().values() if each.rank is not None]
    assert sorted(ranks) == list(range(len(ranks)))
    assert candidates()["trees"].rank is None


@pytest.mark.parametrize("kind", REFUSED)
def test_a_kind_that_does_not_suit_a_table_says_what_does(kind):
    table, options = REFUSED[kind]
    opened = open_table(table(), "y", domain="auto")
    facts = Facts(opened, FitOptions(("y",), **options), n_rows=10**6)
    refusal, each = candidates()[kind].refusal(facts), candidates()[kind]
    assert not each.competes(facts)
    assert bool(refusal) == (kind not in NEVER_REFUSE)
    assert not refusal or (each.name in refusal and re.search(r"; (choose|leave) .*\.$", refusal))


class OneColumn(CandidateKind):
    """A kind that only this test knows: least squares on the first column."""

    kind, name, rank, is_polynomial = "one column", "a model of one column", -1, True

    def refusal(self, facts):
        return "" if facts.of_bits else f"{self.name} needs bits; choose model low-degree."

    def fit(self, run):
        X, y, folds = run.sample.rows()

        def without(fold):
            return sa.LowDegreeRegressor(1, subsets=[(0,)]).fit(X[folds != fold], y[folds != fold])

        return Fit(without(-1), HeldOutScores.of(without, run.table.encoding.targets[0], X, y, folds))


@pytest.mark.usefixtures("few_rivals")
@pytest.mark.grid
def test_a_new_kind_is_a_class_and_one_line(monkeypatch, tmp_path):
    """It is refused, fitted, chosen, saved, loaded and reported, and nothing else knows of it."""
    monkeypatch.setitem(candidates(), OneColumn.kind, OneColumn())
    numbers = sa.fit_table(of_numbers(), "y", folds=2)
    assert OneColumn.kind not in {model.kind for model in numbers.choices.models}
    data = BITS.assign(y=3 + 2 * BITS.a + NOISE)
    result = sa.fit_table(data, "y", folds=2)
    assert (result.choices.kind, result.choices.low_degree.degree) == (OneColumn.kind, 1)
    assert result.targets[0].terms[0].label == "a"
    result.save(tmp_path / "m.sparsact")
    found = sa.predict_table(sa.load(tmp_path / "m.sparsact"), BITS)["y"].to_numpy()
    np.testing.assert_array_equal(found, result.predict(data))
    np.testing.assert_allclose(found, 3 + 2 * BITS.a, atol=0.05)
    result.report(tmp_path / "r.html")
    assert OneColumn.name in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.grid
@pytest.mark.usefixtures("few_rivals")
def test_kinds_that_are_only_compared_are_fitted_by_default():
    result = sa.fit_table(of_bits(), "y", folds=2)
    compared = {model.kind for model in result.choices.models}
    assert {"lasso", "trees", "sparse", "gp", "low-degree"} <= compared
    assert result.choices.kind != "trees"


def test_the_options_match_the_call_and_the_command():
    call, typed = signature(sa.fit_table).parameters, signature(command).parameters
    for option in fields(FitOptions)[1:]:
        assert call[option.name].default == option.default, option.name
        if option.name not in ("encoding", "held_out_rows", "explain"):
            assert (typed[option.name].default or ()) == (option.default or ()), option.name


@pytest.fixture(scope="module", params=few_of(KINDS, QUICK))
def fitted(request):
    table, options = KINDS[request.param]
    data = table()
    return sa.fit_table(data, "y", folds=2, **options), data


def test_a_saved_model_predicts_by_name_or_refuses(fitted, tmp_path):
    result, data = fitted
    result.save(tmp_path / "m.sparsact")
    model, columns = sa.load(tmp_path / "m.sparsact"), [name for name in data if name != "y"]
    expected = result.predict(data)
    for names in (columns, columns[::-1]):
        for one in (model, result.model):
            with pytest.raises(ValueError, match="named columns"):
                one.predict(data[names])
        found = sa.predict_table(model, data[names])
        np.testing.assert_array_equal(found["y"].to_numpy(), expected)


@pytest.mark.grid
def test_its_page_is_drawn(fitted, tmp_path):
    fitted[0].report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("<svg") > 2


@pytest.mark.usefixtures("unrendered")
def test_the_commands_and_the_page_say_what_the_result_says(fitted, tmp_path, capsys):
    result, data = fitted
    result.save(tmp_path / "m.sparsact")
    data.drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    status, out, err = run(capsys, "predict", tmp_path / "m.sparsact", tmp_path / "new.csv")
    assert (status, err) == (0, "")
    assert pd.read_csv(StringIO(out))["y"].tolist() == pytest.approx(result.predict(data).tolist(), rel=1e-12)
    status, out, err = run(capsys, "inspect", tmp_path / "m.sparsact")
    assert (status, err) == (0, "")
    assert type(result.model).__name__ in out
    status, out, err = run(capsys, "inspect", tmp_path / "m.sparsact", "--json")
    assert (status, err) == (0, "")
    told, terms = json.loads(out), [[list(term.subset), term.effect] for term in result.targets[0].listed(20)]
    assert told["kind"] == type(result.model).__name__
    if result.choices.kind not in ("letters", "lsh", "network"):  # without terms, or by other frequencies of letters
        assert [[term["columns"], pytest.approx(term["effect"])] for term in told["targets"][0]["terms"]] == terms
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["kind"] == result.choices.kind
    result.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert result.verdict.partition(" not seen")[0] in page
    constant = result.targets[0].constant
    assert (constant is None) == (result.choices.kind == "lsh")
    assert ("The constant, the mean over all settings" in page) == (constant is not None and not result.of_letters)


def test_the_terms_add_up_to_the_function(fitted):
    result, data = fitted
    if result.choices.kind in ("letters", "lsh", "network", "latent") or result.domain == "real":
        return  # effects of letters, of the polynomial beside, of the latent, or of standardised columns
    total = np.zeros(len(data))
    for _, row in result.to_frame().iterrows():
        total += row["coefficient"] * np.prod(1 - 2 * data[list(row["columns"])].to_numpy(), axis=1)
    np.testing.assert_allclose(total, result.predict(data), atol=1e-9)


def test_the_constant_is_the_mean_over_all_settings():
    """By hand: 3 + 2 a - b c has the mean 3 + 1 - 1/4 over all bits."""
    exact = BITS.assign(y=3 + 2 * BITS.a - BITS.b * BITS.c)
    result = sa.fit_table(exact, "y", model="low-degree", degree=2, alpha=0.0)
    assert result.targets[0].constant.effect == pytest.approx(3.75)
    assert "not significant" not in str(result.targets[0].constant.in_words("+.4g"))
    assert result.to_dict()["targets"][0]["terms"][-1]["columns"] == []
    assert result.to_dict()["targets"][0]["terms"][-1]["effect"] == pytest.approx(3.75)


@pytest.mark.parametrize("columns", [NUMBERS, BITS], ids=["numbers", "bits"])
def test_scores_that_no_fold_has_are_not_available(columns, tmp_path):
    """Folds of one row have no variance that could be explained."""
    data = columns.iloc[[0, 1, 4]].reset_index(drop=True).assign(y=[0.1, 0.7, -3.7])
    result = sa.fit_table(data, "y", folds=3, model="low-degree", degree=1)
    assert np.isnan(result.scores.r2["y"].mean)
    assert not result.learned
    assert "R² n/a (every held-out fold has one row or equal targets" in result.verdict
    found = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert found["targets"][0]["r2"] is None
    result.report(tmp_path / "r.html")

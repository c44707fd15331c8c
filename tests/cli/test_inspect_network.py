"""``sparsact inspect`` of networks: what it finds is what the library says, in words, as JSON and in the report."""

import json

import numpy as np
import pytest
from commands import run

import sparsact as sa
from sparsact.constructions import indexing, parity, random_network
from sparsact.fourier import Spectrum
from sparsact.fourier.folding import folding_matrix


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("networks")
    indexing(3).save(path / "index.sparsact")
    random_network(60, 9, 2, rng=np.random.default_rng(0)).save(path / "wide.sparsact")
    parity((0, 1), 7).save(path / "parity.sparsact")
    sa.SparselyActivatedNetwork([], np.zeros((0, 3)), []).save(path / "empty.sparsact")
    return path


def inspected(capsys, *words):
    status, out, err = run(capsys, "inspect", *words, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_a_small_network_is_known_exactly(capsys, folder):
    told, net = inspected(capsys, folder / "index.sparsact"), indexing(3)
    spectrum = Spectrum.of(net)
    assert told["kind"] == "SparselyActivatedNetwork"
    assert (told["n_units"], told["n_inputs"]) == (8, 11)
    assert told["scale"] == {"W": net.scale().W, "B": net.scale().B}
    assert (told["proved"], told["fewest"], told["upper"]) == (True, 1, 1)
    np.testing.assert_allclose(told["degrees"]["weights"], spectrum.weight_by_degree()[:5], atol=1e-12)
    assert told["degrees"]["errors"] is None
    assert told["average_sensitivity"] == pytest.approx(spectrum.total_influence())
    assert told["sensitivity_error"] is None
    assert told["activity"]["shares"] == [0.5, 0.5]


def test_a_wide_network_is_estimated_and_says_so(capsys, folder):
    """Folded weights of 60 inputs against an independent, larger sample: failure probability below 1e-4."""
    told = inspected(capsys, folder / "wide.sparsact", "--random-state", 1)
    assert told["degrees"]["how"].startswith("estimated: 40 random foldings of the inputs into 12 groups")
    assert told["sensitivity_error"] > 0
    net = random_network(60, 9, 2, rng=np.random.default_rng(0))
    rng = np.random.default_rng(2)
    again = sa.fourier.estimate_weight_by_degree(net, n_samples=100, rng=rng)
    weights, errors = (np.array(told["degrees"][name]) for name in ("weights", "errors"))
    assert (np.abs(weights - again.value) < 6 * np.hypot(errors, again.standard_error)).all()
    average = sa.fourier.estimate_average_sensitivity(net, n_samples=2000, rng=rng)
    apart = abs(told["average_sensitivity"] - average.value)
    assert apart < 6 * np.hypot(told["sensitivity_error"], average.standard_error)
    assert weights.shape == folding_matrix(12, 1)[0].shape


def test_units_that_read_few_inputs_have_an_exact_spectrum_at_any_n(capsys, folder):
    told = inspected(capsys, folder / "parity.sparsact")
    assert told["n_inputs"] == 49
    assert told["degrees"]["how"] == "exact"
    assert (told["fewest"], told["upper"]) == (1, 1)


def test_a_network_without_units_is_inspected(capsys, folder):
    told = inspected(capsys, folder / "empty.sparsact")
    assert (told["upper"], told["average_sensitivity"], told["degrees"]["weights"]) == (0, 0.0, [0.0])


def test_words_and_report_tell_the_same(capsys, folder, tmp_path):
    report = tmp_path / "report.html"
    status, out, _ = run(capsys, "inspect", folder / "wide.sparsact", "--report", report)
    assert status == 0
    assert "9 ReLU units on 60 inputs" in out
    assert "at most 2 of 9 units are active" in out.replace("\n", " ").lower()
    page = report.read_text()
    assert "At most 2 of 9 units are active at any point of {-1,1}^60" in page
    assert page.count("<svg ") == 2
    assert "Estimated: inputs with random signs" in page
    assert str(tmp_path) not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_report_of_a_learned_polynomial_is_refused(capsys, tmp_path):
    X = sa.hypercube.points(4)
    sa.LowDegreeRegressor().fit(X, X[:, 0]).save(tmp_path / "model.sparsact")
    status, _, err = run(capsys, "inspect", tmp_path / "model.sparsact", "--report", tmp_path / "r.html")
    assert (status, err.count("\n")) == (2, 1)
    assert "sparsact fit TABLE --report" in err


def test_the_place_of_the_report_is_checked_first(capsys, folder, tmp_path):
    status, _, err = run(capsys, "inspect", folder / "index.sparsact", "--report", tmp_path / "no" / "r.html")
    assert (status, err.count("\n")) == (2, 1)
    assert "make it first" in err

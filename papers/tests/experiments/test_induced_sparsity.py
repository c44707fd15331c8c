"""Sparsity that training brings: rules on made-up rows, and a measurement of a made-up text."""

import numpy as np
import pytest
from reproduced import made_up

from sparsact_papers.common import characters, real_data
from sparsact_papers.experiments import Rows, Scale
from sparsact_papers.practice.induced_sparsity import EXPERIMENT, MODELS, PLAIN, STRONG, TOP_K, WEAK

SIZES = {"n_layers": 2, "hidden": 100}
DENSITIES = {PLAIN: 0.4, WEAK: 0.1, STRONG: 0.05, TOP_K: 0.0625}


def row(model, seed, *, density, loss=2.0, dead=1, released=2.01):
    values = {
        "at": [0, 7],
        "losses": [4.0, loss],
        "densities": [[0.5, 0.5], [0.9 * density, 1.1 * density]],
        "dead": [[0, 0], [dead, 0]],
        "rare": [[0, 3], [2, 1]],
        "released_loss": released,
    }
    return made_up(EXPERIMENT, {"model": model, "seed": seed, **SIZES}, values)


def rows(changed=()):
    """Three seeds that differ far more than the models of one seed do; changed are density, loss... of a model."""
    found = []
    for seed in range(3):
        for model, density in DENSITIES.items():
            one = {"density": density, "loss": 2.0, "released": 2.01} | dict(changed).get(model, {})
            found.append(row(model, seed, **one | {name: one[name] + seed for name in ("loss", "released")}))
    return Rows(found)


def test_the_frames_hold_the_numbers_of_the_rows():
    density, loss, units = (chart.frame(rows()) for chart in EXPERIMENT.charts)
    place = [*zip(*(density[name] for name in ("panel", "series", "step")), strict=True)].index((WEAK, "layer 2", 7))
    assert density["density"][place] == pytest.approx(0.11)
    place = [*zip(loss["series"], loss["step"], strict=True)].index((TOP_K, 7))
    assert (loss["loss"][place], loss["low"][place], loss["high"][place]) == (3.0, 2.0, 4.0)
    shares = dict(
        zip(zip(*(units[name] for name in ("panel", "series", "step")), strict=True), units["share"], strict=True)
    )
    assert shares["off for all", PLAIN, 7] == 1 / 200
    assert shares["on for less than 1 in 1000", PLAIN, 7] == 3 / 200


@pytest.mark.parametrize("model", MODELS)
def test_a_measurement_tells_every_layer_and_is_repeated_exactly(short_text, model):
    task = {"model": model, **characters.chosen(Scale.SMOKE, 0), "steps": 20}
    first, again = (EXPERIMENT.measure(**task) for _ in range(2))
    assert first == again
    assert first["at"] == list(range(0, 21, 2))
    assert np.shape(first["densities"]) == np.shape(first["dead"]) == np.shape(first["rare"]) == (11, 2)
    assert first["n_inputs"] == 4 * 16
    kept = first["losses"][-1] == first["released_loss"]
    assert kept == (model != TOP_K)
    if model == TOP_K:
        assert np.max(first["densities"]) <= 4 / 64 < min(first["released_density"])


def test_models_of_a_seed_start_alike(short_text):
    task = characters.chosen(Scale.SMOKE, 1) | {"steps": 1}
    starts = {model: EXPERIMENT.measure(model=model, **task)["losses"][0] for model in (PLAIN, WEAK, STRONG)}
    assert len(set(starts.values())) == 1


def test_what_is_missing_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARSACT_DATA", str(tmp_path))
    monkeypatch.setattr(real_data, "find_spec", lambda name: name)
    assert "no text/tinyshakespeare.txt" in EXPERIMENT.unmet()
    monkeypatch.setattr(real_data, "find_spec", lambda name: None)
    assert 'pip install "sparsact[torch]"' in EXPERIMENT.unmet()

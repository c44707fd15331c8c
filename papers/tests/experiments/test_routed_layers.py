"""Feed-forward layers of one number of active units: what they cost, how they train, and rules on made-up rows."""

import pytest
from reproduced import made_up

from sparsact_papers.experiments import Outcome, Rows, Scale
from sparsact_papers.practice import routed_layers
from sparsact_papers.practice.routed_layers import (
    DENSE,
    EXPERIMENT,
    IMAGES,
    LEARNED,
    LONG,
    LSH,
    MODELS,
    TEXT,
    TOP_2,
    WIDE,
)

torch = pytest.importorskip("torch")


@pytest.fixture
def few_images(monkeypatch):
    from sparsact_papers.training import LabelledImages

    draw = torch.Generator().manual_seed(0)
    images = torch.randint(256, (40, 3, 32, 32), generator=draw, dtype=torch.uint8)
    labels = torch.randint(10, (40,), generator=draw)
    made = LabelledImages(images[:29], labels[:29], images[29:], labels[29:])
    monkeypatch.setattr(routed_layers, "images", lambda n_train: made)


def test_every_layer_has_as_many_units_on_and_all_but_dense_as_many_in_all():
    """Width 10 and 12 units on, each a product up and one down."""
    from sparsact_papers.training import feed_forward
    from sparsact_papers.training.feed_forward import KINDS

    assert set(KINDS) == set(MODELS[IMAGES]) > set(MODELS[TEXT])
    for kind in KINDS:
        layer = feed_forward(kind, 10, 12, n_ids=5)
        on = 48 if kind == WIDE else 12
        assert layer.flops().active == on * 4 * 10, kind
        units = (
            sum(p.numel() for name, p in layer.named_parameters() if "up_weight" in name or "up.weight" in name) // 10
        )
        assert units == (12 if kind == DENSE else 48), kind
    with pytest.raises(ValueError, match="2 experts on"):
        feed_forward(TOP_2, 10, 13, n_ids=5)
    with pytest.raises(ValueError, match="must be one of dense"):
        feed_forward("top-3", 10, 12, n_ids=5)


@pytest.mark.parametrize(("data", "at"), [(IMAGES, [0, 2, 4]), (TEXT, [0, 2, 4]), (LONG, [0, 10, 20])])
def test_a_measurement_is_repeated_exactly_and_learns(short_text, few_images, data, at):
    for model in MODELS[data]:
        task = next(p for p in EXPERIMENT.parameters(Scale.SMOKE) if (p["data"], p["model"]) == (data, model))
        first, again = (EXPERIMENT.measure(**task) for _ in range(2))
        assert first == again, model
        assert first["at"] == at
        assert first["losses"][-1] < first["losses"][0]
        assert first["active_flops"] == 4 * 16 * (32 if model == WIDE else 8)


def test_a_vision_transformer_resumes_with_the_same_bits(few_images, tmp_path):
    """Experts, biases and checkpoints: with the pause or without."""
    from sparsact_papers.training import Recipe, train

    def made():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            return routed_layers.network(IMAGES, "biases", width=8, n_layers=1, active=4, context=0)

    class StopError(Exception):
        pass

    def stop(done, left=iter(range(4))):  # noqa: B008 - one for this test
        if next(left, None) is None:
            raise StopError

    whole, cut, resumed = made(), made(), made()
    recipe = Recipe(6, 5, 1, warmup=1, evaluate_every=2, windows=7)
    rows = train(whole, routed_layers.images(29), recipe)
    with pytest.raises(StopError):
        train(cut, routed_layers.images(29), recipe, checkpoint=tmp_path, progress=stop)
    assert train(resumed, routed_layers.images(29), recipe, checkpoint=tmp_path) == rows
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    assert whole.blocks[0].feed_forward.routing.bias.any()


def test_gains_are_paired_by_seed():
    accuracies = {DENSE: 50.0, TOP_2: 52.0, LSH: 49.0, LEARNED: 48.0}
    rows = Rows(
        made_up(
            EXPERIMENT,
            {"data": IMAGES, "model": model, "seed": seed},
            {
                "accuracies": [10.0, last + 9 * seed + 0.1 * (seed % 2) * (model == TOP_2)],
                "losses": [2.0, 1.0],
                "active_flops": 9216,
                "routing_flops": 0 if model == DENSE else 800,
            },
        )
        for seed in range(4)
        for model, last in accuracies.items()
    )
    assert routed_layers.gains(rows, IMAGES, TOP_2, DENSE) == pytest.approx([2.0, 2.1, 2.0, 2.1])
    verdicts = {claim.name: claim.verdict(rows) for claim in EXPERIMENT.claims}
    assert verdicts["gates-images"].outcome is Outcome.HOLDS
    assert "paired standard deviation 0.0577" in verdicts["gates-images"].measured
    assert "10,016 against 9,216 operations a token" in verdicts["lsh-images"].measured
    assert verdicts["lsh-images"].outcome is Outcome.DOES_NOT_HOLD
    assert verdicts["directions-images"].outcome is Outcome.DOES_NOT_HOLD
    assert verdicts["experts-images"].outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(("last", "outcome"), [(1.99, Outcome.HOLDS), (1.9, Outcome.DOES_NOT_HOLD)])
def test_a_curve_has_settled_that_falls_by_less_than_a_percent(last, outcome):
    """From 2 at four fifths of the steps, between two evaluations."""
    rows = Rows(
        made_up(EXPERIMENT, {"data": LONG, "model": model, "seed": seed}, {"at": [0, 3, 5], "losses": [3.5, 2.5, last]})
        for seed in range(3)
        for model in MODELS[LONG]
    )
    halfway = Rows(row.with_values(losses=[3.5, 4 - last, last]) for row in rows)
    (claim,) = (one for one in EXPERIMENT.claims if one.name == "settled")
    assert claim.verdict(halfway).outcome is outcome
    assert claim.verdict(rows).outcome is Outcome.DOES_NOT_HOLD


@pytest.mark.parametrize(("x", "at"), [("step", [2, 4]), ("work", [2 * 10_016 / 1e6, 4 * 10_016 / 1e6])])
def test_a_curve_is_drawn_by_steps_and_by_operations(x, at):
    values = {"at": [0, 2, 4], "accuracies": [9.0, 10.0, 30.0], "active_flops": 9216, "routing_flops": 800}
    rows = Rows([made_up(EXPERIMENT, {"data": IMAGES, "model": TOP_2, "seed": 0}, values)])
    frame = next(chart for chart in EXPERIMENT.charts if chart.name == f"accuracy-{x}").frame(rows)
    assert (frame[x], frame["value"]) == (pytest.approx(at), [10, 30])
    assert not next(chart for chart in EXPERIMENT.charts if chart.name == f"loss-{x}").frame(rows)["value"]

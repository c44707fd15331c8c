"""Experts and memories at equal cost: what a token uses, counted by gradients; training of tables; the rule."""

from pathlib import Path

import pytest
from reproduced import made_up
from scipy import stats

from sparsact_papers.common import characters
from sparsact_papers.experiments import Outcome, Rows, Scale, Store
from sparsact_papers.practice.memory_allocation import (
    ALONE,
    DENSE,
    EXPERIMENT,
    EXPERTS,
    HALF,
    LEAST_RATE,
    MIXED,
    MODELS,
    OFF,
    ON,
    QUARTER,
    RATES,
    SIZES,
    TUNED_ON,
    Sizes,
    costs,
    deciding,
)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("short_text")
KEPT = Path(__file__).parents[3] / "results" / "reproduction"
TASKS = {task["model"]: task for task in EXPERIMENT.parameters(Scale.SMOKE) if task["seed"] == 1}
SMALL = {"width": 12, "n_layers": 3, "active": 26, "context": 7}


def of_scale(model, scale):
    sizes = {name: SIZES[scale][name] for name in SMALL}
    return costs(Sizes.of(model, **sizes).network(0, "meta"))


@pytest.mark.parametrize("model", [model for model in MODELS if model != EXPERTS])
def test_all_models_cost_as_much_and_have_as_many_parameters_within_two_percent(model):
    """But dense, which has none that a token does not use."""
    found, wanted = of_scale(model, Scale.FULL), of_scale(EXPERTS, Scale.FULL)
    for name in ("flops", "active_parameters", "inactive_parameters"):
        if (model, name) != (DENSE, "inactive_parameters"):
            assert found[name] == pytest.approx(wanted[name], rel=0.02), name
    kind, share = MODELS[model]
    assert found["memory_share"] == pytest.approx(share if kind else 0, abs=0.03)
    assert (found["inactive_parameters"] == 0) is (model == DENSE)


@pytest.mark.parametrize("model", MODELS)
def test_costs_count_what_has_a_gradient_at_one_token(model):
    """Experts and rows without a gradient are inactive; a product of matrices is two operations a parameter."""
    from sparsact.layers import HashMemory, MixtureOfExperts
    from sparsact.layers.memory import Memory

    made = Sizes.of(model, **SMALL).network(3)
    ids = torch.tensor([[4, 0, 6, 1, 5]])
    inactive = products = 0
    for block in made.blocks:
        block(torch.randn(1, 5, 12), ids)[0, -1].sum().backward()
        for module in block.feed_forward.modules():
            own = list(module.parameters(recurse=False))
            if isinstance(module, MixtureOfExperts):
                off = int((module.down_bias.grad.abs().sum(1) == 0).sum())
                inactive += off * sum(p[0].numel() for p in own)
                assert len(module.down_bias) - off == ON
                products += ON * (module.up_weight[0].numel() + module.down_weight[0].numel())
                products += module.routing.gate.numel()
            elif isinstance(module, Memory):
                off = int((module.values.grad.abs().sum(1) == 0).sum())
                inactive += off * 12
                products += (len(module.values) - off) * 12
                products += (module.key_weight if isinstance(module, HashMemory) else module.query_weight).numel()
                products += sum(p.numel() for p in module.routing.parameters())
            elif isinstance(module, torch.nn.Linear):
                products += module.weight.numel()
    found = costs(made)
    assert found["inactive_parameters"] == pytest.approx(inactive, abs=4 * 12)  # heads may read one row twice
    assert found["active_parameters"] + found["inactive_parameters"] == sum(p.numel() for p in made.parameters())
    assert 2 * products <= found["flops"] + 4 * 12 <= 2.2 * products  # hashes, norms and the choice come on top


def test_experts_alone_have_the_sizes_given_and_a_memory_grows_with_its_share():
    sizes = Sizes.of(EXPERTS, **SMALL)
    assert (sizes.hidden, sizes.n_experts, sizes.n_rows) == (13, ON + OFF, 0)
    assert Sizes.of(DENSE, **SMALL).n_experts == Sizes.of(ALONE, **SMALL).n_experts == ON
    assert Sizes.of(QUARTER, **SMALL).n_rows < Sizes.of(HALF, **SMALL).n_rows < Sizes.of(ALONE, **SMALL).n_rows


@pytest.mark.parametrize("model", MODELS)
def test_a_measurement_is_repeated_exactly_and_learns(model, monkeypatch):
    from sparsact_papers.training import CharacterText

    monkeypatch.setattr(characters, "text", lambda: CharacterText.of("to be or not to be, that is the question. " * 9))
    first, again = (EXPERIMENT.measure(**TASKS[model]) for _ in range(2))
    assert first.pop("tokens_per_second") > 0 < again.pop("tokens_per_second")
    assert first == again
    assert first["losses"][-1] < first["losses"][0]


@pytest.mark.parametrize("model", [HALF, ALONE, "product keys, 0.5"])
def test_no_token_reads_a_later_one_and_a_memory_is_added(model):
    made = Sizes.of(model, **SMALL).network(2).eval()
    layer = made.blocks[1].feed_forward
    with torch.no_grad():
        layer.memory.values.normal_(generator=torch.Generator().manual_seed(0))
        ids, x = torch.tensor([[1, 4, 2, 6, 0]]), torch.randn(1, 5, 12)
        changed = ids.clone()
        changed[0, 3:] = torch.tensor([5, 3])
        assert torch.allclose(made(ids)[:, :3], made(changed)[:, :3], atol=1e-6)
        assert not torch.allclose(made(ids)[:, 3:], made(changed)[:, 3:], atol=1e-3)
        both = layer(x, route_by=ids)
        layer.memory.values.zero_()
        assert torch.allclose(layer(x, route_by=ids), layer.feed_forward(x), atol=1e-6)
        assert not torch.allclose(both, layer.feed_forward(x), atol=1e-2)


def test_a_table_has_five_times_the_rate_and_no_decay():
    """Adam's first step moves whatever has a gradient by the rate."""
    from sparsact_papers.training import Recipe, train

    made = Sizes.of(ALONE, **SMALL).network(1)
    memory = made.blocks[1].feed_forward.memory
    with torch.no_grad():
        memory.values.fill_(0.5)
    scale = made.norm.weight.detach().clone()
    train(made, characters.text(), Recipe(1, 2, 7, learning_rate=1e-3, warmup=0, windows=2))
    moved = (memory.values.detach() - 0.5).abs()
    assert moved.max().item() == pytest.approx(5e-3, rel=1e-3)
    assert (moved.amax(1) == 0).any()  # a row that no token read keeps all of its values
    assert (made.norm.weight - scale).abs().max().item() == pytest.approx(1e-3, rel=1e-2)


def with_gains(**spread):
    """Rows of ten seeds in which a model is better than experts alone by a mean gain, with a spread of its own."""
    return Rows(
        made_up(
            EXPERIMENT,
            {"model": model, "seed": seed},
            {
                "losses": [
                    3.0,
                    2.0 + seed - spread["gain"].get(model, 0.0) - spread["noise"].get(model, 0.01) * (seed % 2 - 0.5),
                ]
            },
        )
        for seed in [*range(10), TUNED_ON]
        for model in MODELS
    )


@pytest.mark.parametrize(
    ("gain", "outcome"),
    [
        ({HALF: 0.1, QUARTER: -0.1}, Outcome.HOLDS),
        (dict.fromkeys(MIXED, -0.1), Outcome.DOES_NOT_HOLD),
        ({HALF: -0.1, QUARTER: -0.1}, Outcome.UNDECIDED),
    ],
)
def test_one_better_share_is_enough_and_all_must_be_worse_to_refute(gain, outcome):
    claims = {claim.name: claim.verdict(with_gains(gain=gain, noise={EXPERTS: 0})) for claim in EXPERIMENT.claims}
    assert claims["mixed"].outcome is outcome
    assert claims["quarter"].outcome is (Outcome.UNDECIDED if QUARTER not in gain else Outcome.DOES_NOT_HOLD)


def test_three_shares_have_a_third_of_the_error_each():
    """A gain that lies between the limits of Student's test at 95 % and at 98.33 % decides nothing."""
    sample = [0.1 * (seed % 2 - 0.5) for seed in range(10)]
    half = [stats.t.ppf(1 - 0.025 / n, 9) * stats.sem(sample) for n in (1, 3)]
    noise = {HALF: 0.1, EXPERTS: 0.0}
    for gain, outcome in (((half[0] + half[1]) / 2, Outcome.UNDECIDED), (1.01 * half[1], Outcome.HOLDS)):
        rows = with_gains(gain={HALF: gain, ALONE: -1, QUARTER: -1e-3}, noise=noise)
        (claim,) = (one for one in EXPERIMENT.claims if one.name == "u-curve")
        assert claim.verdict(rows).outcome is outcome
        assert len(characters.gains(deciding(rows), HALF, EXPERTS)) == 10


def test_each_model_has_the_rate_that_was_best_on_a_seed_that_decides_nothing():
    kept = Rows(Store(KEPT).of(EXPERIMENT.tasks(Scale.FULL)))
    for model, rate in RATES.items():
        tuned = kept.where(seed=TUNED_ON, model=model)
        losses = dict(zip(tuned.column("learning_rate"), (row["losses"][-1] for row in tuned), strict=True))
        assert min(losses, key=losses.get) == rate, model
        assert sorted(losses) == [LEAST_RATE * 2**i for i in range(len(losses))]
        assert max(losses) == 2 * rate

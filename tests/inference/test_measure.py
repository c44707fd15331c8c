from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from measured import gated, passing, plain
from torch import nn

import sparsact as sa
from sparsact.inference.block import Activation, Block


def inputs(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def activations(model, x):
    """What goes into ``down``, with the model's own layers."""
    if isinstance(model, nn.Sequential):
        return model[1](model[0](x)).detach()
    return (torch.relu(model.gate(x)) * model.up(x)).detach()


@pytest.mark.parametrize("make", [plain, gated])
def test_counts_are_those_of_the_activations_themselves(make):
    model, block = make()
    x = inputs(5, 37, 3)
    (found,) = sa.measure(model, x, [block]).blocks
    active = (activations(model, x) != 0).reshape(-1, 11)
    per_row = active.double().mean(1)
    assert found.n_rows == 5 * 37
    assert found.density == pytest.approx(active.double().mean().item(), rel=1e-14)
    assert found.frequency.tolist() == pytest.approx(active.double().mean(0).tolist())
    assert found.rows_by_active.tolist() == torch.bincount(active.sum(1), minlength=12).tolist()
    assert found.n_dead == int((~active.any(0)).sum())
    assert found.n_always == int(active.all(0).sum())
    assert found.n_zero_rows == int((~active.any(1)).sum())
    for q in (0.05, 0.5, 0.95, 1.0):
        assert found.density_quantile(q) == np.quantile(per_row.numpy(), q, method="inverted_cdf")


def test_unions_are_over_rows_of_one_sequence():
    model, block = plain()
    x = inputs(5, 37, 3)
    (found,) = sa.measure(model, x, [block]).blocks
    active = activations(model, x) != 0
    for width, of_each in ((4, 9), (16, 2)):
        unions = [s[i * width : (i + 1) * width].any(0).double().mean().item() for s in active for i in range(of_each)]
        assert found.windows[width] == 5 * of_each
        assert found.unions[width] == pytest.approx(np.mean(unions), rel=1e-14)
    assert (found.windows[64], found.unions[64]) == (0, None)
    assert found.roofline(batch=64) is None
    assert found.roofline(batch=4).oracle == pytest.approx(found.roofline().dense * found.unions[4])


def test_a_known_activation_has_its_known_counts():
    model, block = passing(4)
    rows = torch.tensor([[1.0, 0, 0, 0], [0, 2, 0, 0], [0, 3, 0, 0], [-1, 0, 0, 0], [5, 5, 0, 0]])
    (found,) = sa.measure(model, rows, [block]).blocks
    assert found.rows_by_active.tolist() == [1, 3, 1, 0, 0]
    assert found.active_rows.tolist() == [2, 3, 0, 0]
    assert (found.n_dead, found.n_always, found.n_zero_rows) == (2, 0, 1)
    assert found.density == 5 / 20
    assert found.unions == {4: 0.5, 16: None, 64: None}


def test_small_activations_are_told_against_the_root_mean_square_of_their_row():
    """3 and 4 have the root mean square 2.5 beside two zeros; 0.004 is within 1 % of it and 0.04 is not."""
    model, block = passing(4)
    rows = torch.tensor([[3.0, 4, 0, 0], [300.0, 400, 0.4, 4], [0, 0, 0, 0]])
    (found,) = sa.measure(model, rows, [block]).blocks
    assert found.share_within[0] == pytest.approx(6 / 12)
    assert found.share_small == pytest.approx(7 / 12)
    assert found.share_within[-1] == 1
    assert found.energy_within[-1] == pytest.approx(1)
    below = list(found.levels).index(1.0)  # 4 / 250 lies below the root mean square, 3 / 2.5 above
    assert found.energy_within[below] == pytest.approx((0.4**2 + 4**2) / (300**2 + 400**2) / 2, rel=1e-3)


def test_what_small_activations_hold_is_at_most_the_square_of_the_level():
    model, block = plain(activation=nn.GELU())
    (found,) = sa.measure(model, inputs(211, 3), [block]).blocks
    levels = np.array(found.levels)
    assert (found.energy_within <= levels**2 + 1e-6).all()
    assert found.energy_within[levels > 0.3].min() > 0
    assert (np.diff(found.share_within) >= 0).all()
    assert found.share_within[0] == pytest.approx(1 - found.density)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_scale_of_activations_does_not_matter(scale):
    model, block = passing(7)
    x = inputs(29, 7)
    (one,), (other,) = (sa.measure(model, part, [block]).blocks for part in (x, x * scale))
    assert one.share_within.tolist() == pytest.approx(other.share_within.tolist(), abs=0.01)
    assert one.energy_within.tolist() == pytest.approx(other.energy_within.tolist(), abs=0.01)


def test_batches_add_up_and_a_generator_is_consumed_once():
    model, block = plain()
    x = inputs(6, 16, 3)
    drawn = []

    def batches():
        for part in x.split([1, 3, 2]):
            drawn.append(len(part))
            yield part

    together, apart = sa.measure(model, x, [block]), sa.measure(model, batches(), [block])
    assert drawn == [1, 3, 2]
    assert (together.n_batches, apart.n_batches) == (1, 3)
    one, other = together.to_dict()["blocks"][0], apart.to_dict()["blocks"][0]
    assert one.pop("energy_within") == pytest.approx(other.pop("energy_within"), rel=1e-12)
    assert (one.pop("calls"), one.pop("rows")) == (1, (96, 96))
    assert (other.pop("calls"), other.pop("rows")) == (3, (16, 48))
    assert one == other


def test_nothing_of_the_model_or_the_inputs_is_changed():
    model, block = plain(activation=nn.Sequential(nn.ReLU(), nn.Dropout(0.5)))
    model.train()
    model[1][1].eval()
    x, state, rng = inputs(5, 3), {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
    before = x.clone()
    sa.measure(model, x, [block])
    assert model.training
    assert not model[1][1].training
    assert not model[2]._forward_pre_hooks
    assert torch.equal(x, before)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), rng)


def test_weights_in_half_precision_are_measured():
    model, block = plain()
    measurement = sa.measure(model.bfloat16(), inputs(5, 3).bfloat16(), [block])
    assert (measurement.blocks[0].dtype, measurement.blocks[0].itemsize) == ("bfloat16", 2)
    assert measurement.model_bytes == 2 * (3 * 11 + 11 + 11 * 2 + 2)


def test_json_holds_everything_and_no_infinity():
    model, block = passing(4)
    told = json.loads(sa.measure(model, -torch.ones(3, 4), [block]).to_json())
    (of_block,) = told["blocks"]
    assert of_block["density"] == 0
    assert of_block["rows_by_active"] == [[0, 3]]
    assert of_block["roofline"]["1"]["speedup"] == {"oracle": None, "exact": 24 / 16, "certified": 96 / 16}
    assert of_block["roofline"]["1"]["bytes"] == {"dense": 96, "oracle": 0, "exact": 64, "certified": 16}
    assert of_block["roofline"]["4"] is None
    assert told["bounds"]["1"]["oracle"] == pytest.approx((96 + 8) / 8)
    assert told["bounds"]["4"]["oracle"] is None


def test_the_table_names_every_block_and_the_bounds():
    model, block = passing(4)
    measurement = sa.measure(model, torch.eye(4), [block])
    assert math.isclose(measurement.bound("exact"), 104 / (104 - 0.75 * 32))
    text = str(measurement)
    assert "(the model)" in text
    assert "25.00%" in text
    certified = 104 / (104 - (96 - 16 - 0.25 * 96))  # a byte for each weight of up, a quarter of all weights
    assert f"whole model: at most {certified:.2f} times as fast, by certified (104 bytes" in text
    assert "104 bytes" in text


@pytest.mark.parametrize(("first", "second"), [(2, 1), (1, 3), (8, 4), (0, 0)])
def test_a_layer_between_two_blocks_is_read_once(first, second):
    """Biases decide: ``first`` of 8 units are on, and ``second`` of 4. Bytes are counted weight by weight."""
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)).eval()
    with torch.no_grad():
        for layer, on in ((model[0], first), (model[2], second)):
            layer.weight.zero_()
            layer.bias.copy_(torch.where(torch.arange(len(layer.bias)) < on, 1.0, -1.0))
    found = sa.measure(model, inputs(5, 6))
    assert [(block.up, block.down) for block in found.blocks] == [("0", "2"), ("2", "4")]
    biases, weights, total = 4 * (8 + 4 + 3), 6 * 8 + 8 * 4 + 4 * 3, found.model_bytes
    assert total == 4 * weights + biases
    last = 4 * second * 3
    assert found.bound("oracle") == pytest.approx(total / (biases + 4 * (6 * first + first * second) + last))
    assert found.bound("exact") == pytest.approx(total / (biases + 4 * 6 * 8 + 4 * first * 4 + last))
    of_shared = min(4 * 4 * first, 8 * 4 + 4 * 8 * second)  # columns of active units, or a screen and active rows
    screened = 6 * 8 + 4 * 6 * first
    assert found.bound("certified") == pytest.approx(total / (biases + screened + of_shared + last))
    assert "inf" not in str(found)


def test_a_block_without_zeros_has_no_exact_bound():
    model, _ = plain(activation=nn.GELU())
    block = Block("", "0", "2", None, Activation("gelu", nn.functional.gelu, None))
    measurement = sa.measure(model, inputs(5, 3), [block])
    assert measurement.blocks[0].roofline().exact is None
    assert measurement.bound("exact") == 1
    assert "-" in str(measurement).splitlines()[1].split()


def test_nan_is_told_with_the_block_and_hooks_are_gone():
    model, block = plain()
    with torch.no_grad():
        model[0].weight[4, 1] = torch.nan
    with pytest.raises(ValueError, match=r"of block ''.*5 of 55 are NaN or infinite"):
        sa.measure(model.train(), inputs(5, 3), [block])
    assert model.training
    assert not model[2]._forward_pre_hooks


def test_batches_without_rows_and_no_batches_are_refused():
    model, block = plain()
    with pytest.raises(ValueError, match="at least one row; '' got none"):
        sa.measure(model, torch.zeros(0, 3), [block])
    with pytest.raises(ValueError, match="holds no batch"):
        sa.measure(model, [], [block])
    with pytest.raises(ValueError, match="`blocks` is empty"):
        sa.measure(model, inputs(5, 3), [])
    with pytest.raises(TypeError, match="must be a tensor"):
        sa.measure(model, 3, [block])
    assert sa.measure(model, [torch.zeros(0, 3), inputs(5, 3)], [block]).blocks[0].n_rows == 5


def test_a_tuple_of_batches_is_told_to_be_a_list():
    model, block = plain()
    with pytest.raises(TypeError, match="positional arguments") as caught:
        sa.measure(model, inputs(5, 3).split(1), [block])
    assert any("list" in note for note in caught.value.__notes__)
    assert sa.measure(model, list(inputs(5, 3).split(1)), [block]).n_batches == 5


def test_a_batch_on_another_device_is_told():
    model, block = plain()
    with pytest.raises(RuntimeError) as caught:
        sa.measure(model, (inputs(5, 3).to("meta"),), [block])
    assert "are on cpu and meta" in caught.value.__notes__[0]


def test_a_share_outside_its_range_has_no_quantile():
    model, block = plain()
    (found,) = sa.measure(model, inputs(5, 3), [block]).blocks
    with pytest.raises(ValueError, match="0 < q <= 1, got 0"):
        found.density_quantile(0)


def test_an_activation_without_leading_axes_is_one_row():
    model, block = plain()
    (found,) = sa.measure(model, inputs(3), [block]).blocks
    assert found.n_rows == 1

"""Convolutions as products of unfolded columns: what `measure` says that they read."""

from functools import partial
from math import prod

import pytest
import torch
from inference.exact_zeros import check_densities, reads
from torch import nn

from benchmarks.convolutions import ResNet, cnn
from sparsact.inference import measure


@pytest.mark.parametrize("make", [cnn, partial(ResNet, 1, 4)])
def test_convolutions(make):
    torch.manual_seed(2)
    model = make().eval()
    found = check_densities(model, [torch.randn(3, 1, 8, 8), torch.randn(1, 1, 8, 8)])
    kinds = [layer for layer in found.layers if layer.kind == "Conv2d"]
    assert any(layer.density < 1 for layer in kinds)
    assert all(layer.reason for layer in kinds)
    assert sum(layer.share for layer in found.layers) <= 1
    assert all(layer.name in str(found) for layer in found.layers if layer.density < 1 and layer.block is None)


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv1d(4, 6, 3, stride=2, groups=2),
        nn.Conv2d(4, 8, (3, 2), stride=(2, 1), padding=(2, 1), dilation=(1, 2), groups=4),
        nn.Conv2d(4, 5, 1, stride=3),
        nn.Conv2d(4, 5, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(4, 5, (4, 3), padding="same", padding_mode="circular"),
        nn.Conv2d(4, 5, (4, 3), padding="same"),
        nn.Conv3d(4, 2, 2, padding=1),
    ],
    ids=repr,
)
def test_a_convolution_reads_every_place_once_for_every_tap(layer):
    torch.manual_seed(0)
    axes = (7, 6, 5)[: len(layer.kernel_size)]
    for shape in ((3, 4, *axes), (4, *axes)):
        x = torch.randn(shape).relu()
        (found,) = measure(layer, x).layers
        numbers, nonzero = reads(layer, x)
        assert found.density == pytest.approx(nonzero / numbers, rel=1e-12)
        assert 0 < nonzero < numbers
        assert numbers <= prod(shape) * prod(layer.kernel_size)

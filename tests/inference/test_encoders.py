"""Encoders of torch under sparsify: their fused path is left for the layers that are replaced, and restored."""

from __future__ import annotations

import copy

import pytest
import torch
from sparse_models import reads
from torch import nn

from sparsact.inference import densify, sparsify
from sparsact.inference.selectors import ActiveInputs


def encoder(layers=2, **options):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(24, 4, 60, dropout=0.0, batch_first=True, **options)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=not options.get("norm_first"))
    with torch.no_grad():
        for one in model.layers:
            one.linear1.bias.sub_(1.0)
    return model.eval()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("method", ["exact", "certified"])
@pytest.mark.parametrize(
    "options",
    [{}, *(pytest.param(one, marks=pytest.mark.slow) for one in ({"norm_first": True}, {"activation": nn.ReLU()}))],
    ids=str,
)
def test_encoders_leave_their_fused_path(options, method):
    fused, x = encoder(**options), torch.randn(1, 7, 24)
    model = sparsify(copy.deepcopy(fused), method, x)
    for _ in range(2):
        with torch.no_grad():
            wanted = fused(x)
            torch.backends.mha.set_fastpath_enabled(False)
            slow = fused(x)
            torch.backends.mha.set_fastpath_enabled(True)
            found = model(x)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=2e-6)
        torch.testing.assert_close(found, slow, rtol=1e-5, atol=2e-6)
        downs = [layer for layer in model.modules() if reads(layer, ActiveInputs)]
        assert len(downs) == 2
        assert all(down._sparse.calls == down._sparse.sparse_calls > 0 for down in downs)
        model = copy.deepcopy(model)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[1, 4:] = True
    pair = torch.randn(2, 7, 24)
    with torch.no_grad():
        found, wanted = (one(pair, src_key_padding_mask=padding)[~padding] for one in (model, fused))
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=2e-6)
        assert torch.equal(densify(model)(x), fused(x))
    assert {name: vars(one).keys() for name, one in model.named_modules()} == {
        name: vars(one).keys() for name, one in fused.named_modules()
    }

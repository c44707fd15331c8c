"""Sparse layers for PyTorch: a router chooses units for each input, and a layer computes only those.

``layer(x)`` is the output, ``layer.route(x)`` the :class:`~sparsact.routing.selection.Selection`, and
``layer.forward_with_selection(x)`` both: auxiliary losses are returned in the selection, and kept nowhere. Parameters
are drawn from ``generator``, or if it is None from torch's own, as in any module. Needs the extra ``torch``.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    from sparsact.extras import missing

    advice = "Routers (sparsact.routing) work on NumPy arrays without it."
    raise ImportError(f"{missing('sparsact.layers', 'torch')} {advice}") from error

from sparsact.layers.block_sparse import BlockSparseFeedForward
from sparsact.layers.expert_parallel import clip_gradients, shard_experts
from sparsact.layers.hash_memory import HashMemory
from sparsact.layers.lsh import LSHLayer
from sparsact.layers.mixture import MixtureOfExperts, update_biases
from sparsact.layers.product_key_memory import ProductKeyMemory
from sparsact.layers.replace import replace_experts
from sparsact.layers.routed_layer import Flops
from sparsact.layers.routing_losses import RoutingLosses, routing_losses
from sparsact.layers.sparsely_activated import SparselyActivatedLayer
from sparsact.layers.switch import SwitchLayer

__all__ = [
    "BlockSparseFeedForward",
    "Flops",
    "HashMemory",
    "LSHLayer",
    "MixtureOfExperts",
    "ProductKeyMemory",
    "RoutingLosses",
    "SparselyActivatedLayer",
    "SwitchLayer",
    "clip_gradients",
    "replace_experts",
    "routing_losses",
    "shard_experts",
    "update_biases",
]

"""Measure the activation sparsity of trained models, and exploit it without changing what they compute.

A feed-forward block of a trained model often switches on only a few of its units. :func:`measure` reports how few,
layer by layer, and what that could save; :func:`sparsify` saves it. Needs the extra ``torch``.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    from sparsact.extras import missing

    raise ImportError(missing("sparsact.inference", "torch")) from error

from sparsact.inference.autoencoder import Autoencoder, TopFeatures
from sparsact.inference.autoencoder_files import load_sae
from sparsact.inference.block import Activation, Block
from sparsact.inference.certified_screen import Screen
from sparsact.inference.certified_top_k import CertifiedTopK, TopOutputs
from sparsact.inference.find_blocks import find_blocks
from sparsact.inference.layer_measurement import LayerMeasurement
from sparsact.inference.measurement import BlockMeasurement, Measurement
from sparsact.inference.measuring import measure
from sparsact.inference.plan import BlockPlan, HeadPlan, LayerQuantization, Plan, WholeModel
from sparsact.inference.plan_file import load_plan, save_plan
from sparsact.inference.sparsifying import densify, plan_of, sparsify

__all__ = [
    "Activation",
    "Autoencoder",
    "Block",
    "BlockMeasurement",
    "BlockPlan",
    "CertifiedTopK",
    "HeadPlan",
    "LayerMeasurement",
    "LayerQuantization",
    "Measurement",
    "Plan",
    "Screen",
    "TopFeatures",
    "TopOutputs",
    "WholeModel",
    "densify",
    "find_blocks",
    "load_plan",
    "load_sae",
    "measure",
    "plan_of",
    "save_plan",
    "sparsify",
]

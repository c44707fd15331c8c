"""Routers, which choose the active units of each input.

Each router is a frozen record of hyperparameters; ``router(x)`` gives a :class:`Selection` for rows of NumPy arrays or
torch tensors alike. Layers (:mod:`sparsact.layers`) and learners route by the same contract.
"""

from sparsact.kernels.hashing import hash_generator
from sparsact.routing.block_top1 import BlockTop1
from sparsact.routing.expert_choice import ExpertChoice
from sparsact.routing.expert_gates import SoftmaxTopK
from sparsact.routing.hash_table import HashTable, balanced_table, clustered_table
from sparsact.routing.lsh import EuclideanLSH, HyperplaneLSH, LearnedLSH
from sparsact.routing.nearest import Interpolation, Nearest
from sparsact.routing.ngram_hash import Collisions, NGramHash
from sparsact.routing.product_keys import ProductKeys
from sparsact.routing.random_hash import RandomHash
from sparsact.routing.router import ROUTERS, Router, from_dict, named
from sparsact.routing.selection import EMPTY, Selection
from sparsact.routing.sigmoid_top_k import SigmoidTopK
from sparsact.routing.statistics import RoutingCollapseWarning, RoutingStatistics, warn_of_collapse
from sparsact.routing.switch import Switch
from sparsact.routing.top_k import TopK
from sparsact.routing.tree import Tree

__all__ = [
    "EMPTY",
    "ROUTERS",
    "BlockTop1",
    "Collisions",
    "EuclideanLSH",
    "ExpertChoice",
    "HashTable",
    "HyperplaneLSH",
    "Interpolation",
    "LearnedLSH",
    "NGramHash",
    "Nearest",
    "ProductKeys",
    "RandomHash",
    "Router",
    "RoutingCollapseWarning",
    "RoutingStatistics",
    "Selection",
    "SigmoidTopK",
    "SoftmaxTopK",
    "Switch",
    "TopK",
    "Tree",
    "balanced_table",
    "clustered_table",
    "from_dict",
    "hash_generator",
    "named",
    "warn_of_collapse",
]

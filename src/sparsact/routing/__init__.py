"""Routing: which units an input switches on. One contract for hashes, gates, trees and top-k; NumPy or torch."""

from sparsact.routing.hyperplane_lsh import HyperplaneLSH
from sparsact.routing.random_hash import RandomHash
from sparsact.routing.registry import ROUTERS, from_dict, named
from sparsact.routing.router import Router
from sparsact.routing.selection import EMPTY, Selection
from sparsact.routing.top_k import TopK

__all__ = ["EMPTY", "ROUTERS", "HyperplaneLSH", "RandomHash", "Router", "Selection", "TopK", "from_dict", "named"]

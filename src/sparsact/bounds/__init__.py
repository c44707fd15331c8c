"""Every bound of the two papers, and sharper ones, as functions of their parameters.

Each docstring says which it is: *proved*, *sharper* (proved in the documentation, "Sharper bounds"), *conjectured*, or
*up to constants*: true for some constants that the paper does not specify, which are arguments here, 1 unless given.
Where a paper's text needs mending, the function follows the mended statement and says so. :data:`BOUNDS` lists all.
"""

from typing import Final

from sparsact.bounds.degree import degree_for
from sparsact.bounds.fresh_activity import expected_active_bound, fresh_activity_bound
from sparsact.bounds.hardness import (
    NetworkSize,
    junta_size,
    junta_time,
    lifted_parity_size,
    parity_queries,
    rounding_units,
)
from sparsact.bounds.held_out import held_out_bound, held_out_rows
from sparsact.bounds.learning import (
    degree_from_noise,
    general_samples,
    largest_value,
    low_degree_samples,
    low_degree_samples_explicit,
    realizable_samples_from_rademacher,
    samples_from_rademacher,
    sparse_samples,
    tail_from_noise,
    uniform_degree,
    uniform_samples,
)
from sparsact.bounds.lipschitz import (
    analytic_samples_paper,
    analytic_width,
    analytic_width_paper,
    ball_within_bucket,
    bucket_count,
    bucket_count_of_cuts,
    bucket_diameter,
    dense_width,
    forward_operations,
    lipschitz_samples,
    manifold_samples,
    manifold_table_size,
    manifold_table_size_proof,
    manifold_tables,
    table_samples,
    table_size,
)
from sparsact.bounds.measured import SufficientDegree, upper_confidence_bound
from sparsact.bounds.rademacher import (
    dense_complexity_bound,
    general_samples_explicit,
    rademacher_sparse_free_of_dimension,
    rademacher_sparse_root_logarithm,
    rademacher_sparse_without_logarithm,
    realizable_samples_by_counting,
    sparse_complexity_bound,
    sparse_complexity_bound_explicit,
    sparse_complexity_conjecture,
)
from sparsact.bounds.registry import BoundInfo, all_bounds
from sparsact.bounds.sensitivity import (
    average_sensitivity_bound,
    average_sensitivity_bound_by_activity,
    average_sensitivity_bound_paper,
    degree_from_sensitivity,
    halfspace_sensitivity_bound,
    noise_sensitivity_bound,
    noise_sensitivity_bound_paper,
    sensitivity_certificate,
    sensitivity_from_activity,
    sufficient_degree,
    tail_bound,
)
from sparsact.bounds.stacks import StackSensitivity, stack_sensitivity
from sparsact.bounds.unexplained import UnexplainedVariance, unexplained_variance

BOUNDS: Final = all_bounds()

__all__ = [
    "BOUNDS",
    "BoundInfo",
    "NetworkSize",
    "StackSensitivity",
    "SufficientDegree",
    "UnexplainedVariance",
    "analytic_samples_paper",
    "analytic_width",
    "analytic_width_paper",
    "average_sensitivity_bound",
    "average_sensitivity_bound_by_activity",
    "average_sensitivity_bound_paper",
    "ball_within_bucket",
    "bucket_count",
    "bucket_count_of_cuts",
    "bucket_diameter",
    "degree_for",
    "degree_from_noise",
    "degree_from_sensitivity",
    "dense_complexity_bound",
    "dense_width",
    "expected_active_bound",
    "forward_operations",
    "fresh_activity_bound",
    "general_samples",
    "general_samples_explicit",
    "halfspace_sensitivity_bound",
    "held_out_bound",
    "held_out_rows",
    "junta_size",
    "junta_time",
    "largest_value",
    "lifted_parity_size",
    "lipschitz_samples",
    "low_degree_samples",
    "low_degree_samples_explicit",
    "manifold_samples",
    "manifold_table_size",
    "manifold_table_size_proof",
    "manifold_tables",
    "noise_sensitivity_bound",
    "noise_sensitivity_bound_paper",
    "parity_queries",
    "rademacher_sparse_free_of_dimension",
    "rademacher_sparse_root_logarithm",
    "rademacher_sparse_without_logarithm",
    "realizable_samples_by_counting",
    "realizable_samples_from_rademacher",
    "rounding_units",
    "samples_from_rademacher",
    "sensitivity_certificate",
    "sensitivity_from_activity",
    "sparse_complexity_bound",
    "sparse_complexity_bound_explicit",
    "sparse_complexity_conjecture",
    "sparse_samples",
    "stack_sensitivity",
    "sufficient_degree",
    "table_samples",
    "table_size",
    "tail_bound",
    "tail_from_noise",
    "unexplained_variance",
    "uniform_degree",
    "uniform_samples",
    "upper_confidence_bound",
]

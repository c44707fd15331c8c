"""The three areas of the suite: paths, each with all that lies below it; `make test-torch` runs one alone."""

from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def paths(places: str) -> tuple[Path, ...]:
    return tuple(ROOT / place for place in places.split())


AREAS = {
    # Networks, certificates and the theorems of both papers.
    "theory": paths("""
        src/sparsact/activity.py src/sparsact/bounds src/sparsact/certificate src/sparsact/constructions
        src/sparsact/exact_sign.py src/sparsact/fourier src/sparsact/hardness src/sparsact/hypercube.py
        src/sparsact/lift.py
        src/sparsact/network.py src/sparsact/rademacher src/sparsact/stack.py
        tests/bounds tests/certificate tests/constructions tests/fourier tests/hardness tests/papers tests/rademacher
        tests/test_lift.py tests/test_network.py tests/test_network_points.py tests/test_stack.py
        tests/test_theory_map.py
    """),
    # Layers, and the inference of trained models.
    "torch": paths("""
        src/sparsact/inference src/sparsact/layers src/sparsact/routing
        tests/differential/test_sparsify.py tests/inference tests/layers tests/routing tests/test_forced.py
        tests/test_notebook.py
    """),
    # Learners, fits of tables and the command; what all of them stand on; the project as a whole.
    "tables": paths("""
        benchmarks
        src/sparsact/__init__.py src/sparsact/__main__.py src/sparsact/_version.py src/sparsact/cli
        src/sparsact/datasets src/sparsact/distributed src/sparsact/environment.py src/sparsact/extras.py
        src/sparsact/files.py src/sparsact/fit src/sparsact/kernels src/sparsact/learners src/sparsact/memory.py
        src/sparsact/notebook.py src/sparsact/passes src/sparsact/registry.py src/sparsact/reports src/sparsact/saving
        src/sparsact/statistics src/sparsact/transaction.py src/sparsact/validation
        tests/cli tests/datasets tests/differential/test_low_degree.py tests/distributed tests/faults tests/fit
        tests/hostile tests/kernels tests/learners tests/reports tests/stress tests/typing
        tests/test_api_pages.py tests/test_bench.py tests/test_build.py tests/test_decisions.py
        tests/test_dependencies.py tests/test_docs.py tests/test_examples.py tests/test_files.py
        tests/test_gallery.py tests/test_house.py tests/test_memory.py tests/test_modelfile.py
        tests/test_old_files.py tests/test_package.py tests/test_parameters.py tests/test_readme.py
        tests/test_recipes.py tests/test_statistics.py tests/test_validation.py
    """),
}


@cache
def areas_of(path: Path) -> list[str]:
    """Names of the areas that a file belongs to: one for each of the suite, none for other files."""
    return [area for area, places in AREAS.items() if any(path.is_relative_to(place) for place in places)]

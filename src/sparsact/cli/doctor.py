"""``sparsact doctor``: what this installation runs on, and what it lacks."""

from __future__ import annotations

import json
import os
import re
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, Final

import typer

from sparsact.cli.options import with_help
from sparsact.extras import install

EXTRAS: Final = ("cli", "table", "report", "torch", "hf", "dask", "gpu")
VARIABLES: Final = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "SPARSACT_CACHE_WAYS", "SPARSACT_DATA", "SPARSACT_ISA"),
    *("SPARSACT_AMX", "SPARSACT_KERNELS", "SPARSACT_VNNI"),
)


@with_help()
def doctor(as_json: bool = False) -> None:
    """Show versions, kernels, threads, memory and optional packages of this installation.

    Look here first when something is slow or missing, and attach the output to bug reports.

    Example: sparsact doctor
    """
    found = findings()
    if as_json:
        typer.echo(json.dumps(found))
        return
    from rich.table import Table

    from sparsact.cli.terminal import terminal

    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in {**found["versions"], **found["machine"]}.items():
        table.add_row(name, str(value))
    for extra, lacking in found["extras"].items():
        remedy = f"lacks {', '.join(lacking)}: {install(extra)}"
        table.add_row(f"extra {extra}", remedy if lacking else "installed")
    for advice in found["advice"]:
        table.add_row("note", advice)
    terminal().print(table)


def findings() -> dict[str, Any]:
    """What the command prints, as JSON holds it."""
    from threadpoolctl import threadpool_info

    from sparsact.environment import versions
    from sparsact.kernels import dispatch
    from sparsact.memory import free_memory, total_memory

    pools = {
        (pool["internal_api"], pool.get("architecture", ""), str(pool["num_threads"])) for pool in threadpool_info()
    }
    machine = {
        "cores": os.cpu_count(),
        "threads of kernels": dispatch.max_threads(),
        "threads of libraries": ", ".join(" ".join(filter(None, pool)) for pool in sorted(pools)),
        "memory": f"{free_memory() / 2**30:.1f} GiB free of {total_memory() / 2**30:.1f} GiB",
        **{name: os.environ[name] for name in VARIABLES if name in os.environ},
    }
    extras = {extra: [name for name in _packages(extra) if not _installed(name)] for extra in EXTRAS}
    advice = []
    if dispatch.backend() == "reference":
        why = dispatch.lacking or "SPARSACT_KERNELS=reference chooses them; unset it"
        advice.append(f"the kernels are NumPy's, several times slower: {why}.")
    return {"versions": dict(versions()), "machine": machine, "extras": extras, "advice": advice}


def _packages(extra: str) -> list[str]:
    """What an extra brings itself, as the installed package declares it."""
    declared = (
        re.match(rf"(?!sparsact\b)([\w.-]+).*extra == ['\"]{extra}['\"]", line) for line in requires("sparsact") or ()
    )
    return [found[1] for found in declared if found]


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True

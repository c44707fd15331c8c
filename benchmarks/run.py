"""Every benchmark, one after another; exit status 1 when one of them misses a bar.

    python benchmarks/run.py [--quick] [--out results/bench.jsonl]

``--quick`` runs small sizes, in well under a minute: it shows that both sides agree, and judges no speed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

BENCHMARKS = (
    "walsh_hadamard",
    "least_squares",
    "large",
    "cross_validation",
    "enumeration",
    "gather",
    "screen",
    "predictors",
    "trained",
    "gpu",
    "neurons",
    "sparsify",
    "network_values",
    "bucket_kernels",
    "units",
    "monte_carlo",
    "certificates",
    "planted",
    "top_k",
    "dsm",
    "lsh_regression",
    "lsh_slopes",
    "lsh_tables",
)


def main() -> int:
    """Run each in an interpreter of its own, so that none meets the memory of another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, in seconds; speed and memory are not judged")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, help="some of them")
    parser.add_argument("--out", help="file of JSON rows to append to")
    arguments = parser.parse_args()
    passed = ["--quick"] * arguments.quick + (["--out", arguments.out] if arguments.out else [])
    status = {}
    for name in arguments.only:
        if name == "walsh_hadamard" and find_spec("fht_cpu") is None:
            print("walsh_hadamard: left out, for it is measured beside fht-cpu, which is not installed")
            continue
        script = Path(__file__).with_name(f"{name}.py")
        status[name] = subprocess.run([sys.executable, str(script), *passed], check=False).returncode
    for name, code in status.items():
        print(f"{name}: {'every judged bar met' if code == 0 else 'a bar missed, or it broke: see above'}")
    return int(any(status.values()))


if __name__ == "__main__":
    raise SystemExit(main())

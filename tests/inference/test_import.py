from __future__ import annotations

import subprocess
import sys


def test_without_torch_the_error_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; import sparsact; sparsact.measure"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert 'pip install "sparsact[torch]"' in done.stderr


def test_measure_is_loaded_when_it_is_asked_for():
    code = (
        "import sys, sparsact; before = 'torch' in sys.modules; sparsact.measure; print(before, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]

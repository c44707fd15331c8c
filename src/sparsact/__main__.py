"""``python -m sparsact`` is the ``sparsact`` command."""

import sys

from sparsact.cli import main

sys.exit(main())

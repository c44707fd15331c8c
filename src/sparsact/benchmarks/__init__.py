"""Side-by-side measurements: every speed that is told, beside the best other way to the same answer, in one run.

``sparsact bench`` runs them; ``python -m sparsact.benchmarks.NAME --help`` tells what one alone may be told.
"""

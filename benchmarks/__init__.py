"""Side-by-side measurements: every speed that is told, beside the best other way to the same answer, in one run.

``python -m benchmarks`` runs them; ``python -m benchmarks.NAME --help`` lists the options of one.
"""

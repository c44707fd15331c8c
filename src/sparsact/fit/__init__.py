"""The work of ``sparsact fit``: choose degree and penalty, measure on held-out rows, learn every row, summarise."""

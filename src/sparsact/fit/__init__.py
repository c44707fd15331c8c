"""A model of a table: read, choose, fit, score, explain. The door is :func:`sparsact.fit_table`."""

"""Tables of sequences and of mutations."""

import numpy as np

from sparsact.datasets import open_table

RNG = np.random.default_rng(0)
WILD = "MKTAY"


def write(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def sequences(m=90):
    """Texts that vary at places 1 (two letters), 2 (three) and 4 (two), and their mutations."""
    texts = ["".join(RNG.choice(list(letters)) for letters in ("LM", "DKW", "T", "AV", "Y")) for _ in range(m)]
    lists = [":".join(f"{w}{i + 1}{c}" for i, (w, c) in enumerate(zip(WILD, t, strict=True)) if w != c) for t in texts]
    return texts, [one or "WT" for one in lists]


def letters_of(path, column="g"):
    table = open_table(path, "y")
    X = np.concatenate([X for X, _ in table.batches()])
    return table, X, table.encoding.letters(X)

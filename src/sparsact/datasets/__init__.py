"""Tables on disk as streams of bits, and real data sets of combinatorial features."""

try:
    import pyarrow as pa  # noqa: F401
except ImportError as error:
    from sparsact.extras import missing

    raise ImportError(missing("sparsact.datasets", "pyarrow")) from error

from sparsact.datasets.columns import Encoding
from sparsact.datasets.landscapes import (
    Landscape,
    config_performance,
    data_folder,
    iwls2020,
    load_poelwijk,
    moulana_s309,
    phillips_cr6261,
)
from sparsact.datasets.table_files import files
from sparsact.datasets.table_stream import Table, encoded_table, open_table

__all__ = [
    "Encoding",
    "Landscape",
    "Table",
    "config_performance",
    "data_folder",
    "encoded_table",
    "files",
    "iwls2020",
    "load_poelwijk",
    "moulana_s309",
    "open_table",
    "phillips_cr6261",
]

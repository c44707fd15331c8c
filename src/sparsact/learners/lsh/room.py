"""Whether new buckets have room: numbers that tell them apart, and memory."""

from __future__ import annotations

from collections.abc import Callable

from sparsact.kernels.bucket_index import BucketIndex
from sparsact.memory import free_memory

KEY_BYTES = 8 + 4 * 16  # of a bucket: its key, and slots of which a quarter is full at the least
SMALL = 1 << 28  # bytes that are taken without asking how many are free
SHARE = 0.8  # of the free memory


def check_room(index: BucketIndex, most: int, exactly: Callable[[], int], n_bytes: Callable[[int], float]) -> None:
    """Raise unless new buckets have room beside those of an index.

    Parameters
    ----------
    index : BucketIndex
        The buckets that there are.
    most : int
        New ones, at the most.
    exactly : callable
        Finds out how many they are; asked only where ``most`` would be too many.
    n_bytes : callable
        Bytes that are asked for when there shall be so many buckets in all.

    Raises
    ------
    ValueError
        If they are more than have numbers.
    MemoryError
        If they need more than is free.
    """
    if _has_room(index, n_bytes, len(index) + most):
        return
    total = len(index) + exactly()
    if total > index.most:
        raise ValueError(
            f"rows fall into {total:,} buckets, more than have numbers of 32 bits, {index.most:,}; raise "
            "`bucket_width`, or lower `n_tables` or `n_hashes`."
        )
    if not _has_room(index, n_bytes, total):
        raise MemoryError(
            f"rows fall into {total:,} buckets, which need {n_bytes(total):,.0f} bytes more than there is room for; "
            "raise `bucket_width`, lower `n_tables` or `n_hashes`, take a low-degree model (--model low-degree), or a "
            "machine of more memory."
        )


def _has_room(index: BucketIndex, n_bytes: Callable[[int], float], total: int) -> bool:
    need = n_bytes(total)
    return total <= index.most and (need <= SMALL or need <= SHARE * free_memory())

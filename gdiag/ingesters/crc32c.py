"""CRC-32C of many short records at once, and TFRecord's mask over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

_POLYNOMIAL: Final = 0x82F63B78


def _table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table.astype(np.uint32)


_TABLE: Final = _table()


def masked(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Masked CRC-32C of every row of an (n, length) array of bytes.

    The mask is that of TFRecord: rotated right by 15 bits, plus 0xa282ead8 (tensorflow/core/lib/hash/crc32c.h).
    """
    crc = np.full(len(rows), 0xFFFFFFFF, dtype=np.uint32)
    for column in rows.T:
        crc = _TABLE[(crc ^ column) & 0xFF] ^ (crc >> np.uint32(8))
    crc = ~crc
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)


def broken(records: Sequence[bytes], checksums: Sequence[int]) -> list[int]:
    """Indices of the records whose checksum does not hold; records of one length are checked together."""
    lengths = np.array([len(record) for record in records])
    wrong: list[int] = []
    for length in np.unique(lengths):
        places = [int(i) for i in np.flatnonzero(lengths == length)]
        joined = np.frombuffer(b"".join(records[i] for i in places), dtype=np.uint8).reshape(len(places), int(length))
        stored = np.array([checksums[i] for i in places], dtype=np.uint32)
        wrong += [places[i] for i in np.flatnonzero(masked(joined) != stored)]
    return sorted(wrong)

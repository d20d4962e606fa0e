"""CRC-32C of many records at once, and TFRecord's mask over it.

A checksum that starts from zero is linear: zero bytes in front leave it at zero, and the checksum of two blocks is that of the
first, carried over as many zero bytes as the second has, XOR that of the second. So all records of one length are cut into
equal blocks, which go through the table side by side, two bytes at a time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_POLYNOMIAL: Final = 0x82F63B78
_BLOCK: Final = 64
_AT_ONCE: Final = 1 << 20
"""Bytes that are worked on at a time: they stay in the processor's cache."""


def masked(rows: npt.NDArray[np.uint8]) -> Words:
    """Masked CRC-32C of every row of an (n, length) array of bytes, length at least 4.

    The mask is that of TFRecord: rotated right by 15 bits, plus 0xa282ead8 (tensorflow/core/lib/hash/crc32c.h).
    """
    few = max(1, _AT_ONCE // rows.shape[1])
    crc = np.concatenate([_plain(rows[i : i + few]) for i in range(0, len(rows) or 1, few)])
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)


def _plain(rows: npt.NDArray[np.uint8]) -> Words:
    count, length = rows.shape
    blocks = 1 << max(0, -(-length // _BLOCK) - 1).bit_length()
    width = blocks * _BLOCK if blocks > 1 else length + length % 2
    padded = np.zeros((count, width), dtype=np.uint8)
    padded[:, width - length :] = rows
    padded[:, width - length : width - length + 4] ^= 0xFF
    crc = _run(np.zeros(count * blocks, dtype=np.uint32), padded.reshape(-1, width // blocks).view("<u2"))
    carry = _carry()
    while len(crc) > count:
        pairs = crc.reshape(-1, 2)
        crc = _carried(pairs[:, 0], carry) ^ pairs[:, 1]
        carry = _carried(carry, carry)
    return ~crc


def _run(crc: Words, words: npt.NDArray[np.uint16]) -> Words:
    """Checksums after the words of their rows, from left to right."""
    table = _pairs()
    for column in np.ascontiguousarray(words.T):
        crc = table[(crc ^ column) & np.uint32(0xFFFF)] ^ (crc >> np.uint32(16))
    return crc


@lru_cache
def _pairs() -> Words:
    """What two bytes make of a checksum: the byte-wise table applied twice."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    crc = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(2):
        crc = table[crc & 0xFF] ^ (crc >> np.uint32(8))
    return crc


@lru_cache
def _carry() -> Words:
    """Each byte of a checksum, (4, 256), carried over one block of zeros."""
    bytes_ = np.arange(256, dtype=np.uint32) << np.array([[0], [8], [16], [24]], dtype=np.uint32)
    return _run(bytes_.ravel(), np.zeros((4 * 256, _BLOCK // 2), dtype=np.uint16)).reshape(4, 256)


def _carried(crc: Words, carry: Words) -> Words:
    carried: Words = carry[0][crc & 0xFF] ^ carry[1][crc >> 8 & 0xFF] ^ carry[2][crc >> 16 & 0xFF] ^ carry[3][crc >> 24]
    return carried

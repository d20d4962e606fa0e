from __future__ import annotations

import numpy as np
import pytest

from gdiag.ingesters import crc32c
from tests.ingesters.encoders import checksum


def test_checksums_are_those_of_the_standard() -> None:
    # RFC 3720 B.4: CRC-32C of 32 zero bytes is 0x8a9136aa.
    crc = 0x8A9136AA
    expected = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert int(crc32c.masked(np.zeros((1, 32), dtype=np.uint8))[0]) == expected


@pytest.mark.parametrize("length", [4, 5, 8, 63, 64, 65, 127, 128, 129, 500, 4097])
def test_records_of_every_length(length: int) -> None:
    rows = np.random.default_rng(length).integers(0, 256, (3, length), dtype=np.uint8)
    assert crc32c.masked(rows).tolist() == [checksum(row.tobytes()) for row in rows]


def test_more_records_than_are_worked_on_at_once() -> None:
    rows = np.random.default_rng(0).integers(0, 256, (40_000, 41), dtype=np.uint8)
    some = [0, 25_574, 25_575, 25_576, 39_999]
    assert crc32c.masked(rows)[some].tolist() == [checksum(rows[i].tobytes()) for i in some]


def test_no_record_has_no_checksum() -> None:
    assert crc32c.masked(np.zeros((0, 8), dtype=np.uint8)).tolist() == []

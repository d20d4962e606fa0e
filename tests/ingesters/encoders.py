"""Writers of binary look-alikes: protocol buffers, wandb's record log, TFRecord."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(number: int, body: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(body)) + body


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def wandb_file(records: Iterable[bytes]) -> bytes:
    """Records in LevelDB's log format with wandb's header."""
    out = bytearray(b":W&B" + struct.pack("<HB", 0xBEE1, 0))
    for record in records:
        first = True
        while True:
            left = 32768 - len(out) % 32768
            if left < 7:
                out += b"\0" * left
                continue
            part, record = record[: left - 7], record[left - 7 :]
            kind = (1 if not record else 2) if first else (4 if not record else 3)
            out += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
            first = False
            if not record:
                break
    return bytes(out)


def history(row: Mapping[str, object], nested: bool = False) -> bytes:
    items = b""
    for key, value in row.items():
        text = '"NaN"' if value != value else json.dumps(value)
        parts = key.split("/") if nested else [key]
        names = b"".join(message(2 if nested else 1, part.encode()) for part in parts)
        items += message(1, names + message(16, text.encode()))
    return message(2, items)


def stats(time: int, row: Mapping[str, float]) -> bytes:
    items = b"".join(
        message(3, message(1, key.encode()) + message(16, json.dumps(value).encode())) for key, value in row.items()
    )
    return message(7, number_field(1, 0) + message(2, number_field(1, time)) + items)


def run_record(name: str, config: Mapping[str, object]) -> bytes:
    items = b"".join(
        message(1, message(1, k.encode()) + message(16, json.dumps(v).encode())) for k, v in config.items()
    )
    return message(17, message(4, items) + message(8, name.encode()))


def output_record(text: str) -> bytes:
    return message(13, message(3, text.encode()))


def exit_record(code: int) -> bytes:
    return message(18, number_field(1, code) if code else b"")


def _table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ (0x82F63B78 if crc & 1 else 0) for crc in table]
    return table


_TABLE = _table()


def checksum(data: bytes) -> int:
    """TFRecord's masked CRC-32C, byte by byte."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def tf_record(data: bytes) -> bytes:
    size = struct.pack("<Q", len(data))
    return size + struct.pack("<I", checksum(size)) + data + struct.pack("<I", checksum(data))


def tf_events(points: Iterable[tuple[float, int, str, float]], tensors: bool = False) -> bytes:
    out = [tf_record(b"\x09" + struct.pack("<d", 1.6e9) + message(3, b"brain.Event:2"))]
    for time, step, tag, value in points:
        content = (
            message(8, number_field(1, 1) + message(2, b"") + message(4, struct.pack("<f", value))) if tensors
            else b"\x15" + struct.pack("<f", value)
        )  # fmt: skip
        summary = message(5, message(1, message(1, tag.encode()) + content))
        out.append(tf_record(b"\x09" + struct.pack("<d", time) + number_field(2, step) + summary))
    return b"".join(out)

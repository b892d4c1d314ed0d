"""Metrics as TensorBoard event files, written without TensorBoard.

An event file is a row of records: length (8 bytes), masked CRC of the length, data, masked CRC of the data; the data is an
`Event` in protocol-buffer encoding, of which only scalars are needed here.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pcces.rl.run import Run

NAME = "events.out.tfevents.pcces"


def _table() -> list[int]:
    found = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        found.append(byte)
    return found


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The Castagnoli CRC.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """The CRC as TFRecord files hold it: rotated and shifted, so that a CRC of CRCs is no accident."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """Data framed as a record."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def event(wall_time: float, step: int, scalars: Mapping[str, float]) -> bytes:
    """An `Event` with a `Summary` of scalars."""
    values = b"".join(
        _bytes(1, _bytes(1, name.encode()) + b"\x15" + struct.pack("<f", value)) for name, value in scalars.items()
    )
    return b"\x09" + struct.pack("<d", wall_time) + b"\x10" + _varint(step) + _bytes(5, values)


def _bytes(number: int, data: bytes) -> bytes:
    """A field of bytes: tag, length, content."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


class TensorBoard:
    """A callback of `train` and `train_seeds` that writes what is new into an event file in each run's folder.

    `tensorboard --logdir runs` shows them. A resumed run writes its file anew, from the first iteration.
    """

    def __init__(self) -> None:
        self._written: dict[Path, int] = {}
        self._start = time.time()

    def __call__(self, runs: Sequence[Run]) -> None:
        """Write the iterations that were not written before."""
        for run in runs:
            if run.path is not None:
                self._append(run, run.path / NAME)

    def _append(self, run: Run, path: Path) -> None:
        metrics = run.metrics
        done, total = self._written.get(path, 0), len(metrics["iteration"])
        parts = [] if done else [record(b"\x09" + struct.pack("<d", self._start) + _bytes(3, b"brain.Event:2"))]
        for k in range(done, total):
            scalars = {
                _tag(name): values[k] for name, values in metrics.items() if name not in ("iteration", "seconds")
            }
            parts.append(record(event(self._start + metrics["seconds"][k], int(metrics["iteration"][k]), scalars)))
        with path.open("ab" if done else "wb") as file:
            file.write(b"".join(parts))
        self._written[path] = total


def _tag(name: str) -> str:
    """Costs in a group of their own.

    >>> _tag("cost_off_centre"), _tag("return"), _tag("sigma")
    ('costs/off_centre', 'episode/return', 'search/sigma')
    """
    if name.startswith("cost_"):
        return f"costs/{name[5:]}"
    return f"{'episode' if name in ('return', 'entropy', 'length') else 'search'}/{name}"

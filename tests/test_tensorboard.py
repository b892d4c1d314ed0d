"""Event files, read back by a decoder of their own."""

import struct
from dataclasses import replace

import pytest

from pcces.report.tensorboard import NAME, TensorBoard, crc32c, masked
from pcces.rl.train import load


def records(data):
    while data:
        head, check, data = data[:8], data[8:12], data[12:]
        assert struct.unpack("<I", check)[0] == masked(head)
        (length,) = struct.unpack("<Q", head)
        body, check, data = data[:length], data[length : length + 4], data[length + 4 :]
        assert struct.unpack("<I", check)[0] == masked(body)
        yield body


def message(data):
    """The fields of a protocol-buffer message: (number, value), whatever they mean."""

    def varint():
        nonlocal data
        value = shift = 0
        while True:
            byte, data = data[0], data[1:]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while data:
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or varint()
            yield tag >> 3, data[:size]
            data = data[size:]


def decoded(path):
    """(wall time, step, scalars) of every event after the first, which names the format."""
    first, *others = records(path.read_bytes())
    assert dict(message(first))[3] == b"brain.Event:2"
    for body in others:
        event = dict(message(body))
        values = [dict(message(value)) for _, value in message(event[5])]
        scalars = {value[1].decode(): struct.unpack("<f", value[2])[0] for value in values}
        yield struct.unpack("<d", event[1])[0], event[2], scalars


def test_the_checksum_is_the_one_of_rfc_3720():
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_every_iteration_is_in_the_event_file_and_nothing_twice(one, tmp_path):
    run = replace(load(one.folder), path=tmp_path)
    half = replace(run, metrics={name: column[:90] for name, column in run.metrics.items()})
    board = TensorBoard()
    for so_far in (half, run, run):
        board([so_far])
    events = list(decoded(tmp_path / NAME))
    assert [step for _, step, _ in events] == list(range(200))
    times = [seconds for seconds, _, _ in events]
    assert times == sorted(times)
    for tag, column in (
        ("episode/return", "return"),
        ("costs/off_centre", "cost_off_centre"),
        ("search/sigma", "sigma"),
    ):
        assert [scalars[tag] for _, _, scalars in events] == pytest.approx(run.metrics[column])

    TensorBoard()([run])  # as a resumed run does: from the first iteration
    assert len(list(decoded(tmp_path / NAME))) == 200


def test_the_command_line_writes_event_files_when_asked(one, two):
    assert not list(one.folder.glob("*tfevents*"))
    for seed in ("seed-0", "seed-1"):
        assert len(list(decoded(two.folder / seed / NAME))) == 200

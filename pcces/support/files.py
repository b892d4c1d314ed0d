"""Files without pickle, written atomically: arrays and plain data in one .npz. What is read may come from a stranger."""

from __future__ import annotations

import io
import json
import os
import secrets
import stat
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pcces.support.schema import cleaned
from pcces.support.text import short

_HEADER = "__pcces__"
MOST = 4 << 30  # bytes that the arrays of a file may take
UNPACKED = 64 << 20  # bytes that compressed ones may take, where the file itself is smaller: ours are not compressed
MOST_TEXT = 16 << 20  # lists of lists take fifty times as much when they are read
MOST_HEADER = 4 << 20  # bytes that may come of a compressed header, likewise
MOST_ARRAYS = 100_000
PLAIN = "biufU"  # kinds of arrays: truth values, whole and real numbers, text; no objects


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file that is either the old one or the new one, whatever happens meanwhile. A link is replaced, not followed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:  # a full disk names no file
            raise type(error)(error.errno, error.strerror, str(path)) from error
        raise


def check_writable(path: str | Path) -> None:
    """Raise the OSError that writing this file would raise, before any work is done for it."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, and a file of that name is to be written")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    try:
        temporary.open("xb").close()
    except OSError as error:
        raise type(error)(f"{path} cannot be written ({error.strerror})") from error
    temporary.unlink()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}")


def opened(path: str | Path, most: int) -> BinaryIO:
    """A plain file of at most so many bytes, open for reading; a ValueError if it is larger, or a pipe or a device."""
    path = Path(path)
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path} is not a plain file")
    if status.st_size > most:
        raise ValueError(f"{path} is not read, for it has {status.st_size:,} bytes, and at most {most:,} make sense")
    return path.open("rb")


def read_text(path: str | Path, most: int = MOST_TEXT) -> str:
    """What a text file holds; a ValueError if it is no text, or too much of it."""
    with opened(path, most) as file:
        try:
            return file.read(most).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is damaged ({error})") from error


def read_json(path: str | Path, most: int = MOST_TEXT) -> Any:
    """What a JSON file holds, its texts `cleaned`; a ValueError that names the file if it is damaged."""
    text = read_text(path, most)
    try:
        return cleaned(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged ({error})") from error


def save(path: str | Path, kind: str, arrays: dict[str, np.ndarray], data: dict[str, Any]) -> None:
    """Save arrays and JSON data under a kind that `load` checks."""
    header = json.dumps({"kind": kind, "version": 1, "data": data}, default=lambda value: value.tolist())  # NumPy's
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{_HEADER: np.frombuffer(header.encode(), dtype=np.uint8)}, **arrays)
    write_atomically(path, buffer.getvalue())


def load(path: str | Path, kind: str, most: int = MOST) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Load what `save` wrote; a truncated, foreign or wrong kind of file is a ValueError that says so.

    Nothing is read of arrays that would take more than `most` bytes in all.
    """
    with opened(path, most) as file:
        try:
            _check_sizes(file, most)
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            header = json.loads(arrays.pop(_HEADER).tobytes().decode())
            its_kind, data = header["kind"], cleaned(header["data"])
            if not isinstance(data, dict):
                raise TypeError("its header holds no names")
        except Exception as error:  # a damaged file can fail in more ways than zipfile, zlib and NumPy have names for
            raise ValueError(
                f"{path} is not a file written by pcces, or it is damaged ({short(error, 200)})"
            ) from error
    if its_kind != kind:
        raise ValueError(f"{path} holds a {short(its_kind)}, not a {kind}")
    return arrays, data


def _check_sizes(file: BinaryIO, most: int) -> None:
    """Check that the arrays are plain, and exactly as large as declared: a small file can declare terabytes."""
    there = os.fstat(file.fileno()).st_size
    most = min(most, max(there, UNPACKED))
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        total = sum(entry.file_size for entry in entries)  # more than this is never unpacked
        if total > most or len(entries) > MOST_ARRAYS:
            raise ValueError(f"its {len(entries)} arrays would take {total:,} bytes")
        if any(entry.filename == f"{_HEADER}.npy" and entry.file_size > max(there, MOST_HEADER) for entry in entries):
            raise ValueError("its header is larger than makes sense")
        for entry in entries:
            with archive.open(entry) as stream:
                version = np.lib.format.read_magic(stream)
                read_header = {
                    (1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0,
                }[version]  # fmt: skip
                shape, _, dtype = read_header(stream)
                size = dtype.itemsize * int(np.prod(shape, dtype=object))
                if dtype.kind not in PLAIN or size != entry.file_size - stream.tell():
                    raise ValueError(f"{entry.filename} is no plain array of the size it says")

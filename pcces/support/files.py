"""Files without pickle, written atomically: arrays and plain data in one .npz."""

from __future__ import annotations

import io
import json
import os
import secrets
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

_HEADER = "__pcces__"


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file that is either the old one or the new one, whatever happens meanwhile."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save(path: str | Path, kind: str, arrays: dict[str, np.ndarray], data: dict[str, Any]) -> None:
    """Save arrays and JSON data under a kind that `load` checks."""
    header = json.dumps({"kind": kind, "version": 1, "data": data}, default=lambda value: value.tolist())  # NumPy's
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{_HEADER: np.frombuffer(header.encode(), dtype=np.uint8)}, **arrays)
    write_atomically(path, buffer.getvalue())


def load(path: str | Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Load what `save` wrote; a truncated, foreign or wrong kind of file is a ValueError that says so."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop(_HEADER).tobytes().decode())
        found = header["kind"]
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, OSError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a file written by pcces, or it is damaged ({error})") from error
    if found != kind:
        raise ValueError(f"{path} holds a {found}, not a {kind}")
    return arrays, header["data"]

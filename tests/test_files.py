"""Files that come from strangers: nothing is run, nothing is followed, and no more is read than makes sense."""

import errno
import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from pcces.cli.ending import in_words
from pcces.support import files
from pcces.support.text import printable


def npy(array=None, header=None):
    """An array as it stands in an archive; or a header alone, whatever it says."""
    buffer = io.BytesIO()
    if header is None:
        np.save(buffer, array)
        return buffer.getvalue()
    text = repr(header).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def packed(path, members, compression=zipfile.ZIP_DEFLATED):
    header = {"kind": "policy", "version": 1, "data": {}}
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("__pcces__.npy", npy(np.frombuffer(json.dumps(header).encode(), np.uint8)))
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_what_is_saved_is_loaded_and_compressed_by_hand_as_well(tmp_path):
    arrays = {"x": np.arange(3, dtype=np.float32), "name": np.array(["a", "bc"]), "none": np.zeros((0, 2))}
    files.save(tmp_path / "a.npz", "policy", arrays, {"task": "A"})
    loaded, data = files.load(tmp_path / "a.npz", "policy")
    assert data == {"task": "A"} and all(np.array_equal(loaded[name], value) for name, value in arrays.items())
    loaded["x"][0] = 7  # they can be written to
    assert files.load(packed(tmp_path / "b.npz", {"x.npy": npy(np.ones(4))}), "policy")[0]["x"].sum() == 4


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    bomb = packed(tmp_path / "bomb.npz", {"x.npy": npy(np.zeros(20 << 20))})  # 160 MiB in 160 KiB
    assert bomb.stat().st_size < 1 << 20
    code = (
        "import sys, resource; from pcces.support import files\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: files.load(sys.argv[1], 'policy')\n"
        "except ValueError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    said, more = subprocess.run([sys.executable, "-c", code, bomb], capture_output=True, text=True).stdout.splitlines()
    assert "its 2 arrays would take 167,772," in said
    assert int(more) < 30_000  # kilobytes


def test_a_header_is_no_bomb_either(tmp_path):
    """Lists of lists take fifty times as much memory as they take in a file, which compresses well besides."""
    header = b'{"kind": "policy", "version": 1, "data": {"task": [' + b"[]," * (2 << 20) + b"[]]}}"
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__pcces__.npy", npy(np.frombuffer(header, np.uint8)))
    assert path.stat().st_size < 1 << 15
    with pytest.raises(ValueError, match="its header is larger than makes sense"):
        files.load(path, "policy")
    files.save(path, "policy", {}, {"names": ["x" * 1000] * 5000})  # an honest one may be as large
    assert len(files.load(path, "policy")[1]["names"]) == 5000
    with pytest.raises(ValueError) as refused:
        files.load(packed(path, {}), "x" * 30)
    assert len(str(refused.value)) < 300


HEADERS = {
    "terabytes": {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)},
    "less than there is": {"descr": "<f8", "fortran_order": False, "shape": ()},
    "objects": {"descr": "|O", "fortran_order": False, "shape": (1,)},
    "records": {"descr": [("a", "<f8")], "fortran_order": False, "shape": (2,)},
    "code": "__import__('os').system('true')",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=list(HEADERS))
def test_arrays_that_are_not_what_they_say_are_refused(header, tmp_path):
    path = packed(tmp_path / "a.npz", {"x.npy": npy(header=header) + bytes(16)})
    with pytest.raises(ValueError, match=r"a\.npz is not a file written by pcces, or it is damaged"):
        files.load(path, "policy")


def test_more_than_asked_for_is_refused(tmp_path):
    files.save(tmp_path / "a.npz", "policy", {"x": np.zeros(1000)}, {})
    with pytest.raises(ValueError, match="at most 1,000 make sense"):
        files.load(tmp_path / "a.npz", "policy", most=1000)
    (tmp_path / "a.json").write_text("[" * 100)
    with pytest.raises(ValueError, match=r"a\.json is not read, for it has 100 bytes"):
        files.read_json(tmp_path / "a.json", most=99)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff\xfe", b"{", b"", b"1" * 5000], ids=lambda c: str(c[:4]))
def test_json_that_cannot_be_read_is_an_error_that_names_the_file(content, tmp_path):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.json is damaged"):
        files.read_json(tmp_path / "a.json")


def test_pipes_devices_and_folders_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("pipe", "device", "."):
        with pytest.raises(ValueError, match="is not a plain file"):
            files.read_text(tmp_path / name)
        with pytest.raises(ValueError, match="is not a plain file"):
            files.load(tmp_path / name, "policy")


def test_a_link_is_replaced_and_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "report.html").symlink_to(precious)
    files.write_atomically(tmp_path / "report.html", b"new")
    assert precious.read_text() == "mine" and not (tmp_path / "report.html").is_symlink()


def test_an_error_names_what_could_not_be_written_and_leaves_what_was_there(tmp_path, monkeypatch):
    (tmp_path / "metrics.csv").write_text("old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"metrics\.csv") as raised:
        files.write_atomically(tmp_path / "metrics.csv", b"new")
    assert in_words(raised.value) == f"the disk is full: {tmp_path / 'metrics.csv'} could not be written"
    assert str(raised.value) == f"[Errno {errno.ENOSPC}] No space left on device: '{tmp_path / 'metrics.csv'}'"
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.csv"]
    assert (tmp_path / "metrics.csv").read_text() == "old"


def test_whether_a_file_can_be_written_is_known_before_it_is(tmp_path):
    files.check_writable(tmp_path / "new" / "a.html")
    assert list((tmp_path / "new").iterdir()) == []
    with pytest.raises(OSError, match=r"x\.html cannot be written"):
        files.check_writable("/proc/x.html")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        files.check_writable(tmp_path)


def test_what_a_terminal_would_obey_is_written_out():
    assert printable("cost\x1b]0;title\x07\r\n\u2028\u202e\ud800") == r"cost\x1b]0;title\x07\r\n\u2028\u202e\ud800"
    assert printable("Größe, 大きさ ≤ 3") == "Größe, 大きさ ≤ 3"

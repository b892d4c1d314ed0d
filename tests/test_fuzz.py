"""Run folders and saved searches with changes made at random: nothing but clear errors, no code, no file touched outside."""

import contextlib
import json
import random
import shutil
import sys

import numpy as np
import pytest
from test_strangers import MODULE, finished, here

from pcces import report
from pcces.rl.folder import load

NASTY = [
    None, True, False, 0, -1, 1, 2, 1e308, -1e308, 10**400, float("nan"), float("inf"), 1 << 63, 0.5, "", "x", "evil:X-v0",
    "../../x", "/etc/passwd", "\x00", "a\x1b[2J", "<!--<script>", "$\\frac$", "\ud800", "\u202e", "x" * 20_000, [], [[]], {}, [None],
    [0.5], ["a"], [1e308, -1e308], {"n": 2}, {"n": 1 << 40}, {"a": {"b": []}}, [0.0] * 1000, "CartPole-v1", "brax/ant", "local",
]  # fmt: skip


def places(data, path=()):
    """The path of every value in JSON data."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def with_value(data, path, value):
    """The data with another value at a path; `...` leaves it out."""
    if not path:
        return value
    data = dict(data) if isinstance(data, dict) else list(data)
    if len(path) == 1 and value is ...:
        del data[path[0]]
    else:
        data[path[0]] = with_value(data[path[0]], path[1:], value)
    return data


def changed_json(text, rng):
    """Other values, or none, at some places."""
    data = json.loads(text)
    for _ in range(rng.choice((1, 1, 2))):
        path = rng.choice([path for path in places(data) if path])
        data = with_value(data, path, rng.choice([..., *NASTY]))
    return json.dumps(data).encode()


def changed_bytes(content, rng):
    """Flipped, left out, put in, cut off or doubled."""
    at, count = rng.randrange(len(content) + 1), rng.choice((1, 1, 4, 100))
    way = rng.randrange(6)
    if way == 0:
        return content[:at]
    if way == 1:
        return content[:at] + rng.randbytes(count) + content[at:]
    if way == 2:
        return content[:at] + content[at + count :]
    if way == 3:
        return content + content
    if way == 4:
        return content[: at // 2] + content[at:]
    return content[:at] + rng.randbytes(count) + content[at + count :]


def changed_table(content, rng):
    """One cell of a CSV file."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    row = rng.choice(rows[:1] + rows)
    row[rng.randrange(len(row))] = str(rng.choice(NASTY)).encode(errors="replace").decode()
    return "\n".join(map(",".join, rows)).encode(errors="replace")


def change_json(file, rng):
    file.write_bytes(changed_json(file.read_text(), rng))


def change_table(file, rng):
    file.write_bytes(changed_table(file.read_bytes(), rng))


def one_changed(array, rng):
    """Another number at one place."""
    array = array.copy()
    if array.size and array.dtype.kind in "fi":
        value = rng.choice([0, -1, 1, 5, 1 << 40, 1e300, -1e300, 1e-300, np.nan, np.inf, -np.inf])
        with contextlib.suppress(OverflowError, ValueError):
            array.reshape(-1)[rng.randrange(array.size)] = value
    return array


def change_arrays(file, rng):
    """Another value, shape or type of an array, or of a name in the header."""
    with np.load(file) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = arrays.pop("__pcces__").tobytes()
    if arrays and rng.random() < 0.7:
        name, another = rng.choice(list(arrays)), rng.choice(list(arrays))
        array = arrays[name]
        others = [
            array[:-1] if array.ndim else array,
            array[None],
            array.astype("U3"),
            np.zeros(0),
            np.array("x"),
            None,
        ]
        if array.dtype.kind != "U":
            others += [array.astype(np.int8), array.astype(complex), -array.astype(float), array.astype(float) * 1e30]
            others += [np.full(array.shape, value) for value in (np.nan, 1e300, -1.0)]
            others += [np.zeros_like(array), array.T, array.astype(bool), np.repeat(array[None], 2, axis=0)]
        others += [arrays[another], *[one_changed(array, rng) for _ in range(4)]]
        arrays[name] = rng.choice(others)
        if arrays[name] is None:
            del arrays[name]
    else:
        header = changed_json(header, rng)
    np.savez(file, __pcces__=np.frombuffer(header, np.uint8), **arrays)


CHANGES = {".json": change_json, ".csv": change_table, ".npz": change_arrays}


def change(folder, rng):
    """Something in the folder, at random."""
    files = [file for file in sorted(folder.iterdir()) if file.suffix in CHANGES and not file.is_symlink()]
    file = rng.choice(files)
    way = rng.random()
    if way < 0.05:
        file.unlink()
    elif way < 0.1:
        file.unlink()
        file.symlink_to(rng.choice(["/dev/zero", "/dev/null", "/proc/self/environ", ".", "nowhere", "config.json"]))
    elif way < 0.3 or (file.suffix == ".npz" and way < 0.5):
        file.write_bytes(changed_bytes(file.read_bytes(), rng))
    else:
        with contextlib.suppress(Exception):  # it was changed before, and is no such file any more
            CHANGES[file.suffix](file, rng)


def looked_at(folder):
    """All that a look at a run reads and computes; a clear error is as good."""
    try:
        run = load(folder)
        said = f"{run!r} {run.words()} {run.limits()}"
        assert said.isprintable()
        if run.x is not None:
            run.policy(np.zeros(run.shape.observation_size, np.float32), np.random.default_rng(0))
        if any(run.metrics.values()):
            report.charts([run])
        assert "\x1b" not in report.make_page([run]).html()
    except (ValueError, FileNotFoundError) as error:
        said = str(error)
    else:
        return True
    assert said
    return False


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A run of a task in JAX, one of a simulator, and a module that nobody may import."""
    root = tmp_path_factory.mktemp("originals")
    return [finished(root / "jax", "CartSafe-v0", engine="device"), finished(root / "simulator", "Pendulum-v1")]


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A place with a file beside it that must stay as it is, and a module that must not be imported."""
    (tmp_path / "evil.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    yield tmp_path
    assert set(tmp_path.iterdir()) - before <= {tmp_path / "run"}
    assert "evil" not in sys.modules


@pytest.mark.parametrize("part", range(4))
def test_changed_run_folders_are_refused_in_words_or_mean_something(part, originals, watched):
    rng = random.Random(part)
    good = 0
    for _ in range(150):
        folder = shutil.copytree(rng.choice(originals), watched / "run")
        for _ in range(rng.choice((1, 1, 1, 3))):
            change(folder, rng)
        good += looked_at(folder)
        shutil.rmtree(folder)
    assert 10 < good < 140


@pytest.mark.parametrize("part", range(4))
def test_commands_about_changed_run_folders_end_with_a_code_of_theirs(part, originals, watched):
    rng = random.Random(part)
    for number in range(12):
        folder = shutil.copytree(originals[1], watched / "run")
        change(folder, rng)
        command = [("report",), ("plot",), ("evaluate", "--episodes", 2), ("certify", "--episodes", 2), ("render",)][
            number % 5
        ]
        done = here(*command[:1], folder, *command[1:])
        assert done.exit_code in (0, 1, 2) and isinstance(done.exception, SystemExit | None), done.exception
        assert "\x1b" not in done.output
        shutil.rmtree(folder)

"""Run folders from strangers: they run no code, touch nothing outside, and what is wrong with them is said in words."""

import json
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import pcces
from pcces.cli import app
from pcces.core.certificate import Certificate
from pcces.policies import find_algorithm
from pcces.rl.normalizer import frozen
from pcces.rl.request import Request

MODULE = """
from pathlib import Path
import gymnasium
from gymnasium.envs.classic_control import PendulumEnv

(Path(__file__).parent / "ran").touch()
gymnasium.register("Evil-v0", entry_point=PendulumEnv, max_episode_steps=10)
"""


def here(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def finished(folder, task="Pendulum-v1", name=None, **asked):
    """A run's folder without a training: a policy of zeros that is said to be certified, for a task of that name."""
    (run,) = Request.of(task, [0], find_algorithm("pcces"), {"engine": "local", "certify_episodes": 2} | asked).runs()
    run.config["task"] = name or run.config["task"]
    size, limits = run.task.observation_size, run.problem
    run.path, run.x = folder, np.zeros(run.shape.size, np.float32)
    run.normalizer = frozen(np.zeros(size, np.float32), np.ones(size, np.float32))
    run.certificate = Certificate(True, 0.95, (-0.5,) * len(limits.names), 100, "betting")
    means = {name + error: 1.0 for name in ("return", "entropy", "length") for error in ("", "_error")}
    costs = [0.5] * len(limits.cost_names)
    names = {"cost_names": list(limits.cost_names), "thresholds": list(limits.thresholds)}
    run.final = {"episodes": 100, "costs": costs, "costs_error": costs} | means | names
    columns = ("iteration", "return", "entropy", "length", "steps", "seconds", "sigma", "success")
    run.metrics = {name: [0.0, 1.0] for name in (*columns, *(f"cost_{name}" for name in limits.cost_names))}
    folder.mkdir(parents=True, exist_ok=True)
    run.reopen()
    run.save_metrics()
    run.save_policy()
    return folder


def edited(folder, name="config.json", **changes):
    """The folder with other values in one of its JSON files."""
    data = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(data | changes))
    return folder


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A place for a run with a module beside it that shows when it is imported, where Python would find it."""
    folder = tmp_path / "strangers_run"
    folder.mkdir()
    (folder / "evilmod.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.startswith(("strangers_run", "evilmod"))]:
        del sys.modules[name]


# -- no code -----------------------------------------------------------------------------------------------------------

COMMANDS = [
    ("report",), ("plot",), ("render",), ("evaluate", "--episodes", 2), ("certify", "--episodes", 2),
    ("evaluate", "--episodes", 2, "--engine", "local"), ("evaluate", "--episodes", 2, "--engine", "device"),
]  # fmt: skip
NAMES = ("strangers_run.evilmod:Evil-v0", "evilmod:Evil-v0", "evilmod:CartPole-v1", "this:X-v0", "evilmod:", ":Evil-v0")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("simulated", [True, False], ids=["simulator", "jax"])
def test_a_strangers_folder_imports_nothing(stranger, name, simulated):
    finished(stranger, name=name)
    if not simulated:
        edited(stranger, simulator=None, engine="device")
    before = set(sys.modules)
    for command, *options in COMMANDS:
        done = here(command, stranger, *options)
        assert done.exit_code in (0, 1, 2) and isinstance(done.exception, SystemExit | None), done.exception
    with pytest.raises(ValueError):
        pcces.load(stranger).evaluate(2)
    assert not (stranger / "ran").exists()
    assert not {"strangers_run", "evilmod", "this"} & (set(sys.modules) - before)


@pytest.mark.parametrize("address", ["evilmod:Wrapper", " evilmod : a b", "evilmod:"])
def test_neither_do_the_options_of_a_simulator(stranger, address):
    config = json.loads((finished(stranger) / "config.json").read_text())
    simulator = config["simulator"] | {"options": {"wrappers": [{"entry_point": address}]}}
    edited(stranger, simulator=simulator)
    done = here("evaluate", stranger, "--episodes", 2)
    assert done.exit_code == 2 and "a run folder imports no modules: import evilmod first" in done.stderr
    assert not (stranger / "ran").exists()


def test_arguments_that_a_task_in_jax_does_not_take_are_refused(tmp_path):
    folder = edited(finished(tmp_path / "run", "CartSafe-v0", engine="device"), env_args={"a": {"b": []}})
    with pytest.raises(ValueError, match="CartSafe-v0 is not made with a"):
        pcces.load(folder)


def test_a_matplotlibrc_beside_a_run_is_not_obeyed(tmp_path, monkeypatch):
    """matplotlib reads one in the current folder, and LaTeX reads files that a name tells it to."""
    folder = finished(tmp_path / "run", "CartSafe-v0")
    drawn = here("plot", folder, "--out", tmp_path / "plain.png")
    code = "import sys; from pcces.__main__ import main; sys.argv = ['pcces', 'plot', '.']; main()"
    (folder / "matplotlibrc").write_text("text.usetex: True\nfigure.dpi: 1e9\nlines.linewidth: 99\n\x1b[2J: 1\n")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert drawn.exit_code == done.returncode == 0 and done.stderr == ""
    assert (folder / "curves.png").read_bytes() == (tmp_path / "plain.png").read_bytes()


def test_a_module_that_is_named_by_the_person_is_imported(tmp_path, monkeypatch):
    (tmp_path / "kindmod.py").write_text(MODULE.replace("Evil", "Kind"))
    monkeypatch.chdir(tmp_path)
    finished(tmp_path / "run", name="kindmod:Kind-v0")
    refused = here("evaluate", "run", "--episodes", 2)
    assert refused.exit_code == 2 and "--import kindmod from the folder it is in" in refused.stderr
    assert here("evaluate", "run", "--episodes", 2, "--import", "kindmod").exit_code == 0
    del sys.modules["kindmod"]


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_certificate_under_other_limits_than_the_configuration_is_refused(tmp_path):
    folder = finished(tmp_path / "run", "CartSafe-v0")
    assert pcces.load(folder).certificate.holds
    for name, changes in (
        ("config.json", {"thresholds": [0.05]}),
        ("config.json", {"entropy_bounds": [0.0, 12.0]}),
        ("certificate.json", {"limits": []}),
    ):
        other = shutil.copytree(folder, tmp_path / name / str(len(changes)) / str(changes))
        edited(other, name, **changes)
        with pytest.raises(ValueError, match=r"certificate\.json is damaged \(it is about other limits than config"):
            pcces.load(other)
    # Certificates of earlier versions have the limits in words only.
    said = json.loads((folder / "certificate.json").read_text())
    del said["limits"]
    (folder / "certificate.json").write_text(json.dumps(said))
    assert pcces.load(folder).certificate.holds
    for changes in ({"thresholds": [0.05]}, {"entropy_bounds": [0.0, 12.0]}):
        other = edited(shutil.copytree(folder, tmp_path / str(changes)), **changes)
        with pytest.raises(ValueError, match="other limits"):
            pcces.load(other)


def test_a_certificate_that_contradicts_itself_is_refused(tmp_path):
    folder = finished(tmp_path / "run", "CartSafe-v0")
    said = json.loads((folder / "certificate.json").read_text())["certificate"]
    edited(folder, "certificate.json", certificate=said | {"upper_bounds": [-1.0, 0.5, -1.0]})
    with pytest.raises(ValueError, match="says that limits hold, and has bounds that do not"):
        pcces.load(folder)


def test_a_certificate_far_from_what_its_own_episodes_show_is_refused(tmp_path):
    """Thresholds edited wherever they stand: "CERTIFIED: off_centre at most -130 (limit 0.05)"."""
    folder = finished(tmp_path / "run", "CartSafe-v0")
    for file in folder.glob("*.json"):
        file.write_text(file.read_text().replace("30.0", "-49.0"))
    with pytest.raises(ValueError, match="says that limits hold, and its episodes are far from keeping them"):
        pcces.load(folder)
    said = json.loads((folder / "certificate.json").read_text())
    edited(folder, "certificate.json", fresh_episodes=said["fresh_episodes"] | {"costs": [-49.0]})
    assert pcces.load(folder).certificate.holds


def test_all_policies_kept_with_the_results_still_load():
    from pathlib import Path

    folders = [file.parent for file in Path("results/policies").glob("*/config.json")]
    assert len(folders) >= 13 and all(pcces.load(folder).certificate.holds for folder in folders)


def test_what_is_said_to_be_typed_does_no_more_than_it_says(tmp_path):
    """A folder and a task may be called anything; a shell must see one word where they stand."""
    folder = finished(tmp_path / "run; rm -rf $HOME", "CartSafe-v0")
    edited(folder, task="CartSafe-v0")
    (folder / "policy.npz").unlink()
    done = here("evaluate", folder)
    advice = done.stderr.partition("continue with: ")[2]
    assert done.exit_code == 2 and shlex.split(advice) == [
        "pcces", "train", "CartSafe-v0", "--out", str(folder), "--resume",
    ]  # fmt: skip

"""A run of minimize is a file: it goes on after a kill, and whatever ends it early loses nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import LinearConstraint

import pcces
from pcces.blackbox import loop

PROBLEM = {"bounds": [(-2.0, 2.0)] * 2, "max_evaluations": 200, "common_random_numbers": True, "rng": 3}


def noisy(x, rng):
    """The noise comes from the seed, so that a search that is resumed sees the same."""
    a, b = 0.05 * rng.standard_normal(2)
    return (x[0] - 1) ** 2 + (x[1] - 1) ** 2 + a, x[0] + x[1] - 1 + b


def solve(fun=noisy, x0=(0.0, 0.0), **options):
    return pcces.minimize(fun, x0, **{**PROBLEM, **options})


def failing_after(calls, error):
    made = []

    def fun(x, rng):
        made.append(x)
        if len(made) > calls:
            raise error
        return noisy(x, rng)

    return fun


SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[2])
from test_checkpoint import noisy, solve
def slow(x, rng):
    time.sleep(0.005)
    return noisy(x, rng)
solve(slow, checkpoint=sys.argv[1])
"""


def test_a_killed_run_goes_on_to_the_same_end(tmp_path, monkeypatch):
    path, whole = tmp_path / "run.npz", solve()
    here = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(pcces.__file__).parents[1]), here])}
    code = f"import pcces.blackbox.loop as l; l.OFTEN, l.CHEAP = 0.0, 1.0\n{SCRIPT}"
    process = subprocess.Popen([sys.executable, "-c", code, str(path), here], env=environment)
    made = 0
    for _ in range(600):
        time.sleep(0.05)
        if path.exists() and (made := pcces.Optimizer.load(path).state.budget.evaluations) > 30:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    made = pcces.Optimizer.load(path).state.budget.evaluations
    assert 30 < made < whole.nfev
    calls = []
    resumed = solve(lambda x, rng: calls.append(1) or noisy(x, rng), checkpoint=path)
    assert len(calls) == whole.nfev - made == resumed.nfev - made
    assert np.array_equal(resumed.x, whole.x) and resumed.message == whole.message
    assert np.array_equal(resumed.evaluations["f"], whole.evaluations["f"])
    again = solve(lambda x, rng: calls.append(1) or noisy(x, rng), checkpoint=path)  # it is finished
    assert len(calls) == whole.nfev - made and np.array_equal(again.x, whole.x)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"x0": (0.0, 0.5)}, "x0"),
        ({"bounds": [(-2.0, 2.0), (-2.0, 3.0)]}, "bounds"),
        ({"max_evaluations": 500, "confidence": 0.9}, "max_evaluations, confidence"),
        ({"gamma": 1.5}, "gamma"),
        ({"limits": [pcces.limits.Quantile(0.9)]}, "limits"),
        ({"constraints": LinearConstraint([[1.0, 1.0]], ub=3.0)}, "linear"),
        ({"rng": 4}, "rng"),
    ],
)
def test_a_checkpoint_of_another_problem_is_refused(other, named, tmp_path):
    path = tmp_path / "run.npz"
    pcces.Optimizer([0.0, 0.0], **PROBLEM).save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=rf"run.npz is of another problem: it differs in {named}; give what"):
        solve(checkpoint=path, **other)
    assert path.read_bytes() == before


def test_without_a_seed_the_files_is_taken(tmp_path):
    pcces.Optimizer([0.0, 0.0], **PROBLEM).save(tmp_path / "run.npz")
    assert solve(checkpoint=tmp_path / "run.npz", rng=None).success


def test_what_cannot_be_written_or_read_is_said_before_the_first_evaluation(tmp_path):
    calls = []
    (tmp_path / "other.npz").write_text("hello")
    for path, error in ((tmp_path, IsADirectoryError), (tmp_path / "other.npz", ValueError)):
        with pytest.raises(error):
            solve(lambda x, rng: calls.append(1) or noisy(x, rng), checkpoint=path)
    with pytest.raises(ValueError, match="a search can only be saved if its strategy is given by name"):
        solve(checkpoint=tmp_path / "a.npz", strategy=pcces.strategies.guided())
    assert calls == []


def test_a_checkpoint_is_written_after_each_slow_batch_or_every_few_seconds(tmp_path, monkeypatch):
    clock, saved = [0.0], []
    monkeypatch.setattr(loop.time, "monotonic", lambda: clock[0])
    optimizer = pcces.Optimizer([0.0, 0.0], **PROBLEM)
    monkeypatch.setattr(optimizer, "save", lambda path: saved.append(clock[0]))
    keeper = loop.Keeper(optimizer, tmp_path / "run.npz")
    for took in (0.5, 0.5, 2.5, 0.5, 5.0):
        clock[0] += took
        optimizer.state.budget.evaluations += 1
        keeper(took)
    assert saved == [3.5, 9.0]  # three seconds after the start, and after the slow one
    keeper.write()
    assert len(saved) == 2  # nothing new


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)], ids=["Ctrl-C", "exit"])
def test_an_interrupt_brings_the_best_so_far(error, tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(type(error)) as caught:
        solve(failing_after(100, error), checkpoint=path)
    res = caught.value.result
    assert 70 < res.nfev <= 100 and res.status == 3 and res.running and not res.success and not res.certificate.holds
    assert f"stopped by {type(error).__name__} after {res.nfev} of 200 evaluations; nothing is certified" in res.message
    assert res.fun < 0.8 < 1.9 and len(res.evaluations) == res.nfev
    (note,) = caught.value.__notes__
    assert "attribute `result`" in note and f"checkpoint='{path}'" in note
    assert solve(checkpoint=path).nfev == solve().nfev


def test_ctrl_c_waits_until_what_was_evaluated_is_told(monkeypatch):
    tell = pcces.Optimizer.tell

    def interrupted(self, *told, **repeated):
        if self.state.budget.evaluations > 50:
            os.kill(os.getpid(), signal.SIGINT)  # in the middle of it
        tell(self, *told, **repeated)

    monkeypatch.setattr(pcces.Optimizer, "tell", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        solve()
    assert caught.value.result.nfev == len(caught.value.result.evaluations) > 50


def test_an_error_of_the_callback_loses_nothing():
    def callback(result):
        if result.nfev > 100:
            raise ZeroDivisionError("my own")

    with pytest.raises(ZeroDivisionError, match="my own") as caught:
        solve(callback=callback)
    assert caught.value.result.nfev > 100 and np.isfinite(caught.value.result.fun)


def test_a_late_wrong_value_loses_nothing():
    calls = []

    def longer(x, rng):
        calls.append(1)
        f, c = noisy(x, rng)
        return (f, [c, c]) if len(calls) > 150 else (f, c)

    with pytest.raises(ValueError, match="different numbers of constraints") as caught:
        solve(longer)
    assert 100 < caught.value.result.nfev <= 150
    with pytest.raises(ValueError, match="outside its constraint_range") as caught:
        solve(lambda x, rng: (noisy(x, rng)[0], 9.0 if len(calls.append(1) or calls) > 280 else -0.5),
              constraint_range=((-1, 1),))  # fmt: skip
    assert caught.value.result.nfev > 100


def test_a_mistake_that_shows_at_once_is_only_that():
    with pytest.raises(TypeError, match="fun returned 'a'") as caught:
        solve(lambda x, rng: "a")
    assert not hasattr(caught.value, "result") and not hasattr(caught.value, "__notes__")

"""Workers that die: what they were evaluating is evaluated again, and counts."""

import os
import signal
from pathlib import Path

import numpy as np

import pcces
from pcces.engines.examples import Squares
from pcces.engines.pool import Lost
from pcces.engines.processes import LocalPool


class Deadly:
    """x^2, noting every call in a file; every so many calls the worker dies in the middle of one."""

    def __init__(self, calls: Path, every: int, limited: bool = False):
        self.calls, self.every, self.limited = calls, every, limited

    def __call__(self, x):
        with self.calls.open("ab", buffering=0) as file:
            file.write(b"x")
            made = file.tell()
        if made % self.every == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        f = float((x**2).sum())
        return (f, [1 - x[0] + 0.01 * np.sin(1e6 * made)]) if self.limited else f


def test_no_more_evaluations_are_made_than_asked_for_and_repeated_ones_count(tmp_path):
    calls = tmp_path / "calls"
    res = pcces.minimize(Deadly(calls, 11), np.ones(3), max_evaluations=80, workers=2, rng=0)
    made = calls.stat().st_size
    deaths = made // 11
    assert deaths >= 5 and made <= res.nfev <= 80
    told = len(res.evaluations) + res.evaluations.dropped
    repeated = res.nfev - told
    assert f"; evaluations made again because their worker died: {repeated}" in res.message
    assert made - told <= repeated <= 4 * deaths  # a worker is given up to four at a time


def test_the_certificate_gets_all_of_its_samples(tmp_path):
    calls = tmp_path / "calls"
    res = pcces.minimize(
        Deadly(calls, 25, limited=True), [2.0], max_evaluations=100, workers=2, rng=0, strategy="cma", population=4
    )
    assert res.certificate.holds and res.certificate.samples >= 10 and res.failures == 0
    assert calls.stat().st_size <= res.nfev


def test_repeats_are_kept_in_files(tmp_path):
    opt = pcces.Optimizer([1.0, 1.0], max_evaluations=100, rng=0)
    batch = opt.ask()
    opt.tell(batch, (batch.points**2).sum(1), repeated=3)
    opt.save(tmp_path / "a.npz")
    again = pcces.Optimizer.load(tmp_path / "a.npz")
    assert again.evaluations_left == opt.evaluations_left == 100 - len(batch) - 3
    assert again.state.budget.repeated == 3 and again.result.nfev == len(batch) + 3


def test_what_may_not_be_run_again_is_lost(tmp_path):
    with LocalPool(Squares, workers=1) as pool:
        pool.repeats.left = 1
        once = [[f"once:{tmp_path / name}"] for name in "abc"]
        results = pool.map([*once, [2]])
        assert [isinstance(result, Lost) for result in results] == [False, True, True, False]
        assert (pool.repeats.made, pool.repeats.left) == (1, 0)
        assert pool.map([[1, f"once:{tmp_path / 'd'}", 3]]) == [
            [Lost([part], "worker killed by SIGKILL") for part in (1, f"once:{tmp_path / 'd'}", 3)]
        ]
        pool.repeats.left = 3
        assert pool.map([[1, f"once:{tmp_path / 'e'}", 3]])[0][::2] == [1, 9] and pool.repeats.made == 4

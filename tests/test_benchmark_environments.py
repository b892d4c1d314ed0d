"""The comparison on users' environments: its rows, and that the battery in cents earns a hundred times as much."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import environments
from pcces.envs import make, registry

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def battery(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(registry, "_own", {})
    yield
    sys.modules.pop("battery", None)


def test_rows_say_what_is_certified_and_how_often_a_limit_was_broken():
    runs = [
        {"environment": "drone", "algorithm": "cpo", "seed": seed, "return": value, "certified": held, "over": over}
        for seed, value, held, over in ((10, 50.0, True, 0.25), (11, 54.0, True, 0.0), (12, 99.0, False, 0.5))
    ]
    assert environments.cell(runs) == "52 ± 2; 2 of 3; 25 %"
    assert environments.cell(runs[2:]) == "none; 0 of 1; 50 %"
    rows = environments.table(runs).splitlines()
    assert len(rows) == 2 + len(environments.ARMS)
    assert "| drone (0.5 M steps) | - | - | 52 ± 2; 2 of 3; 25 % |" in rows


def test_every_environment_is_there(battery):
    for arm in environments.ARMS.values():
        assert not arm.example or (EXAMPLES / f"{arm.example}.py").exists()


def test_in_cents_the_battery_earns_a_hundred_times_as_much(battery):
    __import__("battery")
    environments.in_cents()
    rewards = []
    for name in ("Battery-v0", "BatteryCents-v0"):
        task = make(name)
        state = task.reset(jax.random.key(0))
        rewards.append(float(task.step(state, jnp.array([-1.0]), jax.random.key(1)).reward))
    assert rewards[1] == pytest.approx(100 * rewards[0]) and np.abs(rewards[0]) > 0

"""A training that ends before its budget is spent."""

from __future__ import annotations

import numpy as np
import pytest

import pcces
from pcces.rl.stopping import LEAST, Stopping, seconds_in, stalled

SMALL = dict(
    hidden=(4,), critic_hidden=(4,), epoch_steps=600, iterations=40, passes=1, certify_episodes=20, confidence=0.5,
    threshold=150,
)  # fmt: skip


def train(**more):
    return pcces.train("CartSafe-v0", report=False, **SMALL | more)


def test_a_target_ends_a_training_only_where_limits_are_kept():
    low = train(target=-1e9)
    over = np.array(low.metrics["over_threshold"])
    assert len(over) < 40 and not over[-LEAST:].any() and low.certificate is not None
    assert len(train(target=1e9).metrics["return"]) == 40


def test_time_ends_a_training():
    run = train(max_time=1e-3)
    assert len(run.metrics["return"]) == 1 and run.certificate is not None


@pytest.mark.parametrize("way", ["returns True", "raises StopIteration"])
def test_a_callback_ends_a_training_and_sees_the_policy(way):
    seen = []

    def callback(runs):
        seen.append(runs[0].policy(np.zeros(4), np.random.default_rng(0)))
        if len(seen) == 3:
            if way == "raises StopIteration":
                raise StopIteration
            return True
        return None

    run = train(callback=callback)
    assert len(run.metrics["return"]) == len(seen) == 3 and set(seen) <= {0, 1}
    assert run.certificate is not None and run.x is not None


def test_patience_is_lost_where_returns_stay_and_not_where_they_rise():
    rng = np.random.default_rng(0)
    steps = np.arange(1.0, 61)
    flat = 10 + rng.standard_normal(60)
    assert not stalled(flat + steps, np.zeros(60), steps, 20)
    assert not stalled(flat, np.zeros(60), steps[:60], 31)  # there was not time enough
    assert stalled(flat - 0.1 * steps, np.zeros(60), steps, 20)
    assert not stalled(flat, np.r_[np.ones(40), np.zeros(20)], steps, 20)  # limits are kept at last
    assert Stopping(patience=20).reason({"return": flat - 0.1 * steps, "steps": steps}, 0.0) is not None


@pytest.mark.parametrize(
    ("given", "words"),
    [({"max_time": 0}, "max_time must be a positive number, got 0"), ({"target": float("nan")}, "target must be a finite"),
     ({"patience": -1.0}, "patience must be a positive number")],
)  # fmt: skip
def test_what_cannot_end_a_training_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        train(**given)


def test_times_as_people_write_them():
    assert [seconds_in(text) for text in ("5", "5 s", "2min", "0.5h")] == [5.0, 5.0, 120.0, 1800.0]
    for wrong in ("soon", "-3", "1.2.3", ".", ""):
        with pytest.raises(ValueError, match="a time is a number of seconds"):
            seconds_in(wrong)

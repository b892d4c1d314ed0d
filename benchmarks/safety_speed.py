"""How fast the safety tasks are on one core, beside the original: a markdown table. Run by `make bench-safety`.

Every round repeats the same steps, in CPU time of this process; the fastest round counts, since other work on the
machine can only slow one down. Resets are the median over layouts. The original's figures are those of Safety-Gymnasium
1.0.0 on MuJoCo 2.3.3, recorded once.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import gymnasium
import mujoco
import numpy as np
from mujoco import rollout

from pcces.envs.safety import SafetyBatch

ORIGINAL = {"PointGoal1": 1860, "PointButton1": 599, "CarGoal1": 1290}  # environment steps a second
SUBSTEPS = 10


def cpu_time(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def single(name: str, steps: int, rounds: int) -> tuple[float, float]:
    """Steps a second and median reset in seconds, through ``gymnasium.make``."""
    env = gymnasium.make(f"pcces/{name}-v0")
    env.reset(seed=0)
    actions = smooth_actions(steps, 1)[:, 0]

    def episode() -> None:
        for action in actions:
            env.step(action)

    rates, resets = [], []
    for _ in range(rounds):
        env.reset(seed=0)
        rates.append(steps / cpu_time(episode))
        resets += [cpu_time(env.reset) for _ in range(20)]
    return max(rates), float(np.median(resets))


def batched(name: str, count: int, steps: int, rounds: int) -> float:
    """Steps a second of a batch, counting every environment's."""
    batch = SafetyBatch(name, count)
    actions = smooth_actions(steps, count)

    def episode() -> None:
        for action in actions:
            batch.step(action)

    rates = []
    for _ in range(rounds):
        batch.reset(seed=0)
        rates.append(steps * count / cpu_time(episode))
    return max(rates)


def physics(name: str, count: int, steps: int, rounds: int) -> tuple[float, float]:
    """Steps a second of the physics alone: in the batch's own loop, and in MuJoCo's rollout on the calling thread."""
    batch = SafetyBatch(name, count)
    model, state = batch.model, mujoco.mjtState.mjSTATE_FULLPHYSICS
    spec = int(mujoco.mjtState.mjSTATE_CTRL)
    if model.nmocap:
        spec |= int(mujoco.mjtState.mjSTATE_MOCAP_POS) | int(mujoco.mjtState.mjSTATE_MOCAP_QUAT)
    states = np.empty((count, mujoco.mj_stateSize(model, state)))
    warm = np.zeros((count, model.nv))
    # One physics step more than an environment step has: its sensors are those of the state the ten lead to.
    controls = np.zeros((count, SUBSTEPS + 1, mujoco.mj_stateSize(model, spec)))
    own, theirs = [], []
    with rollout.Rollout(nthread=0) as roll:
        actions = smooth_actions(steps, count)
        for _ in range(rounds):
            batch.reset(seed=0)
            for i, data in enumerate(batch.data):
                mujoco.mj_getState(model, data, states[i], state)
                warm[i] = data.qacc_warmstart
                controls[i, :, 2:] = np.concatenate([data.mocap_pos.ravel(), data.mocap_quat.ravel()])
            own.append(steps * count / cpu_time(lambda: [batch._simulate(action) for action in actions]))
            spent = 0.0
            scratch = mujoco.MjData(model)
            for action in actions:
                controls[:, :, :2] = action[:, None]
                start = time.process_time()
                after, _ = roll.rollout(model, [scratch], states, controls, control_spec=spec, initial_warmstart=warm)
                spent += time.process_time() - start
                states = after[:, SUBSTEPS - 1].copy()
            theirs.append(steps * count / spent)
    return max(own), max(theirs)


def smooth_actions(steps: int, count: int) -> np.ndarray:
    """Actions that wander, as a policy's do, rather than white noise."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(steps, count, 2))
    for t in range(1, steps):
        noise[t] = 0.95 * noise[t - 1] + 0.3 * noise[t]
    return np.clip(noise, -1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=64, help="environments in a batch")
    parser.add_argument("--rounds", type=int, default=10, help="repetitions, of which the fastest counts")
    options = parser.parse_args()
    columns = ["", "original", "one environment", f"batch of {options.count}", "reset, median", "own loop", "rollout"]
    print("| " + " | ".join(columns) + " |")
    print("| --- " * len(columns) + "|")
    for name, original in ORIGINAL.items():
        one, reset = single(name, 500, options.rounds)
        many = batched(name, options.count, 50, options.rounds)
        own, theirs = physics(name, options.count, 50, options.rounds)
        rates = [f"{original:,}/s", *(f"{rate:,.0f}/s ({rate / original:.1f} x)" for rate in (one, many))]
        cells = [name, *rates, f"{1000 * reset:.2f} ms", f"{own:,.0f}/s", f"{theirs:,.0f}/s"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()

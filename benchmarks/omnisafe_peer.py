"""OmniSafe's PPO-Lagrangian and CPO on two tasks of ours; one JSON line a run in out/omnisafe.jsonl.

    make bench-omnisafe

Runs in an environment of its own (omnisafe-requirements.txt). OmniSafe knows no discrete actions, so CartSafe takes the
sign of a number. The tasks are written out in NumPy, all of an epoch's episodes side by side; a test compares them with
pcces's step by step. Settings that both libraries have are made equal: networks, episodes an epoch, discounts, step
sizes, passes and minibatches; everything else is OmniSafe's default.
"""

import argparse
import csv
import json
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

OUT = Path("out/omnisafe.jsonl")


class Copies:
    """Copies of a task that start again when their episodes end."""

    size: int
    limit: int  # on the steps of an episode
    cost_limit: float

    def __init__(self, count: int, rng: np.random.Generator):
        self.rng = rng
        self.state = np.zeros((count, self.size))
        self.time = np.zeros(count, int)
        self.begin(np.ones(count, bool))

    def begin(self, which: np.ndarray) -> None:
        self.state[which] = self.start(int(which.sum()))
        self.time[which] = 0

    def step(self, action: np.ndarray) -> tuple[np.ndarray, ...]:
        """State, reward, cost, terminated, truncated."""
        self.state, reward, cost, terminated = self.move(self.state, action)
        self.time += 1
        return self.state.copy(), reward, cost, terminated, (self.time >= self.limit) & ~terminated

    def start(self, count: int) -> np.ndarray:
        raise NotImplementedError

    @staticmethod
    def move(state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, ...]:
        raise NotImplementedError


class MountainCars(Copies):
    size, limit, cost_limit = 2, 999, 10.0

    def start(self, count: int) -> np.ndarray:
        return np.stack([self.rng.uniform(-0.6, -0.4, count), np.zeros(count)], axis=1)

    @staticmethod
    def move(state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, ...]:
        position, velocity = state.T
        velocity = np.clip(velocity + 0.0015 * np.clip(action, -1, 1) - 0.0025 * np.cos(3 * position), -0.07, 0.07)
        position = np.clip(position + velocity, -1.2, 0.6)
        velocity = np.where((position <= -1.2) & (velocity < 0), 0.0, velocity)
        there = (position >= 0.45) & (velocity >= 0)
        reward, cost = 100.0 * there - 0.1 * action**2, (position <= -1.15).astype(float)
        return np.stack([position, velocity], axis=1), reward, cost, there


class SignCarts(Copies):
    size, limit, cost_limit = 4, 300, 30.0

    def start(self, count: int) -> np.ndarray:
        return self.rng.uniform(-0.05, 0.05, (count, 4)) + np.array([0, 0, np.pi, 0])

    @staticmethod
    def move(state: np.ndarray, action: np.ndarray) -> tuple[np.ndarray, ...]:
        x, x_dot, theta, theta_dot = state.T
        sin, cos = np.sin(theta), np.cos(theta)
        push = (np.where(action > 0, 10.0, -10.0) + 0.05 * theta_dot**2 * sin) / 1.1
        theta_acc = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        x_acc = push - 0.05 * theta_acc * cos / 1.1
        x, x_dot = x + 0.02 * x_dot, x_dot + 0.02 * x_acc
        theta, theta_dot = np.mod(theta + 0.02 * theta_dot, 2 * np.pi), theta_dot + 0.02 * theta_acc
        after = np.stack([x, x_dot, theta, theta_dot], axis=1)
        return after, 1 + np.cos(theta), (np.abs(x) > 1).astype(float), np.abs(x) > 2.4


TASKS: dict[str, type[Copies]] = {"SignCartSafe-v0": SignCarts, "MountainCarContinuousSafe-v0": MountainCars}
NAMES = {"PPOLag": "ppo-lag", "CPO": "cpo"}


def register() -> None:
    """Make the task known to OmniSafe, which imports safety-gymnasium (of no use here) when it is imported itself."""
    sys.modules.setdefault("safety_gymnasium", types.ModuleType("safety_gymnasium"))
    import torch
    from gymnasium import spaces
    from omnisafe.envs.core import CMDP, env_register

    def tensor(values: np.ndarray) -> Any:
        return torch.as_tensor(values, dtype=torch.float32)

    @env_register
    class Env(CMDP):
        _support_envs: ClassVar[list[str]] = list(TASKS)
        metadata: ClassVar[dict[str, int]] = {}
        need_auto_reset_wrapper = False
        need_time_limit_wrapper = False

        def __init__(self, env_id: str, num_envs: int = 1, **kwargs: Any):
            super().__init__(env_id)
            self._num_envs, self.task = num_envs, TASKS[env_id]
            self._observation_space = spaces.Box(-np.inf, np.inf, (self.task.size,))
            self._action_space = spaces.Box(-1.0, 1.0, (1,))
            self.set_seed(0)

        def set_seed(self, seed: int) -> None:
            self.copies = self.task(self._num_envs, np.random.default_rng(seed))

        def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
            if seed is not None:
                self.set_seed(seed)
            self.copies.begin(np.ones(self._num_envs, bool))
            return self._shown(self.copies.state), {}

        def _shown(self, values: np.ndarray) -> Any:
            return tensor(values if self._num_envs > 1 else values[0])

        def step(self, action: Any) -> tuple:
            push = action.detach().numpy().reshape(self._num_envs)
            state, reward, cost, terminated, truncated = self.copies.step(push)
            over = terminated | truncated
            info = {"final_observation": self._shown(state), "_final_observation": over} if over.any() else {}
            self.copies.begin(over)
            parts = [self._shown(p) for p in (self.copies.state, reward, cost, terminated, truncated)]
            return (*parts, info)

        @property
        def max_episode_steps(self) -> int:
            return self.task.limit

        def render(self) -> None:
            return None

        def close(self) -> None:
            pass


def run(algorithm: str, task: str, seed: int, epochs: int, folder: str) -> dict[str, Any]:
    import omnisafe

    episodes = round(30_000 / TASKS[task].limit)
    steps = episodes * TASKS[task].limit
    settings: dict[str, Any] = {
        "seed": seed,
        "train_cfgs": {"total_steps": epochs * steps, "vector_env_nums": episodes, "torch_threads": 1},
        "algo_cfgs": {"steps_per_epoch": steps, "update_iters": 10, "batch_size": steps // 8},
        "logger_cfgs": {"log_dir": folder, "use_wandb": False, "use_tensorboard": False, "window_lens": episodes},
        "model_cfgs": {"critic": {"lr": 1e-3}},
    }
    if algorithm == "PPOLag":
        settings["lagrange_cfgs"] = {"cost_limit": TASKS[task].cost_limit}
    else:
        settings["algo_cfgs"]["cost_limit"] = TASKS[task].cost_limit
    start = time.perf_counter()
    agent = omnisafe.Agent(algorithm, task, custom_cfgs=settings)
    agent.learn()
    seconds = time.perf_counter() - start
    newest = max(Path(folder).rglob("progress.csv"), key=lambda p: p.stat().st_mtime)
    rows = list(csv.DictReader(newest.open()))
    return {
        "algorithm": NAMES[algorithm],
        "task": task,
        "seed": seed,
        "return": [float(row["Metrics/EpRet"]) for row in rows],
        "cost": [float(row["Metrics/EpCost"]) for row in rows],
        "length": [float(row["Metrics/EpLen"]) for row in rows],
        "steps": epochs * steps,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithms", nargs="*", default=list(NAMES))
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    register()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    done = {(r["algorithm"], r["task"], r["seed"], len(r["return"])) for r in map(json.loads, lines)}
    for seed in range(args.seeds):
        for task in args.tasks:
            for algorithm in args.algorithms:
                if (NAMES[algorithm], task, seed, args.epochs) in done:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    record = run(algorithm, task, seed, args.epochs, folder)
                with args.out.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                last = record["return"][-1], record["cost"][-1], record["seconds"]
                print(algorithm, task, seed, *(round(value, 1) for value in last), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

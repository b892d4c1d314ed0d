"""Episodes in a worker whose simulator steps many environments at a time: a chunk's episodes run side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcces.envs.costs import CostError, check_steps
from pcces.rl.normalizer import normalise
from pcces.rl.outcome import Outcome
from pcces.rl.policy import forward
from pcces.rl.worker import MAKE_SECONDS, Chunk, EpisodeWorker, Played, Steps


class BatchedWorker(EpisodeWorker):
    """Plays a chunk at once where the simulator can; its results are those of the episodes one by one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._batches: dict[int, Any] = {}

    def run(self, task: Chunk) -> Played:
        """Play a chunk. If anything goes wrong in it, play its episodes one by one to see which one it was."""
        try:
            return self._together(task)
        except CostError:
            raise
        except Exception as error:
            self._batches = {}
            if len(task.episodes) > 1:
                return self.join([self.run(part) for part in self.parts(task)])
            self._watchdog.rest()
            return self._failed(task, f"{type(error).__name__}: {error}")

    def _batch(self, count: int) -> Any:
        """An environment for each of `count` episodes; made once for each size."""
        if count not in self._batches:
            self._watchdog.allow(max(MAKE_SECONDS, self.step_timeout or 0.0))
            self._batches[count] = self.simulator.make_batch(count)  # type: ignore[attr-defined]
        return self._batches[count]

    def _together(self, task: Chunk) -> Played:
        shared, policy = self._shared, self.policy
        assert shared is not None
        count, steps, dims = len(task.episodes), self.simulator.max_steps, policy.outputs
        batch = self._batch(count)
        points = np.stack([self._point(shared, episode) for episode in task.episodes], axis=1)
        layers, log_std = policy.unpack(points)
        seeds = [episode.seed for episode in task.episodes]
        noise = np.stack(
            [
                np.random.Generator(np.random.Philox(key=[s, 7])).standard_normal((steps, dims), dtype=np.float32)
                for s in seeds
            ],
            axis=-1,
        )  # (T, dims, B)
        seen = np.zeros((steps, policy.observation_size, count), np.float32)
        actions = np.zeros((steps, dims, count), np.float32)
        rewards = np.zeros((steps, count), np.float32)
        alive = np.zeros((steps, count), bool)
        entropy = np.zeros(count, np.float32)
        paid = np.zeros((steps, len(self.simulator.cost_names), count), np.float32)
        last = np.zeros((policy.observation_size, count), np.float32)
        cut = np.ones(count, bool)
        observation = np.asarray(batch.reset(seed=seeds), dtype=np.float32).T
        going = np.ones(count, bool)
        for t in range(steps):
            self._watchdog.beat()
            head = forward(layers, normalise(shared.normalizer, observation))
            action = policy.mode(head) if task.greedy else policy.act(head, log_std, noise[t])
            seen[t], actions[t], alive[t] = observation, action, going
            entropy += going * policy.entropy(head, log_std)
            after, reward, cost, terminated, truncated, _ = batch.step(policy.inside(action).T)
            rewards[t] = reward * going
            paid[t] = np.atleast_2d(cost) * going
            observation = np.asarray(after, dtype=np.float32).T
            last = np.where(going, observation, last)
            cut &= ~(going & np.asarray(terminated))
            going = going & ~np.asarray(terminated) & ~np.asarray(truncated)
            if not going.any():
                break
        self._watchdog.rest()
        discounted = self.discount ** np.arange(steps, dtype=np.float32) @ rewards
        outcome = Outcome(rewards.sum(0), discounted, paid.sum(0), entropy, alive.sum(0).astype(np.float32))
        if not all(np.all(np.isfinite(part)) for part in outcome):
            raise FloatingPointError("the environment returned nan or inf")
        learnt: list[Played] = []
        for i in range(count):
            check_steps(self.simulator, paid[: int(outcome.length[i]), :, i].T, seeds[i])
            part = slice(0, int(outcome.length[i]))
            taken = Steps(
                seen[part, :, i].T,
                actions[part, :, i].T,
                rewards[part, i],
                paid[part, :, i].T,
                last[:, i],
                bool(cut[i]),
            )
            own = Outcome(*(values[..., i : i + 1] for values in outcome))
            learnt.append(Played(own, *self._learnt(task, shared, points[:, i], taken)))
        return self.join(list(learnt))

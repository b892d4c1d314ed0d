"""Epochs by workers: whole episodes, as many as an epoch's steps need, laid out in one column."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pcces.rl.policy import Policy
from pcces.rl.worker import Played


def rounds(play: Callable[[int], Played], count: int, steps: int) -> list[Played]:
    """Have workers play `count` episodes, and then rounds of others until there are so many steps.

    A round has as many episodes as the steps still missing need, going by the mean so far, but at most doubles what
    there is: the mean of a few says little. After a round of nothing but failures there is no other.
    """
    played: list[Played] = []
    size, episodes, done = count, 0, 0.0
    while True:
        played.append(play(size))
        new = float(played[-1].outcome.length.sum())
        episodes, done = episodes + size, done + new
        if done >= steps or new == 0:
            return played
        size = min(episodes, math.ceil((steps - done) * episodes / done))


def laid_out(policy: Policy, rows: int, played: Sequence[Played]) -> tuple[Any, ...]:
    """Rounds of episodes in a single column of so many rows: what `epoch_of` takes.

    After an episode that a limit on time cut off, a row shows what came next; the last that has room may be cut by the
    column's end. Those that failed have no step. Costs and length are those of the first round.
    """
    first = played[0].outcome
    size, acts = policy.observation_size, () if policy.discrete else (policy.outputs,)
    raw = np.zeros((size, rows + 1, 1), np.float32)
    actions = np.zeros((*acts, rows, 1), np.float32 if acts else np.int32)
    signals = np.zeros((1 + len(first.costs), rows, 1), np.float32)
    alive, going = np.zeros((2, rows, 1), np.float32)
    t = 0
    for episode in (episode for part in played for episode in part.steps if episode is not None):
        length = min(episode.rewards.size, rows - t)
        if length <= 0:
            break
        now, whole = slice(t, t + length), length == episode.rewards.size
        raw[:, now, 0] = episode.observations[:, :length]
        raw[:, t + length, 0] = episode.last if whole else episode.observations[:, length]
        actions[..., now, 0] = episode.actions[..., :length]
        signals[0, now, 0], signals[1:, now, 0] = episode.rewards[:length], episode.costs[:, :length]
        alive[now] = going[now] = 1
        going[t + length - 1] = episode.cut or not whole
        t += length + episode.cut
    good = np.isfinite(first.returns)
    count = max(1, np.count_nonzero(good))
    means = first.costs[:, good].sum(1) / count, np.float32(max(1.0, first.length[good].sum()) / count)
    return raw, actions, signals, alive, going, *means

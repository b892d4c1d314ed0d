"""A policy at work, as an animated GIF."""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pcces.envs.simulator import Simulator, flat
from pcces.envs.task import Task
from pcces.rl.run import Run
from pcces.support import files as storage

MOST_FRAMES = 150
FASTEST = 25  # frames a second
STRIP = 28  # pixels under the picture, for the numbers
PAPER, INK, RED = (250, 250, 248), (38, 50, 56), (217, 72, 65)


class Film(NamedTuple):
    """An animation and what happened in it."""

    gif: bytes
    frames: int
    steps: int
    total: float  # the episode's return
    costs: tuple[float, ...]

    def save(self, path: str | Path) -> None:
        """Write the GIF."""
        storage.write_atomically(path, self.gif)


def film(run: Run, seed: int = 0, greedy: bool = False, width: int | None = None) -> Film:
    """Play one episode of the run's policy and draw it, at the task's natural speed, in so many pixels (None: as it comes).

    >>> from pcces.rl.train import train
    >>> run = train("CartPole-v0", iterations=3, population=8, certify_episodes=50, initial_tries=4, warm_up=1)
    >>> made = film(run, seed=3)
    >>> made.steps == made.total and made.gif[:6]
    b'GIF89a'
    """
    task = run.task
    if isinstance(task, Simulator):
        pictures, rewards, costs, speed = _simulated(run, task, seed, greedy)
    else:
        states, rewards, costs = _episode(run, task, seed, greedy)
        speed = task.frames_per_second
        every = max(1, math.ceil(speed / FASTEST), math.ceil(len(rewards) / MOST_FRAMES))
        pictures = {t: task.draw(states[t]) for t in (*range(0, len(rewards), every), len(rewards))}
    so_far = np.concatenate([np.zeros((1, costs.shape[1])), np.cumsum(costs, axis=0)])
    earned = np.concatenate([[0.0], np.cumsum(rewards)])
    frames = [_with_numbers(run, _sized(picture, width), t, earned[t], so_far[t]) for t, picture in pictures.items()]
    apart = np.diff([*pictures])[0]  # steps between two frames
    milliseconds = [max(20, round(100 * apart / speed) * 10)] * len(frames)  # a GIF counts in 10 ms
    milliseconds[-1] = 1500  # the end stands still for a moment
    gif = _gif(frames, milliseconds)
    return Film(gif, len(frames), len(rewards), float(earned[-1]), tuple(map(float, so_far[-1])))


def typical(run: Run, tries: int = 5) -> int:
    """Of some seeds the one whose episode is nearest to what the policy does on the mean: a film is one episode only."""
    task = run.task
    parts = None if isinstance(task, Simulator) else _compiled(task)

    def play(seed: int) -> tuple[np.ndarray, np.ndarray]:
        return _unseen(run, task, seed) if isinstance(task, Simulator) else _episode(run, task, seed, False, parts)[1:]

    final = run.final
    means = np.array([final["return"], *final["costs"]])
    spread = np.array([final["return_error"], *final["costs_error"]]) * math.sqrt(final["episodes"])

    def away(seed: int) -> float:
        rewards, costs = play(seed)
        gap = np.abs(np.array([rewards.sum(), *costs.sum(axis=0)]) - means)
        return float(np.sum(gap / np.where(spread > 0, spread, 1.0)))

    return min(range(tries), key=away)


def _unseen(run: Run, task: Simulator, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The rewards and costs of an episode of a simulator, without pictures."""
    env = task.known().make()
    try:
        rng, observation, over = np.random.default_rng(seed), env.reset(seed), False
        rewards: list[float] = []
        costs: list[np.ndarray] = []
        while not over and len(rewards) < task.max_steps:
            observation, reward, cost, over = env.step(run.policy(flat(observation), rng))
            rewards.append(float(reward))
            costs.append(np.broadcast_to(np.asarray(cost, dtype=float), len(task.cost_names)))
    finally:
        env.close()
    return np.array(rewards), np.array(costs).reshape(len(rewards), len(task.cost_names))


def _simulated(
    run: Run, task: Simulator, seed: int, greedy: bool
) -> tuple[dict[int, np.ndarray], np.ndarray, np.ndarray, float]:
    """Pictures of one episode of a simulator by their steps, the rewards (T,), the costs (T, r), and steps a second."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it has to say against it is said by an error below
            env = task.known().make(render_mode="rgb_array")
    except TypeError as error:
        raise ValueError(f"{task.name} cannot be drawn ({error})") from error
    try:
        speed = float(env.env.metadata.get("render_fps", 30))
        every = max(1, math.ceil(speed / FASTEST), math.ceil(task.max_steps / MOST_FRAMES))
        rng = None if greedy else np.random.default_rng(seed)
        observation, over, t = env.reset(seed), False, 0
        pictures, rewards, costs = {0: env.picture()}, [], []
        while not over and t < task.max_steps:
            observation, reward, cost, over = env.step(run.policy(flat(observation), rng))
            t += 1
            rewards.append(float(reward))
            costs.append(np.broadcast_to(np.asarray(cost, dtype=float), len(task.cost_names)))
            if t % every == 0 or over or t == task.max_steps:
                pictures[t] = env.picture()
    finally:
        env.close()
    return pictures, np.array(rewards), np.array(costs).reshape(t, len(task.cost_names)), speed


def _compiled(task: Task) -> tuple[Any, Any, Any]:
    """A task's functions, to be used for several episodes."""
    import jax

    step = jax.jit(lambda state, action, t, key: task.step(state, action, jax.random.fold_in(key, t)))
    return jax.jit(task.reset), jax.jit(task.observe), step


def _episode(
    run: Run, task: Task, seed: int, greedy: bool, parts: tuple[Any, Any, Any] | None = None
) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """The states of one episode, one more than its steps, with the rewards (T,) and costs (T, r)."""
    import jax

    from pcces.engines.keys import key

    reset, observe, step = parts or _compiled(task)
    start_key, step_key = jax.random.split(key(seed))
    rng = None if greedy else np.random.default_rng(seed)
    states, rewards, costs = [reset(start_key)], [], []
    for t in range(task.max_steps):
        action = run.policy(observe(states[-1]), rng)
        after = step(states[-1], action, t, step_key)
        states.append(after.state)
        rewards.append(float(after.reward))
        costs.append(np.asarray(after.costs, dtype=float))
        if after.terminated:
            break
    return states, np.array(rewards), np.array(costs).reshape(len(rewards), len(task.cost_names))


def _sized(picture: np.ndarray, width: int | None) -> Image.Image:
    image = Image.fromarray(picture)
    return image if width is None else image.resize((width, round(image.height * width / image.width)))


def _with_numbers(run: Run, picture: Image.Image, step: int, earned: float, costs: np.ndarray) -> Image.Image:
    width, height = picture.size
    image = Image.new("RGB", (width, height + STRIP), PAPER)
    image.paste(picture, (0, 0))
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    x: float = 12
    words = [(f"step {step}", INK), (f"return {earned:.1f}", INK)]
    for name, cost, limit in zip(run.problem.cost_names, costs, run.problem.thresholds):
        words.append((f"{name} {cost:.4g} of {limit:g}", RED if cost > limit else INK))
    for text, colour in words:
        pen.text((x, height + STRIP / 2), text, fill=colour, font=font, anchor="lm")
        x += pen.textlength(text, font=font) + 22
    return image


def _gif(frames: list[Image.Image], milliseconds: list[int]) -> bytes:
    # One palette for the whole film: frames then differ only where something moves, and the file stays small.
    sample = frames[:: max(1, len(frames) // 6)]
    sheet = Image.new("RGB", (frames[0].width, frames[0].height * len(sample)))
    for i, frame in enumerate(sample):
        sheet.paste(frame, (0, i * frame.height))
    palette = sheet.quantize(128)
    first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=milliseconds, loop=0, optimize=False)
    return buffer.getvalue()

"""A policy at work, as an animated GIF."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pcces.envs.environment import Environment, flat
from pcces.envs.simulator import Simulator
from pcces.envs.task import Task
from pcces.rl.run import Run
from pcces.rl.seeds import checked_seed
from pcces.support import files as storage

MOST_FRAMES = 150
FASTEST = 25  # frames a second
STRIP = 28  # pixels under the picture for a line of numbers, in letters of
LETTERS = (15, 9)  # pixels, at most and at least,
NARROW = 160  # pixels: smaller pictures are shown larger
EDGE, GAP = 12, 22  # so far from the side and from each other
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

    >>> from pcces.policies import train
    >>> run = train("CartPole-v0", steps=8_000, certify_episodes=50)
    >>> made = film(run, seed=3)
    >>> made.steps == made.total and made.gif[:6]
    b'GIF89a'
    """
    task, seed = run.task, checked_seed(seed)
    if isinstance(task, Simulator):  # it shows only where it stands, so it is drawn while the episode is played
        with _environment(task, render_mode="rgb_array") as env:
            speed = float(env.env.metadata.get("render_fps", 30))
            every = _steps_a_frame(speed, task.max_steps)
            pictures, rewards, costs = _play(run, env, env.picture, seed, greedy, every)
    else:
        stage = _InJax(task)
        states, rewards, costs = _play(run, stage, lambda: stage.state, seed, greedy)
        speed, last = task.frames_per_second, len(rewards)
        pictures = {t: task.draw(states[t]) for t in (*range(0, last, _steps_a_frame(speed, last)), last)}
    so_far = np.concatenate([np.zeros((1, costs.shape[1])), np.cumsum(costs, axis=0)])
    earned = np.concatenate([[0.0], np.cumsum(rewards)])
    frames = [_with_numbers(run, _sized(picture, width), t, earned[t], so_far[t]) for t, picture in pictures.items()]
    apart = np.diff([*pictures])[0]  # steps between two frames
    milliseconds = [max(20, round(100 * apart / speed) * 10)] * len(frames)  # a GIF counts in 10 ms
    milliseconds[-1] = 1500  # the end stands still for a moment
    gif = _gif(frames, milliseconds)
    return Film(gif, len(frames), len(rewards), float(earned[-1]), tuple(map(float, so_far[-1])))


def ordinary_film(run: Run, width: int | None = None) -> Film:
    """The film of an ordinary episode, as reports show it."""
    return film(run, typical(run), width=width)


def typical(run: Run, tries: int = 5) -> int:
    """The seed whose episode is closest to the average behaviour of the policy: a film is only one episode."""
    task, final = run.task, run.final
    means = np.array([final["return"], *final["costs"]])
    spread = np.array([final["return_error"], *final["costs_error"]]) * math.sqrt(final["episodes"])

    def distance(seed: int) -> float:
        with _environment(task) if isinstance(task, Simulator) else nullcontext(_InJax(task)) as stage:
            _, rewards, costs = _play(run, stage, lambda: None, seed)
        gap = np.abs(np.array([rewards.sum(), *costs.sum(axis=0)]) - means)
        return float(np.sum(gap / np.where(spread > 0, spread, 1.0)))

    return min(range(tries), key=distance)


def _play(
    run: Run, stage: _InJax | Environment, look: Callable[[], Any], seed: int, greedy: bool = False, every: int = 1
) -> tuple[dict[int, Any], np.ndarray, np.ndarray]:
    """One episode: what `look` saw every so many steps and at the end, the rewards (T,), and the costs (T, r)."""
    task = run.task
    rng = None if greedy else np.random.default_rng(seed)
    observation, over, t = stage.reset(seed), False, 0
    seen, rewards, costs = {0: look()}, [], []
    while not over and t < task.max_steps:
        observation, reward, cost, over = stage.step(run.policy(flat(observation), rng))
        t += 1
        rewards.append(float(reward))
        costs.append(np.broadcast_to(np.asarray(cost, dtype=float), len(task.cost_names)))
        if t % every == 0 or over or t == task.max_steps:
            seen[t] = look()
    return seen, np.array(rewards), np.array(costs).reshape(t, len(task.cost_names))


def _steps_a_frame(speed: float, steps: int) -> int:
    return max(1, math.ceil(speed / FASTEST), math.ceil(steps / MOST_FRAMES))


@contextmanager
def _environment(task: Simulator, **options: Any) -> Iterator[Environment]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it has to say against being drawn is said by an error below
            env = task.known().make(**options)
    except TypeError as error:
        raise ValueError(f"{task.name} cannot be drawn ({error})") from error
    try:
        yield env
    finally:
        env.close()


class _InJax:
    """A task in JAX, played step by step as an Environment is."""

    def __init__(self, task: Task):
        self._reset, self._observe, self._step = _compiled(task)

    def reset(self, seed: int) -> Any:
        import jax

        from pcces.engines.keys import key

        start_key, self._step_key = jax.random.split(key(seed))
        self.state, self._t = self._reset(start_key), 0
        return self._observe(self.state)

    def step(self, action: Any) -> tuple[Any, Any, Any, bool]:
        after = self._step(self.state, action, self._t, self._step_key)
        self.state, self._t = after.state, self._t + 1
        return self._observe(self.state), after.reward, after.costs, bool(after.terminated)


@lru_cache(maxsize=4)
def _compiled(task: Task) -> tuple[Any, Any, Any]:
    """A task's functions; a report plays several episodes."""
    import jax

    step = jax.jit(lambda state, action, t, key: task.step(state, action, jax.random.fold_in(key, t)))
    return jax.jit(task.reset), jax.jit(task.observe), step


def _sized(picture: np.ndarray, width: int | None) -> Image.Image:
    image = Image.fromarray(picture)
    if width is None:
        times = -(-NARROW // image.width)
        return image.resize((times * image.width, times * image.height), Image.Resampling.NEAREST)
    return image.resize((width, round(image.height * width / image.width)))


def _with_numbers(run: Run, picture: Image.Image, step: int, earned: float, costs: np.ndarray) -> Image.Image:
    width, height = picture.size
    words = [(f"step {step}", INK), (f"return {earned:.1f}", INK)]
    for name, cost, limit in zip(run.problem.cost_names, costs, run.problem.thresholds):
        words.append((f"{name} {cost:.4g} of {limit:g}", RED if cost > limit else INK))
    limits = (
        f"{name} {-8888.8:.4g} of {limit:g}" for name, limit in zip(run.problem.cost_names, run.problem.thresholds)
    )
    longest = (f"step {run.task.max_steps}", f"return {-88888.8:.1f}", *limits)
    size, lines = caption(longest, width)  # the same for all frames
    font = ImageFont.load_default(size)
    line = round(STRIP * size / LETTERS[0])
    image = Image.new("RGB", (width, height + line * len(lines)), PAPER)
    image.paste(picture, (0, 0))
    pen, left = ImageDraw.Draw(image), iter(words)
    for i, count in enumerate(lines):
        x = EDGE * size / LETTERS[0]
        for text, colour in islice(left, count):
            pen.text((x, height + (i + 0.5) * line), text, fill=colour, font=font, anchor="lm")
            x += pen.textlength(text, font=font) + GAP * size / LETTERS[0]
    return image


def caption(words: Sequence[str], width: int) -> tuple[int, list[int]]:
    """In what size these words fit under a picture so many pixels wide, and how many of them are on each line.

    A line is begun where the words are too long for one, and letters are smaller only where a single one is.

    >>> words = ("step 300", "return -88888.8", "off_centre -8889 of 30")
    >>> caption(words, 600), caption(words, 300), caption(words, 100)
    ((15, [3]), (15, [2, 1]), (9, [1, 1, 1]))
    """
    for size in range(LETTERS[0], LETTERS[1] - 1, -1):
        font, scale = ImageFont.load_default(size), size / LETTERS[0]
        lines, x = [0], 2 * EDGE * scale
        lengths = [font.getlength(text) for text in words]
        for length in lengths:
            if lines[-1] and x + length > width:
                lines.append(0)
                x = 2 * EDGE * scale
            lines[-1] += 1
            x += length + GAP * scale
        if max(lengths) + 2 * EDGE * scale <= width:
            break
    return size, lines


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

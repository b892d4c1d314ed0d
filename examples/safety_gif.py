"""Film the scripted driver in a safety task. For the pictures in docs/reference/safety-tasks.md:

for name in PointGoal1 PointButton1 CarGoal1; do python examples/safety_gif.py $name docs/img/$name.gif --seed 2; done
"""

from __future__ import annotations

import argparse

import numpy as np
from PIL import Image

from pcces.envs.safety import NAMES, SafetyEnv
from pcces.envs.safety.drive import Driver


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("file", help="where the GIF goes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--every", type=int, default=4, help="steps a frame")
    parser.add_argument("--size", type=int, default=260, help="pixels")
    parser.add_argument("--view", choices=["top", "3d"], default="top")
    options = parser.parse_args()

    env = SafetyEnv(options.name, render_mode="rgb_array", view=options.view, width=options.size, height=options.size)
    driver = Driver(env.scene)
    observation, _ = env.reset(seed=options.seed)
    frames, reward_sum, cost_sum, goals = [], 0.0, 0.0, 0
    for step in range(options.steps):
        if step % options.every == 0:
            frames.append(env.render())
        observation, reward, _, _, info = env.step(driver(observation))
        reward_sum, cost_sum, goals = reward_sum + reward, cost_sum + info["cost"], goals + info["goal_met"]
    duration = max(20, round(1000 * options.every / env.metadata["render_fps"]))
    # One palette for the whole film: frames then differ only where something moves, and the file stays small.
    palette = Image.fromarray(np.hstack(frames[::10])).quantize(192)
    first, *others = (Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    first.save(options.file, save_all=True, append_images=others, duration=duration, loop=0, optimize=True)
    print(f"{options.file}: {options.steps} steps, {goals} goals, return {reward_sum:.2f}, cost {cost_sum:.0f}")


if __name__ == "__main__":
    main()

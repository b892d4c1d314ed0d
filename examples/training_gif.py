"""The animation in the README: a training whose cost falls below its limit while its return rises.

    python examples/training_gif.py            # about a minute; writes docs/img/training.gif

A recorded run can be drawn again with its folder: python examples/training_gif.py runs/CartSafe-v0/pcces-default-seed0
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import pcces

HERE = Path(__file__).parent
FRAMES, PAUSE = 60, 25  # frames of the training, and of the finished picture at the end
RETURN, COST = "#0f766e", "#c2410c"


def trained(folder=None):
    """A short training of CartSafe, or a run from its folder."""
    return pcces.load(folder) if folder else pcces.train("CartSafe-v0", threshold=30, steps=3e5, seed=0)


def smooth(values, span=5):
    """Means of the latest values."""
    return np.array([np.mean(values[max(i - span + 1, 0) : i + 1]) for i in range(len(values))])


def frames(run):
    """The curves of the training, growing."""
    steps = np.asarray(run.metrics["steps"]) / 1e3
    returns, costs = (smooth(np.asarray(run.metrics[name])) for name in ("return", "cost_off_centre"))
    figure, axes = plt.subplots(1, 2, figsize=(5.4, 2.9), dpi=120, layout="constrained")
    tops = 1.1 * returns.max(), 1.15 * costs.max()
    for shown in np.linspace(2, len(steps), FRAMES).astype(int):
        for axis, values, colour, title, top in zip(axes, (returns, costs), (RETURN, COST), ("return", "cost"), tops):
            axis.clear()
            axis.set(xlim=(0, steps[-1]), ylim=(0, top), xlabel="thousand steps", xticks=range(0, 301, 100))
            axis.tick_params(labelsize=12)
            axis.xaxis.label.set_size(12)
            axis.set_title(
                f"{title}: {values[shown - 1]:.0f}", loc="left", fontsize=16, color=colour, fontweight="bold"
            )
            axis.plot(steps[:shown], values[:shown], color=colour, linewidth=3)
            axis.plot(steps[shown - 1], values[shown - 1], "o", color=colour, markersize=9, clip_on=False)
            axis.spines[["top", "right"]].set_visible(False)
        axes[1].axhspan(30, tops[1], color=COST, alpha=0.1, linewidth=0)
        axes[1].axhline(30, color="black", linestyle="--", linewidth=1.5)
        axes[1].text(
            0.97, 0.95, "above the limit of 30", transform=axes[1].transAxes, ha="right", va="top", fontsize=12
        )
        figure.canvas.draw()
        yield Image.fromarray(np.asarray(figure.canvas.buffer_rgba())[..., :3]).quantize(32)
    plt.close(figure)


def main(folder=None, path=HERE.parent / "docs" / "img" / "training.gif"):
    run = trained(folder)
    first, *more = frames(run)
    durations = [60] * len(more) + [60 * PAUSE]
    first.save(path, save_all=True, append_images=more, duration=durations, loop=0, optimize=True)
    print(run.words())
    return path


if __name__ == "__main__":
    main(*sys.argv[1:2])

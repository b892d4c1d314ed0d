"""Metrics for Weights & Biases; needs the extra `wandb`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pcces.integrations.trackers import FollowedRun, tag


class WandB:
    """A run of Weights & Biases, in the project `pcces` unless told otherwise; what else is given goes to `wandb.init`.

    Charts have environment steps as their x axis, and can be changed to `iteration` or `seconds`. Without a network, set
    WANDB_MODE=offline, and `wandb sync` later. What it writes itself is in the run's folder.
    """

    def __init__(self, run: FollowedRun, project: str = "pcces", **options: Any) -> None:
        wandb = self.check()
        if run.path is not None:
            options = {"name": run.path.name, "dir": str(run.path), **options}
        self._run = wandb.init(project=project, reinit="create_new", **options)
        for axis in ("steps", "iteration", "seconds"):
            self._run.define_metric(axis)
        self._run.define_metric("*", step_metric="steps")

    @staticmethod
    def check() -> Any:
        """The package, if it is there."""
        try:
            import wandb
        except ImportError as error:
            raise ImportError("Weights & Biases needs the extra wandb: pip install 'pcces[wandb]'") from error
        return wandb

    def log_config(self, config: Mapping[str, Any]) -> None:
        """Its config."""
        self._run.config.update(dict(config), allow_val_change=True)

    def log_metrics(self, step: int, values: Mapping[str, float]) -> None:
        """A row of its history."""
        axes = {"steps": step, "iteration": int(values["iteration"]), "seconds": values["seconds"]}
        self._run.log(axes | {tag(name): value for name, value in values.items() if name not in axes})

    def close(self) -> None:
        """Send what is left."""
        self._run.finish()

"""Metrics for MLflow; needs the extra `mlflow`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pcces.integrations.trackers import FollowedRun, began, tag

LONGEST = 500  # letters of a parameter that all stores take
BY_ITERATION = "by_iteration"


class MLflow:
    """A run in MLflow, in the experiment `pcces` unless told otherwise, where MLFLOW_TRACKING_URI (or `uri`) says.

    Curves are over environment steps, and once more, as by_iteration/.., over iterations; MLflow can show either over time.
    """

    def __init__(self, run: FollowedRun, experiment: str = "pcces", uri: str | None = None) -> None:
        mlflow = self.check()
        self._entities = mlflow.entities
        self._client = mlflow.MlflowClient(uri)
        known = self._client.get_experiment_by_name(experiment)
        number = self._client.create_experiment(experiment) if known is None else known.experiment_id
        name = "{task}-{algorithm}-seed{seed}".format(**run.config)
        self.run_id = self._client.create_run(number, run_name=name).info.run_id
        self._start = began(run)

    @staticmethod
    def check() -> Any:
        """The package, if it is there."""
        try:
            import mlflow
        except ImportError as error:
            raise ImportError("MLflow needs the extra mlflow: pip install 'pcces[mlflow]'") from error
        return mlflow

    def log_config(self, config: Mapping[str, Any]) -> None:
        """Its parameters: a setting has the name settings.NAME."""
        plain = {name: value for name, value in config.items() if not isinstance(value, dict)}
        for name, value in config.items():
            if isinstance(value, dict):
                plain |= {f"{name}.{inner}": there for inner, there in value.items()}
        params = [
            self._entities.Param(name, (value if isinstance(value, str) else json.dumps(value))[:LONGEST])
            for name, value in plain.items()
        ]
        for i in range(0, len(params), 100):  # as many as it takes at once
            self._client.log_batch(self.run_id, params=params[i : i + 100])

    def log_metrics(self, step: int, values: Mapping[str, float]) -> None:
        """A point of every curve, over steps and over iterations."""
        when, iteration = int(1000 * (self._start + values["seconds"])), int(values["iteration"])
        shown = {tag(name): value for name, value in values.items() if name not in ("iteration", "seconds")}
        points = [self._entities.Metric(name, value, when, step) for name, value in shown.items()]
        shown["search/steps"] = float(step)
        points += [
            self._entities.Metric(f"{BY_ITERATION}/{name}", value, when, iteration) for name, value in shown.items()
        ]
        self._client.log_batch(self.run_id, metrics=points)

    def close(self) -> None:
        """The run is finished."""
        self._client.set_terminated(self.run_id)

"""What every solver gets: a problem with noise, counted, with a hard budget."""

import time
import zlib

import numpy as np

from benchmarks.few.problems import Problem
from benchmarks.harness import CountingOracle


class Oracle(CountingOracle):
    """f + noise * |f_star| * N(0, 1) and c + noise * N(0, 1), drawn anew and independently at each call."""

    def __init__(self, problem: Problem, seed: int, budget: int):
        super().__init__(problem, budget)
        self.level, self.seconds = problem.noise, 0.0  # spent in the simulator
        self._rng = np.random.default_rng([seed, zlib.crc32(problem.name.encode())])

    def evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        began = time.process_time()
        outputs = self.problem.simulate(x, self._rng)
        self.seconds += time.process_time() - began
        return outputs

"""Comparisons with other libraries, and how fast things are: `python -m benchmarks.few.run`, and so on."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes are the parallel part here
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

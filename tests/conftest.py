"""Settings that must be made before NumPy is imported."""

import os

# The matrices here are small: threads cost several times what they save, above all with two test processes at once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")  # so that tests can share work between devices

from hypothesis import settings  # noqa: E402

settings.register_profile("pcces", deadline=None)  # a loaded machine is not a failure
settings.load_profile("pcces")

"""Settings that must be made before NumPy is imported."""

import os
from pathlib import Path

# The matrices here are small: threads cost several times what they save, above all with two test processes at once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Compiled programs are shared between tests, the processes they start, and the next time they are run.
os.environ.setdefault("PCCES_CACHE", str(Path(__file__).parent.parent / ".pytest_cache" / "compiled"))

from hypothesis import settings  # noqa: E402

settings.register_profile("pcces", deadline=None)  # a loaded machine is not a failure
settings.load_profile("pcces")

"""Settings that must be made before NumPy is imported."""

import os
from pathlib import Path

# The matrices here are small: threads cost several times what they save, above all with two test processes at once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Compiled programs are shared between tests, the processes they start, and the next time they are run.
os.environ.setdefault("PCCES_CACHE", str(Path(__file__).parent.parent / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")  # so that tests can share work between devices

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from small import IMPOSSIBLE, LOOSE, SMALL, once  # noqa: E402

settings.register_profile("pcces", deadline=None)  # a loaded machine is not a failure
settings.load_profile("pcces")


@pytest.fixture(scope="session")
def one(tmp_path_factory):
    """A small run from the command line, finished and certified."""
    return once(tmp_path_factory, "one", "train", *SMALL, *LOOSE)


@pytest.fixture(scope="session")
def two(tmp_path_factory):
    """Two seeds at once, as JSON and with event files, under a limit that no policy can keep."""
    return once(tmp_path_factory, "two", "train", *SMALL, *IMPOSSIBLE, "--seeds", 2, "--json", "--tensorboard")

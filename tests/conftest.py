"""Settings that must be made before NumPy is imported."""

import os
import shutil
import signal
import sys
from importlib import metadata
from pathlib import Path

# The matrices here are small: threads cost several times what they save, above all with two test processes at once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Compiled programs are shared between tests, the processes they start, and the next time they are run.
os.environ.setdefault("PCCES_CACHE", str(Path(__file__).parent.parent / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.environ["PCCES_CACHE"])  # also of what tests compile themselves
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")  # so that tests can share work between devices

# Tests send Ctrl-C, which a shell lets background jobs ignore, and all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Most of the time goes into compiling: programs run but shortly, so LLVM is asked for little (`make dist` runs examples and
# commands without these options), and all is compiled as the library compiles on a CPU, and in one piece.
# XLA ends a process that gives it an option it does not know: these two go with JAX 0.11.
_flags = ["--xla_backend_optimization_level=0"]
try:
    if tuple(map(int, metadata.version("jaxlib").split(".")[:2])) < (0, 11):
        _flags += ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
    os.environ["XLA_FLAGS"] = " ".join([*_flags, os.environ.get("XLA_FLAGS", "")]).strip()
except metadata.PackageNotFoundError:  # the tests without JAX
    pass

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from small import IMPOSSIBLE, LOOSE, SMALL, once  # noqa: E402

settings.register_profile("pcces", deadline=None)  # a loaded machine is not a failure
settings.load_profile("pcces")

# These send signals, type into a shell, or read /proc and /dev.
POSIX = (
    "test_checkpoint.py", "test_ending.py", "test_engines.py", "test_files.py", "test_lock.py", "test_ray.py", "test_reproduce.py",
    "test_streams.py", "test_train_on_workers.py",
)  # fmt: skip
collect_ignore = list(POSIX) if sys.platform == "win32" else []


def pytest_collection_modifyitems(items):
    """Every worker starts with its share of the slow tests, so that at the end none waits for another's.

    Workers begin with an equal run of tests each, in their order, and take from each other when they are done. The slow
    tests of a file go to one worker: they often share what they compile or train.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    files, rest = {}, []
    for item in items:
        (files.setdefault(item.path, []) if item.get_closest_marker("slow") else rest).append(item)
    shares = [[] for _ in range(workers)]
    for tests in sorted(files.values(), key=len, reverse=True):
        min(shares, key=len).extend(tests)
    ordered, begin = [], 0
    for worker, own in enumerate(shares):
        end = begin + (worker + 1) * len(items) // workers - worker * len(items) // workers - len(own)
        ordered += own + rest[begin:end]
        begin = end
    items[:] = ordered


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A small run from the command line, finished and certified."""
    return once(tmp_path_factory, "trained", "train", *SMALL, *LOOSE)


@pytest.fixture(scope="session")
def two_seeds(tmp_path_factory):
    """Two seeds at once, as JSON and with event files, under a limit that no policy can keep."""
    return once(tmp_path_factory, "two_seeds", "train", *SMALL, *IMPOSSIBLE, "--seeds", 2, "--json", "--tensorboard")


@pytest.fixture(scope="module")
def browser():
    """A real one, without a window."""
    chromium_path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium_path is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser):
    """Open a file; afterwards there must have been no error on the console, and no request but the one for the file."""
    opened, wrong, requests = [], [], []

    def go(path, width=1200, scheme="light"):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        opened.append(page)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: requests.append(request.url[:40]))
        page.goto(f"file://{path}")
        return page

    yield go
    fetched = [url for url in requests if not url.startswith("data:")]
    assert wrong == [] and len(fetched) == len(opened)
    for page in opened:
        page.close()

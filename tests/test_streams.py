"""Nobody looks, or nothing can be written: that is no reason to stop."""

import contextlib
import io
import os
import sys

import numpy as np
import pytest
import small

import pcces
from pcces.support import streams

FEW = dict(small.FEW, report=False)


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


def without_reader():
    ours, theirs = os.pipe()
    os.close(ours)
    return os.fdopen(theirs, "w")


class GoneTerminal(io.StringIO):
    """A terminal whose window was closed."""

    def isatty(self):
        return True

    def write(self, text):
        raise OSError(5, "Input/output error")


def full():
    return open("/dev/full", "w")


STREAMS = {
    "none": lambda: None,
    "closed": closed,
    "full": full,
    "without a reader": without_reader,
    "gone": GoneTerminal,
}


@contextlib.contextmanager
def unheard(make):
    """Standard error as it should not be."""
    stream = make()
    with contextlib.redirect_stderr(stream):
        yield
    with contextlib.suppress(OSError, ValueError, AttributeError):
        stream.close()


@pytest.mark.parametrize("stream", STREAMS.values(), ids=list(STREAMS))
def test_a_training_goes_on(stream):
    with unheard(stream):
        run = pcces.train("CartPole-v0", progress=True, **FEW)
        assert run.certificate is not None and run.evaluate(4, progress=True)["return"] > 0


@pytest.mark.parametrize("stream", STREAMS.values(), ids=list(STREAMS))
def test_so_does_a_search(stream):
    for progress in (True, None):
        with unheard(stream):
            res = pcces.minimize(
                lambda x: float((x**2).sum()), np.ones(2), max_evaluations=200, rng=0, progress=progress
            )
        assert res.nfev <= 200


def test_results_are_kept_apart_from_what_is_printed_by_python_by_c_and_by_other_processes(capfd):
    with streams.results_apart():
        print("from Python")
        sys.stdout.flush()
        os.write(1, b"from C\n")
        os.system("echo from another process")
    print("the result")
    out, err = capfd.readouterr()
    assert out == "the result\n" and err.splitlines() == ["from Python", "from C", "from another process"]


def test_a_watchdog_without_standard_error_still_watches(monkeypatch):
    from pcces.engines.pool import Watchdog

    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "__stderr__", None)
    watchdog = Watchdog(1000.0)
    watchdog.beat()
    watchdog.rest()

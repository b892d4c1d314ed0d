"""Pools of worker processes: order, sharing, and everything that can happen to a worker or to its driver."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pcces.engines.examples import Squares
from pcces.engines.pool import Lost
from pcces.engines.processes import LocalPool

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def pool():
    with LocalPool(Squares, workers=2) as pool:
        yield pool


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def start_driver(script, *arguments):
    """A script of its own in a process group of its own; it says its workers' process ids in its first line."""
    environment = os.environ | {"PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}"}
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment, start_new_session=True,
    )  # fmt: skip
    line = process.stdout.readline()
    if not line:
        pytest.fail(process.communicate()[1])
    return process, [int(word) for word in line.split()]


# -- what is asked for -------------------------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_tasks(pool):
    pool.share(0)
    assert pool.map([[n, n + 1] for n in range(50)]) == [[n**2, (n + 1) ** 2] for n in range(50)]
    assert pool.map([]) == []


def test_every_worker_gets_every_shared_value(pool):
    for value in (3, 100, -1):
        pool.share(value)
        assert pool.map([[n] for n in range(10)]) == [[value + n**2] for n in range(10)]


def test_traffic_is_counted():
    with LocalPool(Squares, workers=1) as pool:
        pool.share("x" * 10_000)
        with pytest.raises(TypeError):
            pool.map([[1]])
        first = pool.traffic
        pool.share(0)
        pool.map([[1], [2]])
        assert 10_000 < first < 11_000 and 0 < pool.traffic - first < 500


@pytest.mark.parametrize(("workers", "error"), [(0, ValueError), (-2, ValueError)])
def test_no_workers_is_an_error(workers, error):
    with pytest.raises(error, match="workers must be at least 1"):
        LocalPool(Squares, workers=workers)


def test_what_cannot_be_sent_is_an_error_at_once():
    with pytest.raises(TypeError, match="define them at the top level of a module"):
        LocalPool(lambda: Squares(), workers=1)


# -- faults ------------------------------------------------------------------------------------------------------------


def test_a_worker_killed_once_changes_nothing(pool, tmp_path):
    pool.share(1)
    before = pool.replaced
    tasks = [[1, 2], [3, f"once:{tmp_path / 'mark'}", 4], [5]]
    assert pool.map(tasks) == [[2, 5], [10, "survived", 17], [26]]
    assert pool.replaced == before + 1


def test_workers_killed_from_outside_change_nothing(pool):
    pool.share(0)
    tasks = [[n] for n in range(200)]
    expected = [[n**2] for n in range(200)]
    for _ in range(3):
        for worker in pool._workers:
            os.kill(worker.process.pid, signal.SIGKILL)
        assert pool.map(tasks) == expected
    assert len(pool._workers) == 2


def test_workers_that_have_all_died_before_there_is_work_are_replaced():
    with LocalPool(Squares, workers=1) as pool:
        pool.share(1)
        assert pool.map([[1]]) == [[2]]
        (worker,) = pool._workers
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.join()
        assert pool.map([[2]]) == [[5]] and pool.replaced == 1


def test_only_the_deadly_part_of_a_task_is_lost(pool):
    pool.share(0)
    first, second = pool.map([[1, "die", 3], [4]])
    assert first == [1, Lost(["die"], "worker killed by SIGKILL"), 9] and second == [16]


def test_what_hangs_is_ended_and_lost_and_the_rest_is_kept():
    with LocalPool(functools.partial(Squares, 0.3), workers=2) as pool:
        pool.share(0)
        first, second = pool.map([[1, "hang", 3], [4]])
    assert first[0] == 1 and first[2] == 9 and second == [16]
    assert isinstance(first[1], Lost) and "timeout" in first[1].reason


def test_an_exception_is_raised_here_and_the_pool_goes_on(pool):
    pool.share(0)
    with pytest.raises(ZeroDivisionError, match="asked for"):
        pool.map([[1], ["raise"], [2], [3]])
    assert pool.map([[n] for n in range(20)]) == [[n**2] for n in range(20)]


class Unmakeable:
    def __init__(self):
        raise FileNotFoundError("no simulator here")


class OddError(Exception):
    """One of those exceptions that cannot be unpickled."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


class RaisesOdd(Squares):
    def run(self, task):
        raise OddError(1, 2)


def test_a_handler_that_cannot_be_made_says_why():
    with LocalPool(Unmakeable, workers=1) as pool, pytest.raises(FileNotFoundError, match="no simulator here"):
        pool.map([[1]])


def test_exceptions_that_do_not_travel_are_told_in_words():
    with LocalPool(RaisesOdd, workers=1) as pool, pytest.raises(RuntimeError, match="OddError: 1 and 2"):
        pool.map([[1]])


# -- scripts -----------------------------------------------------------------------------------------------------------

UNGUARDED = """
from pcces.engines.processes import LocalPool
from pcces.engines.examples import Squares
{own}
with LocalPool({recipe}, workers=1) as pool:
    pool.share(1)
    print(pool.map([[2]]))
"""


def run_script(tmp_path, text):
    (tmp_path / "script.py").write_text(text)
    return subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env=os.environ | {"PYTHONPATH": str(HERE.parent)},
    )  # fmt: skip


def test_a_script_needs_no_guard_for_what_comes_from_modules(tmp_path):
    done = run_script(tmp_path, UNGUARDED.format(own="", recipe="Squares"))
    assert done.stdout == "[[5]]\n" and done.stderr == ""


def test_a_script_that_sends_its_own_classes_is_told_of_the_guard(tmp_path):
    text = UNGUARDED.format(own="class Mine(Squares): pass", recipe="Mine")
    done = run_script(tmp_path, text)
    assert done.returncode == 1 and "must do its work under `if __name__ == '__main__':`" in done.stderr
    head, _, tail = text.partition("with ")
    guarded = head + "if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in f"with {tail}".splitlines())
    assert run_script(tmp_path, guarded).stdout == "[[5]]\n"


DRIVER = """
import time
from pcces.engines.processes import LocalPool
from pcces.engines.examples import Squares
with LocalPool(Squares, workers=2) as pool:
    pool.map([[1], [2]])
    print(*(worker.process.pid for worker in pool._workers), flush=True)
    pool.map([["hang"], ["hang"]])
"""


def test_a_driver_that_is_killed_leaves_no_workers_behind():
    driver, workers = start_driver(DRIVER)
    assert len(workers) == 2 and all(map(alive, workers))
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert wait_until(lambda: not any(map(alive, workers)))


def test_ctrl_c_ends_driver_and_workers_with_one_traceback():
    driver, workers = start_driver(DRIVER)
    time.sleep(0.3)
    os.killpg(driver.pid, signal.SIGINT)  # what a terminal does
    _, errors = driver.communicate(timeout=60)
    assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt")
    assert not any(map(alive, workers))


def test_importing_pcces_imports_nothing_heavy():
    heavy = ("multiprocessing", "ray", "jax", "gymnasium", "scipy.optimize", "scipy.special", "scipy.linalg")
    code = f"import sys, pcces; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=HERE.parent)
    assert done.stdout == "[]\n"

"""Workers on Ray: the same results as local ones, also when actors and nodes are lost; nothing heard outside."""

import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray")

from test_engines import alive, wait_until
from test_worker_training import engine_for, leaves, same, trained

import pcces
from pcces.engines.examples import Squares
from pcces.engines.pool import Lost
from pcces.engines.ray import RayPool, connect
from pcces.envs.simulator import simulator

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}", "RAY_health_check_period_ms": "500"}


@pytest.fixture(scope="module")
def pool():
    connect(workers=6)  # room for other pools beside this one
    with RayPool(Squares, workers=2) as pool:
        yield pool


def test_results_come_in_order_with_the_value_that_was_shared_last(pool):
    for value in (10, -3):
        pool.share(value)
        assert pool.map([[n] for n in range(30)]) == [[value + n**2] for n in range(30)]
    assert pool.workers == 2


def test_an_actor_killed_once_changes_nothing_and_a_deadly_part_is_lost(pool, tmp_path):
    pool.share(1)
    assert pool.map([[1, 2], [3, f"once:{tmp_path / 'mark'}", 4]]) == [[2, 5], [10, "survived", 17]]
    first, second = pool.map([[1, "die"], [4]])
    assert first[0] == 2 and isinstance(first[1], Lost) and second == [17]
    assert pool.replaced == 5


def test_an_exception_is_raised_here_and_the_pool_goes_on(pool):
    pool.share(0)
    with pytest.raises(ZeroDivisionError, match="asked for"):
        pool.map([[1], ["raise"], [2]])
    assert pool.map([[n] for n in range(20)]) == [[n**2] for n in range(20)]


def test_what_hangs_is_ended_and_lost(pool):
    with RayPool(functools.partial(Squares, 0.3), workers=1) as watched:
        ((first, lost),) = watched.map([[1, "hang"]])
    assert first == 1 and isinstance(lost, Lost)


def test_functions_of_a_script_can_be_sent(pool):
    class Cubes(Squares):
        def run(self, task):
            return [item**3 for item in task]

    with RayPool(lambda: Cubes(), workers=1) as own:
        assert own.map([[2, 3]]) == [[8, 27]]


def test_too_few_resources_are_an_error_after_a_while(pool):
    started = time.monotonic()
    with pytest.raises(RuntimeError, match=r"64 workers were asked for, but only \d+ came up.*ask for fewer workers"):
        RayPool(Squares, workers=64, patience=2.0)
    assert time.monotonic() - started < 60
    with pytest.raises(ValueError, match="at least 1"):
        RayPool(Squares, workers=0)


# -- training and black boxes --------------------------------------------------------------------------------------------


def test_ray_and_local_workers_train_the_same_policy(pool):
    sim = simulator("CartPole-v1", max_steps=60)
    local, metrics = trained(sim)
    ray, others = trained(sim, pool=functools.partial(RayPool, workers=2))
    assert same(local, ray) and all(same(metrics[name], others[name]) for name in metrics)


def test_an_actor_killed_in_the_middle_of_training_changes_nothing(pool, tmp_path):
    """The environment kills its process while there are files in its folder, one for each death."""
    from dataclasses import replace

    import simulators  # noqa: F401

    calm, deadly = tmp_path / "calm", tmp_path / "deadly"
    calm.mkdir()
    deadly.mkdir()
    sim = simulator("tests/Deadly-v0", folder=str(calm))
    expected, _ = trained(sim)
    engine = engine_for(replace(sim, options={"folder": str(deadly)}), functools.partial(RayPool, workers=2))
    try:
        state = engine.start()
        for number in range(4):
            if number in (1, 2):
                (deadly / f"{number}").touch()
            state, _ = engine.advance(state, 1)
        assert engine.arena.pool.replaced >= 2
    finally:
        engine.arena.close()
    assert same(state, expected)


# -- processes of their own --------------------------------------------------------------------------------------------------

ALONE = """
from pcces.engines.ray import RayPool
from pcces.engines.examples import Squares
with RayPool(Squares, workers=1) as pool:
    pool.share(1)
    assert isinstance(pool.map([["die"]])[0], object)
    print("up", flush=True)
    pool.map([["hang"]])
"""


def descendants(pid):
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    family, grew = {pid}, True
    while grew:
        more = {child for child, parent in found.items() if parent in family} - family
        grew = bool(more)
        family |= more
    return family


def listening(pids):
    """The addresses these processes listen on, as hexadecimal words."""
    inodes = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A":
                inodes[words[9]] = words[1].partition(":")[0]
    addresses = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = os.readlink(descriptor)
            except OSError:
                continue
            if target.startswith("socket:[") and target[8:-1] in inodes:
                addresses.add(inodes[target[8:-1]])
    return addresses


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.fixture(scope="session")
def doomed():
    """Processes that must have ended when all tests have: some need a minute, in which others can run."""
    pids = set()
    yield pids
    assert wait_until(lambda: not any(map(alive, pids)), 150)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's tables")
def test_our_own_ray_listens_on_loopback_only_is_silent_and_dies_with_its_driver(doomed):
    driver = subprocess.Popen(
        [sys.executable, "-c", ALONE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    line = driver.stdout.readline()
    if line != "up\n":
        driver.kill()
        pytest.fail(line + driver.communicate()[1])
    family = descendants(driver.pid)
    addresses = listening(family)
    driver.send_signal(signal.SIGKILL)
    output, errors = driver.communicate()
    assert len(family) > 3 and addresses and addresses <= LOOPBACK
    assert output == "" and errors == ""
    # Two of Ray's agents try for a minute to tell the dead head of the death of their node.
    doomed |= family - {driver.pid}


NODES = """
import functools, json, sys, threading, time
import numpy as np
import ray
from ray.cluster_utils import Cluster
import simulators
from test_worker_training import engine_for, leaves
from pcces.engines.ray import RayPool
from pcces.envs.simulator import simulator

if __name__ == "__main__":
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    engine = engine_for(simulator("tests/Slow-v0"), functools.partial(RayPool, workers=2, address=cluster.address))
    state, _ = engine.advance(engine.start(), 1)
    assert engine.arena.pool.workers == 2
    threading.Timer(0.3, lambda: cluster.remove_node(second, allow_graceful=False)).start()
    state, _ = engine.advance(state, 1)
    fewer = engine.arena.pool.workers
    state, _ = engine.advance(state, 1)
    cluster.add_node(num_cpus=1)
    deadline = time.monotonic() + 60
    while engine.arena.pool.workers < 2 and time.monotonic() < deadline:
        state, _ = engine.advance(state, 1)
    iterations = int(state.es.k[0])
    print(json.dumps({"k": iterations, "x": [float(v) for v in state.es.x[0]], "fewer": fewer,
                      "workers": engine.arena.pool.workers, "replaced": engine.arena.pool.replaced}))
    engine.arena.close()
    ray.shutdown()
    cluster.shutdown()
"""


@pytest.mark.slow
def test_a_node_lost_in_the_middle_of_training_costs_only_time(tmp_path):
    import simulators  # noqa: F401

    (tmp_path / "nodes.py").write_text(NODES)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "nodes.py")], capture_output=True, text=True, env=ENVIRONMENT, timeout=400
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    state, _ = trained(simulator("tests/Slow-v0"), told["k"])
    assert told["replaced"] >= 1 and told["fewer"] == 1 and told["workers"] == 2  # and the new node was taken in
    assert np.array_equal(state.es.x[0], np.array(told["x"], np.float32))
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves(state.es))


def noisy_sphere(x, rng):
    return float(x @ x + 0.01 * rng.standard_normal()), float(1 - x[0] + 0.01 * rng.standard_normal())


def test_minimize_on_ray_gives_the_same_result(pool):
    options = dict(bounds=[(-2, 2)] * 2, common_random_numbers=True, max_evaluations=60, rng=0)
    alone = pcces.minimize(noisy_sphere, [1.5, 1.5], **options)
    there = pcces.minimize(noisy_sphere, [1.5, 1.5], engine="ray", workers=2, **options)
    assert np.array_equal(alone.x, there.x) and alone.nfev == there.nfev and alone.fun == there.fun

"""Any part of a batch at any time, and as many points as there are free workers."""

import heapq
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import KINDS

import pcces
from pcces.blackbox import acquire, certify, desk

BOX = [(-2.0, 2.0)] * 2


def evaluated(point, seed, noise, constraints=1):
    """A quadratic under x.sum() <= 1; the noise comes from the seed."""
    x = np.asarray(point, dtype=float)
    e = noise * np.random.default_rng(int(seed)).standard_normal(1 + constraints)
    return ((x - 1) ** 2).sum() + e[0], x.sum() - 1 + e[1:]


class Laboratory:
    """So many workers on a simulated clock, with durations that are exponentially distributed unless said otherwise."""

    def __init__(self, workers=4, noise=0.05, duration=None, failing=0.0, constraints=1):
        self.workers, self.noise, self.failing, self.constraints = workers, noise, failing, constraints
        self.duration = duration or (lambda f, c, rng: rng.exponential())
        self.rng = np.random.default_rng(0)
        self.clock, self.worked, self.asked = 0.0, 0.0, 0
        self.running = []

    def step(self, opt):
        """Give every free worker a point; the first to finish tells what it found. Whether somebody did."""
        free = self.workers - len(self.running)
        if free:
            batch = opt.ask(free)
            assert len(batch) <= free
            for row, (point, seed) in enumerate(zip(batch.points, batch.seeds)):
                f, c = evaluated(point, seed, self.noise, self.constraints)
                if np.random.default_rng(int(seed) + 1).random() < self.failing:
                    f = np.nan
                took = self.duration(f, c, self.rng)
                self.asked += 1
                heapq.heappush(self.running, (self.clock + took, self.asked, took, batch, row, f, c))
        if not self.running or opt.stop():
            return False
        self.clock, _, took, batch, row, f, c = heapq.heappop(self.running)
        self.worked += took
        opt.tell(batch, f, c, rows=row)
        return True

    def finish(self, opt):
        while not opt.stop():
            assert self.step(opt) or opt.stop(), "nobody works, and nothing is to be done"
        return opt.result


def table(opt):
    return [[row[name] for name in ("f", "seed", "why")] for row in opt.evaluations]


def same(a, b):
    assert table(a) == table(b)
    x, y = a.result, b.result
    assert np.array_equal(x.x, y.x) and x.message == y.message and x.certificate == y.certificate
    assert np.array_equal(x.history["fun"], y.history["fun"])


# -- parts of a batch ------------------------------------------------------------------------------------------------------------


def batchwise(opt):
    while not opt.stop():
        batch = opt.ask()
        f, c = zip(*(evaluated(x, seed, 0.05) for x, seed in zip(batch.points, batch.seeds)))
        opt.tell(batch, f, np.array(c))


@pytest.mark.parametrize("options", [{"max_evaluations": 60}, {"max_evaluations": 400, "strategy": "cma"}])
def test_parts_may_be_told_in_any_order_and_change_nothing(options, tmp_path):
    whole, opt = (pcces.Optimizer([0.0, 0.0], bounds=BOX, rng=0, **options) for _ in range(2))
    batchwise(whole)
    rng = np.random.default_rng(0)
    while not opt.stop():
        batch = opt.ask()
        order = rng.permutation(len(batch))
        cut = int(rng.integers(1, len(batch) + 1))
        for rows in (order[:cut], order[cut:]):
            if not len(rows):
                continue
            (left,) = opt.pending
            assert set(rows) <= set(left.rows) and np.array_equal(left.points, batch.points[left.rows])
            part = batch.part(rows)
            f, c = zip(*(evaluated(x, seed, 0.05) for x, seed in zip(part.points, part.seeds)))
            if rng.random() < 0.5:
                opt.tell(part, f, np.array(c))
            else:
                opt.tell(batch, f, np.array(c), rows=rows)
            if rng.random() < 0.3:
                opt.save(tmp_path / "a.npz")
                opt = pcces.Optimizer.load(tmp_path / "a.npz")
    same(whole, opt)


def test_parts_that_make_no_sense_are_refused_and_forgiven():
    opt = pcces.Optimizer([0.0, 0.0], bounds=BOX, rng=0, max_evaluations=60)
    batch = opt.ask()
    assert len(batch) == 2
    opt.tell(batch, 1.0, [-1.0, -1.0], rows=1)
    for again, rows in ((1, 1), (0, [0, 0])):
        with pytest.raises(ValueError, match=f"row {again} of the batch was already told"):
            opt.tell(batch, np.ones(np.size(rows)), -np.ones((np.size(rows), 2)), rows=rows)
    with pytest.raises(ValueError, match="rows must be numbers from 0 to 1, of rows of the batch, got 2"):
        opt.tell(batch, 1.0, [-1.0, -1.0], rows=2)
    with pytest.raises(ValueError, match="c has 1 constraints now but had 2 before"):
        opt.tell(batch, 1.0, [-1.0], rows=0)
    assert opt.result.nfev == 0  # a part counts when its batch is complete
    opt.tell(batch, np.nan, rows=0)
    assert opt.result.nfev == 2 and opt.result.failures == 1


# -- as many as there are free workers ---------------------------------------------------------------------------------------------

CASES = {
    "few": {"max_evaluations": 70},
    "model": {"max_evaluations": 300, "strategy": "model"},
    "cma": {"max_evaluations": 300, "strategy": "cma"},
    "gaussian": {"max_evaluations": 300, "strategy": "gaussian"},
    "common random numbers": {"max_evaluations": 300, "common_random_numbers": True, "strategy": "model"},
    "hands over": {"max_evaluations": 150, "deterministic": True},
    "restarts": {"max_evaluations": 1500, "strategy": "cma", "sigma_stop": 0.05, "deterministic": True},
}


@pytest.mark.parametrize("case", CASES)
def test_a_search_in_a_file_goes_on_to_the_same_bits_at_any_moment(case, tmp_path):
    noise = 0.0 if "deterministic" in CASES[case] else 0.05
    options, path = {"bounds": BOX, "rng": 3, **CASES[case]}, tmp_path / "search.npz"
    whole, opt = (pcces.Optimizer([-1.0, -1.0], **options) for _ in range(2))
    Laboratory(5, noise).finish(whole)
    laboratory, k = Laboratory(5, noise), 0
    while not opt.stop():
        laboratory.step(opt)
        if k % (1 if case == "few" else 7) == 0:
            before = [(batch.number, batch.rows.tolist(), batch.points.tolist()) for batch in opt.pending]
            opt.save(path)
            opt = pcces.Optimizer.load(path)
            assert [(batch.number, batch.rows.tolist(), batch.points.tolist()) for batch in opt.pending] == before
            assert sum(map(len, opt.pending)) == len(laboratory.running)
        k += 1
    same(whole, opt)
    kinds = set(opt.evaluations["why"])
    assert kinds >= ({"start", "certify"} | ({"propose"} if "strategy" not in CASES[case] else {"sample", "trial"}))


@settings(max_examples=60)
@given(
    budget=st.integers(1, 150),
    workers=st.integers(1, 20),
    noise=st.sampled_from([0.0, 0.3, 5.0]),
    constraints=st.integers(0, 2),
    failing=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    strategy=st.sampled_from(["gaussian", "cma", "cma", "default"]),
    options=st.sampled_from(KINDS),
)
def test_the_budget_is_never_exceeded_and_nobody_waits_in_vain(
    budget, workers, noise, constraints, failing, strategy, options
):
    options = {
        name: value[:constraints] if name in ("limits", "constraint_range") else value
        for name, value in options.items()
    }
    opt = pcces.Optimizer([0.0, 0.5], max_evaluations=budget, rng=budget, strategy=strategy, **options)
    laboratory = Laboratory(workers, noise, failing=failing, constraints=constraints)
    res = laboratory.finish(opt)
    assert res.nfev <= laboratory.asked <= budget and res.nfev + len(laboratory.running) == laboratory.asked
    assert res.status in (0, 1, 2, 4) and opt.evaluations_left == budget - laboratory.asked
    assert not (failing == 1.0 and res.success)
    if constraints == 0 and failing == 0:
        assert res.certificate.holds and np.isfinite(res.fun)


@pytest.mark.parametrize("strategy", ["model", "cma"])
def test_sixteen_workers_with_exponential_durations_keep_busy(strategy):
    certified = 0
    for seed in range(4):
        opt = pcces.Optimizer([-1.5, -1.0], bounds=BOX, max_evaluations=1000, rng=seed, strategy=strategy)
        laboratory = Laboratory(16)
        res = laboratory.finish(opt)
        assert laboratory.worked / laboratory.clock > 14.5
        certified += res.certificate.holds
        assert res.x.sum() <= 1 + 0.05 * (not res.certificate.holds)
        assert res.fun < (0.6 if strategy == "model" else 1.5)  # of 10.25 at the start
    assert certified >= 3


def test_few_evaluations_keep_sixteen_workers_busy_too():
    opt = pcces.Optimizer([-1.5, -1.0], bounds=BOX, max_evaluations=160, rng=1)
    laboratory = Laboratory(16)
    res = laboratory.finish(opt)
    assert laboratory.worked / laboratory.clock > 12.5  # the last ones are waited for: no more than 13.3 is possible
    assert res.certificate.holds and res.x.sum() <= 1 and res.fun < 0.65


def test_proposals_reckon_with_those_that_are_out():
    opt = pcces.Optimizer([-1.5, -1.0], bounds=BOX, max_evaluations=100, rng=1, deterministic=True, strategy="gp")
    laboratory = Laboratory(1, noise=0.0)
    for _ in range(18):
        laboratory.step(opt)
    assert opt.state.phase == "propose"
    alone, again = (acquire.next_points(opt.search, 1, turn=0)[0] for _ in range(2))
    beside = acquire.next_points(opt.search, 1, np.array([alone]), turn=0)[0]
    assert np.array_equal(alone, again) and np.linalg.norm(beside - alone) > 2e-4  # where little is left to learn
    points = np.vstack([opt.ask(1).points for _ in range(5)])
    assert len(opt.pending) == 5 and len(np.unique(points.round(4), axis=0)) == 5


@pytest.mark.parametrize("slow", ["feasible", "infeasible"])
def test_the_certificate_does_not_depend_on_which_evaluations_were_quick(slow, monkeypatch):
    """What breaks the limit takes a hundred times as long as what keeps it, or the other way round: a look takes the samples
    that were asked for first all the same."""
    looks, tell = [], certify.tell
    monkeypatch.setattr(certify, "tell", lambda s, b, o: looks.append(b.seeds.tolist()) or tell(s, b, o))
    opt = pcces.Optimizer([0.0, 0.0], bounds=BOX, max_evaluations=300, rng=0, strategy="cma", population=8)
    asked, ask = [], desk.ask

    def noted(search, count):
        orders = ask(search, count)
        asked.extend(order.seed for order in orders if order.why == "certify")
        return orders

    monkeypatch.setattr(desk, "ask", noted)
    quick = slow == "infeasible"
    laboratory = Laboratory(8, noise=0.3, duration=lambda f, c, rng: 1.0 if (c[0] <= 0) == quick else 100.0)
    laboratory.finish(opt)
    done = [row["seed"] for row in opt.evaluations if row["why"] == "certify"]
    for look in looks:
        first = asked.index(look[0])
        assert asked[first : first + len(look)] == look
    assert looks[0] != done[: len(looks[0])]
    told = {row["seed"]: row["c0"] for row in opt.evaluations}
    assert opt.state.test.samples[: len(looks[-1]), 1].tolist() == [told[seed] for seed in looks[-1]]


def test_what_makes_no_sense_is_refused():
    opt = pcces.Optimizer([0.0, 0.0], bounds=BOX, rng=0, max_evaluations=40)
    with pytest.raises(ValueError, match=r"ask\(count\) needs a count of at least 1, got 0"):
        opt.ask(0)
    opt.ask()
    with pytest.raises(
        RuntimeError, match=r"first tell the batch that was asked for: ask\(\) and ask\(count\) do not mix"
    ):
        opt.ask(1)
    opt = pcces.Optimizer([0.0, 0.0], bounds=BOX, rng=0, max_evaluations=40)
    batch = opt.ask(2)
    with pytest.raises(RuntimeError, match=r"ask\(count\) was used before: give the number"):
        opt.ask()
    opt.tell(batch, 1.0, -1.0, rows=1)
    with pytest.raises(ValueError, match="batch 1 has rows that were already told or never asked for"):
        opt.tell(batch, 1.0, -1.0, rows=1)
    with pytest.raises(ValueError, match="c has 2 constraints now but had 1 before"):
        opt.tell(batch, 1.0, [-1.0, -1.0], rows=0)
    opt.tell(batch.part([0]), [1.0], [-1.0])  # none of it did any harm
    Laboratory().finish(opt)
    with pytest.raises(RuntimeError, match="the search is over"):
        opt.ask(1)
    large = pcces.Optimizer(np.zeros(10**6), max_evaluations=1000, population=20)
    with pytest.raises(ValueError, match=r"20 points with 1000000 numbers are too many; use ask\(\)"):
        large.ask(1)


def test_finish_ends_an_asynchronous_search():
    opt = pcces.Optimizer([0.0, 0.0], bounds=BOX, rng=0, max_evaluations=300, strategy="cma")
    laboratory = Laboratory()
    for _ in range(100):
        laboratory.step(opt)
    opt.finish()
    res = laboratory.finish(opt)
    assert "stopped by the caller" in res.message and res.certificate.samples > 8 and res.nfev < 300


def test_named_variables_are_asked_for_one_by_one():
    bounds = {"k": pcces.Integer(0, 20), "way": pcces.Choice("a", "b", "c")}
    opt = pcces.Optimizer({"k": 1, "way": "a"}, bounds=bounds, max_evaluations=60, rng=0)
    while not opt.stop():
        batches = [opt.ask(1) for _ in range(2)]
        for batch in batches:
            for x in batch.points:
                opt.tell(batch, (x["k"] - 6) ** 2 + 10 * (x["way"] != "b"), x["k"] - 8, rows=0)
                if opt.stop():
                    break
            if opt.stop():
                break
    assert opt.result.x == {"k": 6, "way": "b"}


# -- minimize ----------------------------------------------------------------------------------------------------------------------


def press(x, rng):
    e = 0.05 * rng.standard_normal(2)
    return ((x - 1) ** 2).sum() + e[0], x.sum() - 1 + e[1]


def solve(fun=press, **options):
    given = {"bounds": BOX, "common_random_numbers": True, "rng": 0, "max_evaluations": 300, "strategy": "cma"}
    return pcces.minimize(fun, [0.0, 0.0], **{**given, "asynchronous": True, **options})


@pytest.mark.parametrize("workers", [None, 2], ids=["here", "processes"])
def test_minimize_asks_for_as_many_as_it_has_workers(workers):
    res = solve(workers=workers)
    assert res.certificate.holds and res.x.sum() <= 1 and 0.4 < res.fun < 1.2 and len(res.evaluations) == res.nfev


def test_minimize_keeps_the_threads_of_an_executor_busy():
    lock, working, seen = threading.Lock(), [0], []

    def fun(x, rng):
        with lock:
            working[0] += 1
            seen.append(working[0])
        time.sleep(rng.exponential(0.003))
        with lock:
            working[0] -= 1
        return press(x, rng)

    with ThreadPoolExecutor(6) as executor:
        res = solve(fun, workers=executor)
    assert res.certificate.holds and max(seen) == 6


def test_minimize_asynchronously_resumes_and_repeats_what_was_out(tmp_path):
    path, calls = tmp_path / "run.npz", []

    def fun(x, rng):
        calls.append(1)
        if len(calls) == 120:
            raise KeyboardInterrupt
        return press(x, rng)

    with pytest.raises(KeyboardInterrupt) as caught:
        solve(fun, checkpoint=path)
    assert caught.value.result.nfev == 119
    kept = pcces.Optimizer.load(path)
    assert kept.state.budget.evaluations == 119 and sum(map(len, kept.pending)) == 1
    with pytest.raises(ValueError, match="is asynchronous: give asynchronous=True"):
        solve(checkpoint=path, asynchronous=False)
    assert np.array_equal(solve(checkpoint=path).evaluations["f"], solve().evaluations["f"])


def test_what_cannot_be_asynchronous_is_refused():
    with pytest.raises(TypeError, match="needs an integer or an executor as workers"):
        solve(workers=map)
    with pytest.raises(ValueError, match="leave out vectorized=True"):
        solve(vectorized=True, common_random_numbers=False)
    with pytest.raises(TypeError, match="fun returned 'a'"):
        solve(lambda x, rng: "a")


def test_constraints_of_their_own_are_evaluated_beside_the_objective():
    """Of two points, with four workers, both functions run at the same time, or nobody would pass the barrier."""
    barrier = threading.Barrier(4, timeout=20)

    def together(value):
        if opened[0] < 4:
            opened[0] += 1
            barrier.wait()
        return value

    opened = [0]
    with ThreadPoolExecutor(4) as executor:
        res = pcces.minimize(
            lambda x: together(((x - 1) ** 2).sum()), [0.0, 0.0], [lambda x: together(x.sum() - 1)], BOX,
            workers=executor, max_evaluations=200, rng=0,
        )  # fmt: skip
    alone = pcces.minimize(
        lambda x: ((x - 1) ** 2).sum(), [0.0, 0.0], [lambda x: x.sum() - 1], BOX, max_evaluations=200, rng=0
    )
    assert np.array_equal(res.x, alone.x) and res.message == alone.message
    assert np.array_equal(res.evaluations["c0"], alone.evaluations["c0"])

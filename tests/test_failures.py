"""Failed evaluations that are missing values, and what certificates say of them."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pcces
from pcces.blackbox import missing
from pcces.blackbox.batch import Batch
from pcces.core.bounds import binomial_bound
from pcces.core.certificate import Certificate
from pcces.report.search_answer import certified

BOX = [(-2.0, 2.0)] * 2


class Press:
    """A quadratic under x.sum() <= 1, of which evaluations fail at random."""

    def __init__(self, fails, noise=0.05, limited=True):
        self.fails, self.noise, self.limited = fails, noise, limited

    def __call__(self, x, rng):
        x, e = np.asarray(x), self.noise * rng.standard_normal(2)
        if rng.random() < self.fails:
            raise RuntimeError("no licence")
        f = ((x - 1) ** 2).sum() + e[0]
        return (f, x.sum() - 1 + e[1]) if self.limited else f


def solve(fun, **options):
    given = {"bounds": BOX, "rng": 0, "common_random_numbers": True, "max_evaluations": 600, "strategy": "cma"}
    return pcces.minimize(fun, [-1.0, 0.0], **given | options)


KINDS = {
    "few": {"strategy": "default", "max_evaluations": 100},
    "model": {"strategy": "model"},
    "cma": {},
    "asynchronous": {"asynchronous": True},
    "fresh": {"incumbent": "fresh", "samples": 4},
}


@pytest.mark.parametrize("kind", KINDS)
def test_random_failures_no_longer_make_certificates_impossible(kind):
    res = solve(Press(0.08), failures="missing", **KINDS[kind])
    c = res.certificate
    assert res.success and res.x.sum() <= 1 and res.fun < 1.3 and res.failures > 3
    assert c.failed + c.samples <= (res.evaluations["why"] == "certify").sum() and c.failed > 0
    assert c.failed / (c.failed + c.samples) < c.failure_rate < 0.5 and c.failure_limit is None
    assert (
        f"{c.failed} of {c.failed + c.samples} fresh evaluations failed: at most {100 * c.failure_rate:.2g} % do"
        in str(c)
    )
    assert "limits are those of evaluations that do not fail" in " ".join(c.assumes)
    infeasible = solve(Press(0.08), **KINDS[kind])
    assert infeasible.certificate.failure_rate is None
    assert infeasible.success or "say failures='missing'" in infeasible.message


def test_the_failure_rate_is_the_exact_bound_with_its_part_of_the_error_probability():
    opt = pcces.Optimizer([-1.0, 0.0], bounds=BOX, max_evaluations=600, rng=0, strategy="cma", failures="missing")
    press, looks = Press(0.1), []
    while not opt.stop():
        batch = opt.ask()
        told = []
        for x, seed in zip(batch.points, batch.seeds):
            try:
                told.append(press(x, np.random.default_rng(seed)))
            except RuntimeError:
                told.append((np.nan, np.nan))
        if batch.phase == "certify":
            looks.append(np.isnan([f for f, _ in told]).sum())
            share = (0.05 * (1 - opt.state.test.spent)) / 2 * (0.2 if len(looks) == 1 else 1.0)
        opt.tell(batch, [f for f, _ in told], [[c] for _, c in told])
    c = opt.result.certificate
    assert len(opt.state.test.candidates) == 1 and c.failed == sum(looks) > 0
    assert c.failure_rate == pytest.approx(binomial_bound(c.failed, c.failed + c.samples, share))


@pytest.mark.parametrize(("rate", "holding"), [(0.12, (0, 3)), (0.02, (40, 60))])
def test_a_limit_on_failures_is_hardly_ever_certified_falsely(rate, holding):
    held = below = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])

        def fun(x, rng=rng):
            if rng.random() < rate:
                return np.nan
            return (x**2).sum() + 0.1 * rng.standard_normal(), x[0] - 0.5 + 0.1 * rng.standard_normal()

        c = pcces.minimize(
            fun, [1.0], bounds=[(-2, 2)], rng=seed, max_evaluations=400, strategy="gaussian", failures=0.1
        ).certificate
        held += c.holds
        below += c.failure_rate is not None and c.failure_rate < rate
    assert holding[0] <= held <= holding[1] and below <= 7  # 3 are expected at most


def test_the_page_says_how_often_evaluations_fail():
    rows = dict(certified(solve(Press(0.1), failures=0.25)).rows)
    assert re.fullmatch(
        r"\d+ of \d+ fresh ones; at most [\d.]+ % \(25 % allowed\)",
        rows["failed evaluations (missing values)"],
    )
    assert not any("missing" in name for name in dict(certified(solve(Press(0.0))).rows))


def test_how_often_evaluations_may_fail_can_be_limited():
    some, few = (solve(Press(0.1), failures=share) for share in (0.25, 0.05))
    assert some.success and some.certificate.failure_rate <= 0.25 == some.certificate.failure_limit
    assert few.status == 1 and few.certificate.failure_rate > 0.05 and few.certificate.fails_too_often
    assert "evaluations may fail too often" in few.message and "or allow more failures" in few.message
    assert solve(Press(0.0), failures=0.1).certificate.failed == 0


def test_a_limit_on_failures_is_certified_without_constraints_too():
    seldom, often = (solve(Press(rate, limited=False), failures=0.2) for rate in (0.05, 0.4))
    assert seldom.success and seldom.certificate.upper_bounds == () and 0.05 < seldom.certificate.failure_rate <= 0.2
    assert seldom.certificate.grade == "guaranteed" and len(seldom.certificate.assumes) == 3
    assert not often.success and "evaluations may fail too often" in often.message
    assert solve(Press(0.05, limited=False), failures="missing").certificate.samples == 0  # there is nothing to show


def test_what_always_fails_is_the_point_after_all():
    calls = []

    def never(x, rng):
        calls.append(tuple(x))
        raise RuntimeError

    for options in ({}, {"asynchronous": True}, KINDS["few"]):
        res = solve(never, failures="missing", **options | {"max_evaluations": 60})
        assert res.status == 2 and res.failures == res.nfev <= 60
    calls.clear()
    opt = pcces.Optimizer([-1.0, 0.0], bounds=BOX, max_evaluations=300, rng=0, strategy="cma", failures="missing")
    for _ in range(2):
        batch = opt.ask()
        assert batch.phase == "start" and len(batch) == 2
        opt.tell(batch, [np.nan] * 2)
    assert opt.ask().phase == "trial" or opt.ask().phase == "sample"

    def half(x, rng):
        if x[0] > 0.4:
            raise RuntimeError
        return Press(0.05)(x, rng)

    res = solve(half, failures="missing")
    assert res.success and res.x[0] <= 0.4 and res.x.sum() <= 1 and res.fun < 1.2


@settings(max_examples=40)
@given(
    budget=st.integers(1, 120),
    fails=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    failures=st.sampled_from(["missing", 0.3]),
    constraints=st.integers(0, 2),
    strategy=st.sampled_from(["gaussian", "cma", "default"]),
    workers=st.sampled_from([0, 3]),
    options=st.sampled_from(
        [
            {},
            {"deterministic": True},
            {"common_random_numbers": True},
            {"incumbent": "fresh", "samples": 3},
            {"x0": [[0.0, 0.5], [1.0, 1.0]]},
            {"initial_data": ([[0.5, 0.5], [0.4, 0.4], [1.0, 1.5]], [0.5, np.nan, 0.2])},
        ]
    ),
)
def test_the_budget_is_never_exceeded_and_the_search_ends(
    budget, fails, failures, constraints, strategy, workers, options
):
    asked_for = {
        "x0": [0.0, 0.5],
        "max_evaluations": budget,
        "rng": budget,
        "strategy": strategy,
        "failures": failures,
        **options,
    }
    if "initial_data" in asked_for:
        points, f = asked_for["initial_data"]
        asked_for["initial_data"] = points, f, np.zeros((3, constraints)) - 0.1
    if budget < 4 and isinstance(asked_for["x0"][0], list):
        return
    opt, asked, running = pcces.Optimizer(**asked_for), 0, []
    while not opt.stop():
        batch = opt.ask(max(workers - len(running), 1)) if workers else opt.ask()
        asked += len(batch)
        running += [(batch, row) for row in range(len(batch))]
        assert running and asked <= budget
        for each, row in [running.pop(0)] if workers else running:
            rng = np.random.default_rng(int(each.seeds[row]))
            x, e = each.points[row], 0.1 * rng.standard_normal(1 + constraints) * (not options.get("deterministic"))
            f = np.nan if rng.random() < fails else ((x - 1) ** 2).sum() + e[0]
            if not opt.stop():
                opt.tell(each, f, x.sum() - 1 + e[1:], rows=row)
        running = running if workers else []
    res = opt.result
    assert res.nfev <= budget and res.status in (0, 1, 2, 4)
    assert not (fails == 1.0 and res.success) or "initial_data" in options  # of which the best is known
    assert fails > 0 or res.certificate.failed == 0


def test_pairs_on_the_same_random_numbers_lose_both():
    opt = pcces.Optimizer([0.0], max_evaluations=300, rng=0, common_random_numbers=True, failures="missing")
    points, outputs = np.array([[1.0]] * 3 + [[0.0]] * 3), np.arange(6.0)[:, None]
    outputs[1] = outputs[5] = np.inf
    batch = Batch(points, np.array([7, 8, 9, 7, 8, 9]), 0, "trial", 3)
    part, rest = missing.without(opt.search, batch, outputs)
    assert rest[:, 0].tolist() == [0.0, 3.0] and part.seeds.tolist() == [7, 7] and part.at_trial == 1
    opt.search.common_random_numbers = False
    part, rest = missing.without(opt.search, batch, outputs)
    assert (
        rest[:, 0].tolist() == [0.0, 2.0, 3.0, 4.0]
        and part.at_trial == 2
        and part.points.ravel().tolist() == [1, 1, 0, 0]
    )


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_file_remembers_what_is_missing(asynchronous, tmp_path):
    path, calls = tmp_path / "run.npz", [0]
    press = Press(0.15)

    def interrupted(x, rng):
        calls[0] += 1
        if calls[0] in (3, 150, 230):
            raise KeyboardInterrupt
        return press(x, rng)

    given = {"failures": "missing", "max_evaluations": 300, "asynchronous": asynchronous}
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            solve(interrupted, checkpoint=path, **given)
    res, whole = solve(interrupted, checkpoint=path, **given), solve(press, **given)
    assert res.certificate == whole.certificate and res.certificate.failure_rate is not None
    assert np.array_equal(res.evaluations["f"], whole.evaluations["f"], equal_nan=True)


def test_certificates_with_failures_are_plain_data():
    c = Certificate(True, 0.95, (-0.1,), 95, "t", failed=5, failure_rate=0.11, failure_limit=0.2)
    assert Certificate.from_dict(json.loads(json.dumps(c.to_dict()))) == c
    old = {name: value for name, value in c.to_dict().items() if not name.startswith("fail")}
    assert Certificate.from_dict(old).failure_rate is None and Certificate.from_dict(old).failures() == ""


@pytest.mark.parametrize("failures", ["ignored", 0, 1.0, -0.1, None])
def test_what_makes_no_sense_is_refused(failures):
    with pytest.raises(ValueError, match="failures must be 'infeasible', 'missing', or the share"):
        pcces.Optimizer([0.0], failures=failures)

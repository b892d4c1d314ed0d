"""Ask and tell: resuming to the same bits, files, budgets, batches, seeds, and populations too large to be held."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint
from small import KINDS

import pcces
from pcces import strategies
from pcces.blackbox import population
from pcces.blackbox.batch import Streams
from pcces.blackbox.population import LazyPoints, population_normals
from pcces.blackbox.space import Space
from pcces.core import algorithm
from pcces.support import files as storage

BOX = [(-2.0, 2.0)] * 3


def values(batch, noise=0.0, constraints=1):
    """A quadratic under c: x.sum() <= 1 and |x|^2 <= 2; the noise comes from the seeds, as in a resumable simulator."""
    X = np.asarray(batch.points, dtype=float)
    e = np.array([np.random.default_rng(int(seed)).standard_normal(3) for seed in batch.seeds])
    f = ((X - 1) ** 2 * [1.0, 4.0, 0.5]).sum(1) + noise * e[:, 0]
    c = np.column_stack([X.sum(1) - 1, (X**2).sum(1) - 2])[:, :constraints] + noise * e[:, 1 : 1 + constraints]
    return f, c


def finish(opt, **problem):
    batches = []
    while not opt.stop():
        batch = opt.ask()
        opt.tell(batch, *values(batch, **problem))
        batches.append(batch)
    return batches


def same_result(a, b):
    assert a.keys() == b.keys()
    assert np.array_equal(a.x, b.x) and a.fun == b.fun and np.array_equal(a.constr, b.constr)
    assert a.certificate == b.certificate and a.message == b.message
    assert (a.nit, a.nfev, a.success, a.status) == (b.nit, b.nfev, b.success, b.status)
    for column in ("evaluations", "fun", "sigma", "sigma_es", "samples_trial", "success", "kind", "constr"):
        assert np.array_equal(a.history[column], b.history[column]), column


# -- resuming -------------------------------------------------------------------------------------------------------------------

CASES = {
    **{name: {"strategy": name} for name in ("model", "gp", "cma", "gaussian", "guided", "asebo")},
    "common random numbers": {"common_random_numbers": True, "strategy": "model"},
    "some at once": {"population": 3, "strategy": "gp"},
    "fresh": {"incumbent": "fresh", "samples": "accuracy", "samples_max": 4},
    "linear": {"linear": LinearConstraint([[1.0, -1.0, 0.0]], -0.5, 0.5), "scale": [1.0, 2.0, 0.5]},
    "annealed": {"anneal": (0.5, 5), "eps_c": 0.1, "bounds": None},
    "range": {"constraint_range": ((-8.0, 8.0), (-8.0, 16.0))},
}


@pytest.mark.parametrize("noise", [0.0, 0.1], ids=["noise-free", "noisy"])
@pytest.mark.parametrize("case", CASES)
def test_a_resumed_search_goes_on_to_the_same_bits(case, noise, tmp_path):
    # Without noise, Gaussian processes hand over to the quadratic model, which takes long enough to be tested once.
    given = CASES[case] if noise or "samples" in CASES[case] else {"strategy": "cma"} | CASES[case]
    by_processes = given.get("strategy", "gp") == "gp" and "samples" not in given
    options = {"bounds": BOX, "max_evaluations": (40 if noise else 100) if by_processes else 250, "rng": 5, **given}
    whole = pcces.Optimizer(np.zeros(3), **options)
    uninterrupted = finish(whole, noise=noise, constraints=2)
    path, phases = tmp_path / "search.npz", set()
    opt = pcces.Optimizer(np.zeros(3), **options)
    for expected in uninterrupted:
        opt.save(path)
        opt = pcces.Optimizer.load(path)  # between a tell and the next ask
        batch = opt.ask()
        opt.save(path)
        opt = pcces.Optimizer.load(path)  # and between an ask and its tell
        assert batch.number == expected.number and np.array_equal(batch.seeds, expected.seeds)
        assert np.array_equal(batch.points, expected.points)
        opt.tell(batch, *values(batch, noise, constraints=2))
        phases.add(batch.phase)
    opt.save(path)
    opt = pcces.Optimizer.load(path)
    assert opt.stop() == whole.stop() != ""
    others, proposals, samples = {"start", "certify"}, {"propose"}, {"sample", "trial"}
    handed_over = noise == 0 and by_processes
    assert phases == others | (proposals if by_processes else samples) | (samples if handed_over else set())
    same_result(opt.result, whole.result)


@pytest.mark.parametrize("noise", [0.0, 0.1], ids=["noise-free", "noisy"])
def test_a_search_that_restarts_elsewhere_resumes(noise, tmp_path):
    options = {"bounds": BOX, "max_evaluations": 3000, "rng": 5, "sigma_stop": 0.02, "strategy": "cma"}
    whole = pcces.Optimizer(np.full(3, -1.5), **options)
    starts = {tuple(batch.points[0]) for batch in finish(whole, noise=noise) if batch.phase == "start"}
    assert len(starts) >= (2 if noise == 0 else 1)
    opt, path = pcces.Optimizer(np.full(3, -1.5), **options), tmp_path / "search.npz"
    for k in range(10**6):
        if opt.stop():
            break
        if k % 10 == 0:
            opt.save(path)
            opt = pcces.Optimizer.load(path)
        batch = opt.ask()
        opt.tell(batch, *values(batch, noise))
    same_result(opt.result, whole.result)


def test_float32_and_equalities_resume(tmp_path):
    opt = pcces.Optimizer(
        np.zeros(2, dtype=np.float32), equalities=[0], max_evaluations=300, rng=1, population=np.int64(6)
    )

    def tell(opt, batch):
        x = batch.points
        opt.tell(batch, (x**2).sum(1), np.column_stack([x[:, 0] - 0.5, x[:, 1] - 9]))

    while not opt.stop():
        opt.save(tmp_path / "a.npz")
        other = pcces.Optimizer.load(tmp_path / "a.npz")
        assert other.ask().points.dtype == np.float32
        tell(opt, opt.ask())
        tell(other, other.ask())
        assert np.array_equal(opt.result.x, other.result.x)
    assert opt.result.success and opt.result.x[0] == pytest.approx(0.5, abs=2e-4)


def test_a_strategy_of_ones_own_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="its strategy is given by name"):
        pcces.Optimizer([0.0], strategy=strategies.guided(m=3)).save(tmp_path / "a.npz")


# -- files ----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    opt = pcces.Optimizer(np.zeros(3), bounds=BOX, max_evaluations=200, rng=0)
    for _ in range(5):
        batch = opt.ask()
        opt.tell(batch, *values(batch, 0.1))
    opt.save(tmp_path / "run" / "search.npz")  # folders are made
    return tmp_path / "run" / "search.npz"


def test_a_file_written_before_the_state_had_groups_goes_on():
    """Written in the middle of a trial by the first version, after 11 batches of `values` with noise 0.1."""
    path = Path(__file__).parent / "data" / "search-of-before.npz"
    opt, (arrays, data) = pcces.Optimizer.load(path), storage.load(path, "pcces search")
    state, archive = opt.state, opt.search.archive
    again, scalars = state.plain()
    again |= opt.history.arrays() | {"archive_points": archive.points, "archive_outputs": archive.outputs}
    again |= {"archive_counts": archive.counts, "x0": opt.space.x0}
    assert scalars.items() >= data["memory"].items()
    assert all(np.array_equal(again[name], array) for name, array in arrays.items()) and len(arrays) > 30
    assert not state.seen.boolean and state.seen.between.all()  # what an earlier version did not note is not known
    assert (state.phase, state.budget.evaluations, state.budget.left, len(opt.history)) == ("trial", 72, 178, 1)
    assert state.noise.present and state.noise.deviation == pytest.approx([0.1, 0.1], rel=0.3)
    trial, batch = state.trial, opt.ask()
    assert trial.point.estimate.n == 8 == len(trial.samples) and trial.kind == "model"
    assert np.allclose(trial.x, state.run.es.x + state.run.es.sigma * trial.d)
    assert trial.weights.shape == (14,) and trial.directions.shape == (14, 3)
    assert np.array_equal(batch.points[0], opt.space.to_x(trial.x if batch.at_trial else state.run.es.x))
    finish(opt, noise=0.1)
    assert opt.result.success and 72 < opt.result.nfev <= 250


def test_files_hold_no_pickle(saved):
    with np.load(saved, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert len(arrays) > 10 and all(a.dtype != object for a in arrays.values())


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_named(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"search\.npz is not a file written by pcces, or it is damaged"):
        pcces.Optimizer.load(saved)


def test_foreign_files_are_named(tmp_path):
    path = tmp_path / "foreign.npz"
    np.savez(path, a=np.zeros(3))
    with pytest.raises(ValueError, match=r"foreign\.npz"):
        pcces.Optimizer.load(path)
    path.write_text("hello, world")
    with pytest.raises(ValueError, match=r"foreign\.npz"):
        pcces.Optimizer.load(path)
    np.save(tmp_path / "object.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"object\.npy"):
        pcces.Optimizer.load(tmp_path / "object.npy")
    np.save(tmp_path / "plain.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"plain\.npy"):
        pcces.Optimizer.load(tmp_path / "plain.npy")
    storage.save(path, "pcces policy", {"a": np.zeros(1)}, {})
    with pytest.raises(ValueError, match="holds a pcces policy, not a pcces search"):
        pcces.Optimizer.load(path)
    with pytest.raises(FileNotFoundError):
        pcces.Optimizer.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(saved, broken, monkeypatch):
    before = saved.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="disk full"):
        pcces.Optimizer([1.0, 2.0]).save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before and os.listdir(saved.parent) == ["search.npz"]
    pcces.Optimizer([1.0, 2.0]).save(saved)
    assert pcces.Optimizer.load(saved).ask().points[0].tolist() == [1.0, 2.0]


def test_saved_data_are_json(saved):
    _, data = storage.load(saved, "pcces search")
    assert json.loads(json.dumps(data)) == data


# -- budgets --------------------------------------------------------------------------------------------------------------------


# when enough is known for another strategy, and it can no longer be afforded
@example(budget=41, noise=0.0, constraints=0, failing=0.0, strategy="default", options={})
@settings(max_examples=60)
@given(
    budget=st.integers(1, 200),
    noise=st.sampled_from([0.0, 0.3, 5.0]),
    constraints=st.integers(0, 2),
    failing=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    strategy=st.sampled_from(["default", "gaussian", "cma"]),
    options=st.sampled_from([*KINDS, {"samples": "accuracy", "incumbent": "fresh"}]),
)
def test_the_budget_is_never_exceeded(budget, noise, constraints, failing, strategy, options):
    options = {
        name: value[:constraints] if name in ("limits", "constraint_range") else value
        for name, value in options.items()
    }
    opt = pcces.Optimizer([0.0, 0.5], max_evaluations=budget, rng=budget, strategy=strategy, **options)
    rng, spent = np.random.default_rng(budget), 0
    while not opt.stop():
        batch = opt.ask()
        k = len(batch)
        assert k == len(batch.points) == len(batch.seeds) >= 1
        spent += k
        assert spent <= budget
        x = batch.points
        f = (x**2).sum(1) + noise * rng.standard_normal(k)
        f[rng.random(k) < failing] = np.nan
        opt.tell(batch, f, (x[:, :1] - 0.2 + noise * rng.standard_normal((k, 1))).repeat(constraints, axis=1))
    res = opt.result
    assert res.nfev == spent <= budget
    assert res.success or res.status in (1, 2, 4)
    if failing == 1.0:
        assert not res.success
    if constraints == 0 and failing == 0:
        assert res.certificate.holds and np.isfinite(res.fun)


def test_max_iterations_ends_the_search_and_the_rest_certifies():
    opt = pcces.Optimizer(np.zeros(3), bounds=BOX, max_evaluations=2000, max_iterations=4, rng=0)
    finish(opt, noise=0.1)
    assert opt.result.nit == 4 and "4 iterations are done" in opt.result.message
    assert opt.result.certificate.samples > 100


def test_finish_ends_the_search_early():
    opt = pcces.Optimizer(np.zeros(3), bounds=BOX, max_evaluations=400, rng=0)
    assert opt.result.status == 3 and opt.result.message == "still running" and not opt.result.success
    for _ in range(4):
        batch = opt.ask()
        opt.tell(batch, *values(batch, 0.1))
    opt.finish()
    assert opt.ask().phase == "certify"
    finish(opt, noise=0.1)
    assert "stopped by the caller" in opt.result.message and opt.result.nfev <= 400
    opt.finish()  # again: no harm
    never = pcces.Optimizer([0.0])
    never.finish()
    assert never.stop() == "stopped by the caller" and not never.result.success


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_evaluations": 0}, "at least 1"),
        ({"confidence": 1.0}, "confidence must lie"),
        ({"confidence": 0.2}, "confidence must lie"),
        ({"strategy": "annealing"}, "unknown strategy 'annealing'"),
        ({"preset": "papper"}, "unknown preset 'papper'"),
    ],
)
def test_arguments_that_make_no_sense(wrong, message):
    with pytest.raises(ValueError, match=message):
        pcces.Optimizer([0.0], **wrong)


# -- batches --------------------------------------------------------------------------------------------------------------------


def test_a_batch_holds_all_that_can_be_evaluated_in_parallel():
    opt = pcces.Optimizer(
        np.zeros(3), bounds=BOX, population=14, samples=5, incumbent="fresh", max_evaluations=500, rng=0
    )
    batches = finish(opt, noise=0.1)
    assert len(batches[0]) == 5  # the start, as often as each estimate is to be averaged
    for batch in batches:
        if batch.phase == "sample":
            assert len(batch) == 14 and len(np.unique(batch.points, axis=0)) == 14
        elif batch.phase == "trial":  # trial point and incumbent together
            assert len(batch) == 10 and batch.at_trial == 5
            assert len(np.unique(batch.points[:5], axis=0)) == len(np.unique(batch.points[5:], axis=0)) == 1
            assert not np.array_equal(batch.points[0], batch.points[5])
    assert {"sample", "trial"} < {batch.phase for batch in batches}


def test_samples_are_mirrored_around_the_incumbent():
    opt = pcces.Optimizer([3.0, -1.0], population=8, rng=0, max_evaluations=200, strategy="cma")
    batch = opt.ask()
    opt.tell(batch, (batch.points**2).sum(1))
    population = opt.ask().points
    assert np.allclose(population[:4] + population[4:], [6.0, -2.0])
    assert np.abs(population[:4] - [3.0, -1.0]).max() > 0.01


def test_asking_twice_gives_the_same_batch():
    opt = pcces.Optimizer([0.0, 0.0], rng=0)
    assert opt.ask() is opt.ask()


def test_telling_the_wrong_things_is_refused_and_forgiven():
    opt = pcces.Optimizer([0.0, 0.0], rng=0, max_evaluations=100)
    batch = opt.ask()
    k = len(batch)
    with pytest.raises(ValueError, match=rf"f must have shape \({k},\)"):
        opt.tell(batch, np.zeros(k + 1))
    with pytest.raises(ValueError, match=rf"c must have shape \({k}, number of constraints\)"):
        opt.tell(batch, np.zeros(k), np.zeros((k + 1, 2)))
    opt.tell(batch, np.zeros(k), np.full((k, 2), -1.0))
    with pytest.raises(ValueError, match="batch 0 was told, but batch 1"):
        opt.tell(batch, np.zeros(k), np.full((k, 2), -1.0))
    second = opt.ask()
    with pytest.raises(ValueError, match="c has 1 constraints now but had 2 before"):
        opt.tell(second, np.zeros(len(second)), np.full((len(second), 1), -1.0))
    while not opt.stop():  # none of it did any harm
        batch = opt.ask()
        opt.tell(batch, (batch.points**2).sum(1), np.full((len(batch), 2), -1.0))
    assert opt.result.certificate.holds and opt.result.nfev <= 100
    for late in (opt.ask, lambda: opt.tell(batch, np.zeros(1))):
        with pytest.raises(RuntimeError, match="the search is over"):
            late()


def test_equalities_must_name_constraints():
    opt = pcces.Optimizer([0.0], equalities=[2])
    batch = opt.ask()
    with pytest.raises(ValueError, match=r"equalities \(2,\) name constraints beyond the 1"):
        opt.tell(batch, np.zeros(len(batch)), np.zeros((len(batch), 1)))


def test_what_lies_outside_its_stated_range_is_refused_and_forgiven():
    opt = pcces.Optimizer([0.0, 0.0], rng=0, max_evaluations=100, constraint_range=[(-1, 1), (-3, 3)], equalities=[1])
    batch = opt.ask()
    k = len(batch)
    with pytest.raises(ValueError, match="constraint_range has 2 pairs for 1 constraints"):
        opt.tell(batch, np.zeros(k), np.zeros((k, 1)))
    with pytest.raises(ValueError, match=r"constraint 1 was -3.5, outside its constraint_range \(-3, 3\)"):
        opt.tell(batch, np.zeros(k), np.full((k, 2), [1.0, -3.5]))
    opt.tell(batch, np.full(k, np.nan))
    batch = opt.ask()
    k += len(batch)
    opt.tell(batch, np.full(len(batch), np.nan), np.full((len(batch), 2), 99.0))
    while not opt.stop():  # none of it did any harm
        batch = opt.ask()
        x = np.clip(batch.points, -1, 1)
        opt.tell(batch, (x**2).sum(1), np.column_stack([np.full(len(x), 1 - 1e-10), x[:, 1]]))
    assert opt.result.failures == k < opt.result.nfev <= 100


def test_one_constraint_may_be_told_as_a_vector():
    a, b = (pcces.Optimizer([0.0, 0.0], rng=0, max_evaluations=100) for _ in range(2))
    while not a.stop():
        batch = a.ask()
        f, c = (batch.points**2).sum(1), batch.points[:, 0] - 1
        a.tell(batch, f, c)
        b.tell(b.ask(), f, c[:, None])
    same_result(a.result, b.result)


# -- randomness -----------------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_run():
    def run(rng, noise):
        opt = pcces.Optimizer(np.zeros(3), bounds=BOX, max_evaluations=50, rng=rng)
        return finish(opt, noise=noise), opt.result

    for noise in (0.0, 0.1):
        (_, a), (_, b) = run(7, noise), run(7, noise)
        same_result(a, b)
        assert not np.array_equal(run(8, noise)[1].x, a.x)
    same_result(run(np.random.default_rng(3), 0.1)[1], run(np.random.default_rng(3), 0.1)[1])
    batches, _ = run(7, 0.1)
    seeds = np.concatenate([batch.seeds for batch in batches])
    assert len(np.unique(seeds)) == len(seeds)  # a random number for each evaluation


@pytest.mark.parametrize("samples", ["race", 4])
def test_common_random_numbers_are_shared_where_points_are_compared(samples):
    opt = pcces.Optimizer(
        np.zeros(3), bounds=BOX, max_evaluations=600, rng=1, common_random_numbers=True, samples=samples
    )
    batches = finish(opt, noise=0.1)
    pairs = 0
    for batch in batches:
        half = len(batch) // 2
        if batch.phase == "sample":  # mirrored pairs
            assert np.array_equal(batch.seeds[:half], batch.seeds[half:])
            assert len(np.unique(batch.seeds)) == half
        elif batch.phase == "trial":  # trial point and incumbent
            assert batch.at_trial == half == len(batch) - half
            assert np.array_equal(batch.seeds[:half], batch.seeds[half:])
            assert len(np.unique(batch.seeds)) == half
            pairs += half
        else:
            assert len(np.unique(batch.seeds)) == len(batch)
    assert pairs > 20
    used = [seed for batch in batches for seed in np.unique(batch.seeds)]
    assert len(set(used)) == len(used)  # and never again


def test_common_random_numbers_take_the_noise_out_of_comparisons():
    """f = |x|^2 + the same large error for the same seed: paired differences are exact."""

    def run(common):
        opt = pcces.Optimizer([1.0, 1.0], max_evaluations=800, rng=2, common_random_numbers=common, strategy="cma")
        incumbents = []
        while not opt.stop():
            batch = opt.ask()
            noise = np.array([np.random.default_rng(int(s)).standard_normal() for s in batch.seeds])
            f = (batch.points**2).sum(1)
            if batch.phase == "trial" and batch.at_trial < len(batch):
                incumbents.append(f[-1])
            opt.tell(batch, f + 10 * noise)
        return np.array(incumbents), np.linalg.norm(opt.result.x)

    (paired, error), (alone, error_alone) = run(True), run(False)
    assert np.all(np.diff(paired) <= 0) and error < 0.1  # no step was taken on luck
    assert np.any(np.diff(alone) > 0) and error_alone > 0.5


def shared_noise(batch, size):
    return size * np.array([np.random.default_rng(int(seed)).standard_normal() for seed in batch.seeds])


def test_noise_that_mirrored_pairs_share_does_not_shorten_the_step():
    """The weights of gaussian are linear in the shaped fitness: standardised by the whole spread, noise would shrink them."""

    def first_step(size):
        opt = pcces.Optimizer(np.ones(5), common_random_numbers=True, strategy="gaussian", population=40, rng=0)
        while opt.state.phase in ("start", "sample"):
            batch = opt.ask()
            opt.tell(batch, batch.points.sum(1) + shared_noise(batch, size))
        return opt.state.trial.d

    assert first_step(100.0) == pytest.approx(first_step(0.01), rel=1e-6)


@pytest.mark.parametrize("constraint", [None, -1.0, 0.9999])
def test_the_race_ends_when_paired_differences_are_all_the_same(constraint):
    opt = pcces.Optimizer([1.0, 1.0], max_evaluations=4000, rng=2, common_random_numbers=True, strategy="cma")
    rng = np.random.default_rng(0)
    while not opt.stop() and len(opt.history) < 25:
        batch = opt.ask()
        c = None if constraint is None else constraint - 1 + 0.01 * rng.standard_normal(len(batch))
        opt.tell(batch, (batch.points**2).sum(1) + shared_noise(batch, 10.0), c)
    most = opt.history["samples_trial"].max()
    assert opt.history["success"].sum() > 3
    assert most > 4 if constraint == 0.9999 else most == 4  # a constraint that is still open keeps it open


def test_a_failed_sample_does_not_shift_the_others():
    """The weights of gaussian pairs without a failure are the same, whatever number a failure would be replaced by."""

    def weights(offset):
        opt = pcces.Optimizer(np.ones(3), strategy="gaussian", population=12, rng=0, deterministic=True)
        while opt.state.phase in ("start", "sample"):
            batch = opt.ask()
            f = batch.points.sum(1) + offset
            if batch.phase == "sample":
                f[4] = np.nan
            opt.tell(batch, f)
        return opt.state.trial.weights

    assert weights(1000.0) == pytest.approx(weights(0.0), rel=1e-9)
    assert np.flatnonzero(weights(0.0) == 0).tolist() == [4, 10]


# -- populations too large to be held -------------------------------------------------------------------------------------------


@pytest.fixture
def small_table(monkeypatch):
    monkeypatch.setattr(population, "DRAWN_NUMBERS", 10)
    monkeypatch.setattr(population, "LAZY_NUMBERS", 50)
    monkeypatch.setattr(population, "TABLE", 4096)
    monkeypatch.setattr(population, "BLOCK_ROWS", 4)  # several blocks
    monkeypatch.setattr(population, "BLOCK_NUMBERS", 40)
    monkeypatch.setattr(population, "PIECE_NUMBERS", 30)


def lazy_case(strategy, bounds, linear=()):
    n, half = 12, 9
    rng = np.random.default_rng(0)
    x0 = rng.uniform(-0.5, 0.5, n)
    space = Space(x0, [(-1, 1)] * n if bounds else None, list(linear))
    own = strategy.init(x0)
    own = strategy.update(own, rng.standard_normal((6, n)), np.full(6, 1 / 6), np.zeros(n), rng.standard_normal(n))
    state = algorithm.init(space.to_z(x0), 0.4, 0.7)
    z = population_normals(Streams(3), 5, half, strategy.normals(n), np.float64)
    lazy = LazyPoints(z, strategy, own, state, space)
    directions = strategies.mirrored(strategy.directions(own, z.rows(0, half)))
    inside = space.project(algorithm.sample_points(state.x, state.sigma_es, directions))
    return lazy, space.to_x(inside), (inside - state.x) / state.sigma_es


@pytest.mark.usefixtures("small_table")
@pytest.mark.parametrize("bounds", [False, True], ids=["free", "bounded"])
@pytest.mark.parametrize("name", ["gaussian", "guided", "asebo"])
def test_lazy_points_equal_the_dense_ones(name, bounds):
    lazy, dense, directions = lazy_case(getattr(strategies, name)(), bounds)
    assert isinstance(lazy, LazyPoints) and lazy.shape == (18, 12) == dense.shape and len(lazy) == 18
    assert np.allclose(np.asarray(lazy), dense, atol=1e-14)
    built = np.asarray(lazy)  # one by one, in any order, or all at once: the same bits
    assert np.array_equal(np.stack(list(lazy)), built) and np.array_equal(lazy[-1], built[17])
    assert all(np.array_equal(lazy[i], built[i]) for i in (17, 3, 12, 0, 8, 9))
    assert np.asarray(lazy, dtype=np.float32).dtype == np.float32
    with pytest.raises(IndexError):
        lazy[18]
    assert not bounds or np.abs(dense).max() == 1.0  # the projection did something
    weights = np.random.default_rng(1).standard_normal(18)
    assert np.allclose(lazy.combine(weights), weights @ directions, atol=1e-12)


@pytest.mark.usefixtures("small_table")
def test_lazy_points_keep_linear_sets():
    flat = LinearConstraint(np.ones((1, 12)), -1.0, 1.0)
    lazy, dense, directions = lazy_case(strategies.gaussian(), True, [flat])
    assert np.allclose(np.asarray(lazy), dense) and np.abs(dense.sum(1)).max() <= 1 + 1e-9
    weights = np.random.default_rng(1).standard_normal(18)
    assert np.allclose(lazy.combine(weights), weights @ directions)


def test_normals_are_a_function_of_seed_and_iteration():
    a, again, later, other = (
        population_normals(Streams(s), k, 500, 7, np.float64).rows(0, 500) for s, k in ((1, 0), (1, 0), (1, 1), (2, 0))
    )
    assert np.array_equal(a, again) and not np.array_equal(a, later) and not np.array_equal(a, other)
    assert abs(np.corrcoef(a.ravel(), later.ravel())[0, 1]) < 0.06 and a.std() == pytest.approx(1.0, abs=0.05)
    assert population_normals(Streams(1), 0, 2, 3, np.float32).rows(0, 2).dtype == np.float32


@pytest.mark.usefixtures("small_table")
def test_table_rows_are_normal_and_differ():
    z = population_normals(Streams(1), 0, 40, 30, np.float64)
    rows = z.rows(0, 40)
    assert rows.shape == z.shape == (40, 30) and rows.std() == pytest.approx(1.0, abs=0.1)
    assert len(np.unique(rows[:, 0])) > 35
    assert np.array_equal(np.concatenate([z.rows(*block) for block in z.blocks()]), rows)
    assert np.array_equal(population_normals(Streams(1), 0, 40, 30, np.float64).rows(0, 40), rows)


@pytest.mark.usefixtures("small_table")
@pytest.mark.parametrize("bounds", [None, BOX], ids=["free", "bounded"])
def test_a_whole_search_on_lazy_points(bounds, tmp_path):
    opt = pcces.Optimizer(np.zeros(3), bounds=bounds, strategy="guided", max_evaluations=4000, rng=0, population=20)
    lazy = 0
    while not opt.stop():
        batch = opt.ask()
        lazy += isinstance(batch.points, LazyPoints)
        if len(opt.history) == 10:
            opt.save(tmp_path / "a.npz")
            resumed = pcces.Optimizer.load(tmp_path / "a.npz").ask()
            assert np.array_equal(np.asarray(resumed.points), np.asarray(batch.points))
        opt.tell(batch, *values(batch, constraints=0))
    assert lazy > 50 and opt.result.fun < 1e-3


def test_how_far_limits_were_broken_counts_the_certificates_evaluations(tmp_path):
    opt = pcces.Optimizer([0.0], bounds=[(-1, 1)], max_evaluations=600, rng=0)
    while not opt.stop():
        batch = opt.ask()
        c = -1 + 0.1 * np.sin(1e4 * np.arange(len(batch)))
        if batch.phase == "certify":
            c[0] = 2.5
        opt.tell(batch, (batch.points**2).sum(1), c)
        opt.save(tmp_path / "search.npz")
        opt = pcces.Optimizer.load(tmp_path / "search.npz")
    found = opt.result.violations
    assert found.worst == (2.5,) and found.evaluations > 0
    assert (
        f"{found.evaluations} evaluations" in opt.result.message
        and "by at most 2.5 (constraint 0)" in opt.result.message
    )

"""Saved searches and checkpoints of trainings with changes made at random: nothing but clear errors, or a search that goes on."""

import random
import shutil

import numpy as np
import pytest
import small
from scipy.optimize import LinearConstraint
from test_fuzz import change_arrays, changed_bytes

import pcces
from pcces.blackbox import contents
from pcces.blackbox.contents import generalised
from pcces.blackbox.storage import KIND
from pcces.report.search import search_page
from pcces.support import files

FEW = dict(small.FEW, report=False)
NAMED = {"a": (0, 3), "b": pcces.Integer(1, 5), "c": pcces.Choice("x", "y", "z")}
# What is asked for, and after how many batches it is saved.
SEARCHES = {
    "new": (dict(x0=[1.0, 1.0]), 0),
    "trial": (dict(x0=[1.0] * 3, max_evaluations=1000), 12),
    "few": (dict(x0=[1.0] * 3, max_evaluations=60), 9),
    "done": (dict(x0=[1.0] * 3, max_evaluations=200, strategy="model"), 10**6),
    "asebo": (dict(x0=[1.0] * 3, max_evaluations=600, strategy="asebo", equalities=[1],
                   limits=["P(> 0) <= 0.1", "mean <= 0"], objective=pcces.limits.Quantile(0.9)), 12),
    "named": (dict(x0={"a": 1.0, "b": 2, "c": "z"}, bounds=NAMED, max_evaluations=300, strategy="model"), 12),
    "linear": (dict(x0=[0.0] * 3, linear=LinearConstraint([[1, 1, 1]], -1, 1), bounds=[(-1, 1)] * 3, scale=[1, 2, 3],
                    constraint_range=((-20, 20),) * 2, anneal=(0.5, 5), max_evaluations=300), 8),
    "starts": (dict(x0=[[1.0] * 3, [0.5] * 3], initial_data=([[0.2] * 3, [2.0] * 3], [0.3, 11.0], [[-0.3, -6], [1.5, -8]]),
                    max_evaluations=300, failures=0.2), 6),
    "orders": (dict(x0=[1.0] * 3, max_evaluations=150), -40),  # asked for a few at a time, so many times
    "parts": (dict(x0=[1.0] * 3, max_evaluations=150, failures="missing"), 5),  # of one more batch a part is told
}  # fmt: skip


def answers(opt, batch, rng):
    """Two constraints, or as many as the search knows of; noise, and now and then a failure."""
    x = np.asarray([np.asarray(point) for point in batch.points], dtype=float)
    m = opt.state.constraints.number
    c = np.column_stack([x[:, 0] - 0.5, -x[:, 0] - 5, *x.T, *x.T])[:, : 2 if m < 0 else m]
    noisy = c + 0.1 * rng.standard_normal(c.shape)
    return (x**2).sum(1) + 0.1 * rng.standard_normal(len(x)), noisy


def going_on(opt, batches, rng):
    for _ in range(abs(batches)):
        if opt.stop():
            break
        if batches < 0 or opt.state.desk is not None:
            opt.ask(2)
            batch = (opt.pending or [opt.ask(1)])[0]
            if len(batch):
                f, c = answers(opt, batch, rng)
                opt.tell(batch, f[:1], c[:1], rows=[0])
            continue
        for batch in opt.pending or [opt.ask()]:
            opt.tell(batch, *answers(opt, batch, rng))
    return opt


def begun(name):
    """A search as far as it is saved."""
    asked, batches = SEARCHES[name]
    opt, rng = pcces.Optimizer(rng=1, **asked), np.random.default_rng(0)
    going_on(opt, batches, rng)
    if name == "parts":
        batch = opt.ask()
        f, c = answers(opt, batch, rng)
        opt.tell(batch, f[:1], c[:1], rows=[0])
    return opt


def refusal(attempt):
    """What is said against it, in a line; nothing if it succeeds."""
    try:
        attempt()
    except ValueError as error:
        said = str(error)
    else:
        return ""
    assert said.isprintable() and 0 < len(said) < 1000
    return said


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The searches as files."""
    folder = tmp_path_factory.mktemp("searches")
    for name in SEARCHES:
        begun(name).save(folder / f"{name}.npz")
    return sorted(folder.iterdir())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("part", range(4))
def test_changed_searches_are_refused_in_words_or_go_on(part, saved, tmp_path):
    rng, good, path = random.Random(part), 0, tmp_path / "search.npz"
    for _ in range(70):
        shutil.copy(rng.choice(saved), path)
        if rng.random() < 0.15:
            path.write_bytes(changed_bytes(path.read_bytes(), rng))
        else:
            change_arrays(path, rng)
        said = refusal(lambda: pcces.Optimizer.load(path))
        if said:
            assert str(path) in said
            continue
        opt = pcces.Optimizer.load(path)
        good += 1
        assert "\x1b" not in search_page(opt.result).html()
        if opt.options.constraint_range is None:
            going_on(opt, 2, np.random.default_rng(0))
        opt.save(path)
        pcces.Optimizer.load(path)
    assert 5 < good < 60


def test_what_no_search_could_go_on_from_is_refused(saved, tmp_path):
    """As files changed at random had it, now and then."""
    by_name = {path.stem: path for path in saved}

    def refused(name, says, changes=None, memory=None, options=None):
        arrays, data = files.load(by_name[name], KIND)
        data["memory"] |= memory or {}
        data["arguments"]["options"] |= options or {}
        arrays = {key: array for key, array in (arrays | (changes or {})).items() if array is not None}
        files.save(tmp_path / "a.npz", KIND, arrays, data)
        with pytest.raises(ValueError, match=says):
            pcces.Optimizer.load(tmp_path / "a.npz")

    refused("asebo", "evaluations are few, where the strategy asebo has no models", memory={"few": True})
    refused("done", "evaluations_dropped holds nan or inf", {"evaluations_dropped": np.array([np.inf, 0.0])})
    refused("done", "evaluations_dropped holds what is negative", {"evaluations_dropped": np.array([-1.0, 0.0])})
    for far in (1e300, np.nan):
        factor = {"strategy.factor": np.full((3, 3), far)}
        refused("trial", "strategy.factor holds nan, inf or numbers larger than make sense", factor)
    refused("named", "strategy.factor has a row of zeros", {"strategy.factor": np.zeros((5, 5))})
    refused("trial", "incumbent.n holds numbers larger than make sense", {"incumbent.n": np.array(4e30)})
    small = {"state.sigma_es": np.array(1e-300)}
    refused("trial", "state.sigma_es holds what is not positive, or smaller than makes sense", small)
    ranges = [[-(10**400), 10**400], [0, 1]]
    refused("linear", "constraint_range must have a pair of finite numbers", options={"constraint_range": ranges})
    refused("done", "it is done, and does not say why", memory={"message": ""})
    refused("new", "it has answer_values, and no samples of an answer", {"answer_values": np.zeros(1)})
    refused("few", "it lacks the multipliers of its constraints", {"multipliers": None})
    for name, counts in (("new", {"over": 1}), ("few", {"over": 16}), ("few", {"failures": 16})):
        refused(name, "of [0-9]+ evaluations, more failed or were over a limit", memory=counts)
    refused("trial", "it lacks the estimate of the incumbent", {"incumbent.n": np.array(0.0)}, {"phase": "trial"})
    refused("named", "state.x holds points outside the bounds", {"state.x": np.full(5, 3.0)})


def test_all_that_is_saved_is_held_against_what_it_must_be(saved):
    for path in saved:
        arrays, data = files.load(path, KIND)
        assert {generalised(name) for name in arrays if not name.startswith("strategy.")} <= set(contents.ARRAYS)
        assert set(data["memory"]) <= set(contents.MEMORY) and set(data) <= set(contents.DATA)


def test_searches_that_were_not_changed_go_on_from_any_of_their_phases(saved, tmp_path):
    for path in saved:
        whole = begun(path.stem)
        again = pcces.Optimizer.load(path)
        for opt in (whole, again):
            going_on(opt, 5, np.random.default_rng(1))
        assert np.array_equal(np.asarray(whole.result.x), np.asarray(again.result.x))
        assert whole.result.nfev == again.result.nfev


def test_a_number_too_large_to_be_squared_is_a_failed_evaluation(tmp_path):
    """Models need squares of squares; a penalty of 1e300 says no more than inf."""
    res = pcces.minimize(
        lambda x: 1e300 if x[0] > 1.2 else float((x**2).sum()), [1.0, 1.0], max_evaluations=300, rng=0, strategy="model"
    )
    assert res.success and res.failures > 0 and res.fun < 1e-3
    assert "a value of 1e+300, which is beyond 1e+100" in res.message
    assert np.isnan(res.evaluations["f"]).sum() == res.failures
    res.report(tmp_path / "a.html")
    opt = pcces.Optimizer([0.0])
    batch = opt.ask()
    opt.tell(batch, np.zeros(len(batch)), np.full((len(batch), 1), -1e200))
    assert opt.result.failures == len(batch)
    with pytest.raises(ValueError, match=r"x0 has numbers beyond 1e\+100"):
        pcces.Optimizer([1e200])


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory):
    """A training that has its checkpoint, and no policy yet."""
    folder = tmp_path_factory.mktemp("training") / "run"
    pcces.train("CartSafe-v0", out=folder, **FEW)
    for name in ("policy.npz", "certificate.json"):
        (folder / name).unlink()
    return folder


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_trainings_with_changed_checkpoints_are_refused_in_words_or_go_on(unfinished, tmp_path):
    rng, good = random.Random(0), 0
    for _ in range(12):
        folder = shutil.copytree(unfinished, tmp_path / "run")
        change_arrays(folder / "checkpoint.npz", rng)
        if not refusal(
            lambda folder=folder: pcces.train("CartSafe-v0", out=folder, resume=True, **FEW | {"iterations": 3})
        ):
            good += 1
            run = pcces.load(folder)
            assert len(run.metrics["return"]) == 3 and run.certificate is not None
        shutil.rmtree(folder)
    assert 0 < good < 12

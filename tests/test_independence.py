"""Dependence that is too slow for the certificate's samples shows in the search before them."""

import math

import numpy as np
import pytest
from scipy.signal import lfilter

import pcces
from pcces.blackbox import independence
from pcces.core.bounds import dependence


def searched(c, evaluations=1000, **options):
    """A search up to its certificate: c(x, call) is at most 0."""
    opt, calls, rng = (
        pcces.Optimizer([0.0, 0.0], bounds=[(-2, 2)] * 2, max_evaluations=evaluations, rng=0, **options),
        0,
        np.random.default_rng(0),
    )
    while opt.search.state.phase != "certify":
        batch = opt.ask()
        values = [c(x, calls + i, rng) for i, x in enumerate(batch.points)]
        opt.tell(batch, ((batch.points - 1) ** 2).sum(1) + 0.05 * rng.standard_normal(len(batch)), np.array(values))
        calls += len(batch)
    return opt.search


def seen(search):
    return independence.of_search(search, search.state.run.es.x)


def bowl(x):
    return math.exp(x[0]) + x[1] ** 2 - 2


SLOW = {
    "a drift": lambda call, rng: call / 1000,
    "a sine": lambda call, rng: math.sin(2 * math.pi * call / 700),
    "levels": lambda call, rng: float(call // 150 % 2),
    "the same for 50 calls": lambda call, rng: float(np.random.default_rng(call // 50).standard_normal()),
}
INDEPENDENT = {
    "normal": lambda call, rng: rng.standard_normal(),
    "with a peak, skewed": lambda call, rng: 3 * rng.beta(0.1, 2.0),
    "rare": lambda call, rng: 5.0 * (rng.random() < 0.02),
    "two levels": lambda call, rng: float(rng.random() < 0.5),
}


@pytest.mark.parametrize("name", SLOW)
def test_what_lasts_longer_than_the_certificates_samples_is_seen(name):
    search = searched(lambda x, call, rng: bowl(x) + 0.5 * SLOW[name](call, rng) + 0.1 * rng.standard_normal())
    assert seen(search)[0] > 8


@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_noise_on_a_curved_constraint_is_not_taken_for_it(name):
    search = searched(
        lambda x, call, rng: [bowl(x) + 0.3 * INDEPENDENT[name](call, rng), x[0] - 1.5 + 0.1 * rng.standard_normal()]
    )
    assert seen(search).tolist() == [1.0, 1.0]


def test_how_often_it_is_seen():
    """At most as often as it should where there is none, and nearly always where noise remembers, or drifts slowly."""
    rng, rows = np.random.default_rng(0), np.arange(240)
    noises = {
        "none": lambda: rng.standard_normal(240),
        "none, skewed": lambda: rng.exponential(size=240),
        "remembers": lambda: lfilter([1], [1, -0.9], rng.standard_normal(300))[60:],
        "drifts": lambda: rng.standard_normal(240) + np.linspace(-1.5, 1.5, 240),
    }
    found = dict.fromkeys(noises, 0)
    for _ in range(200):
        x = rng.standard_normal((240, 2))
        for name, noise in noises.items():
            c = (x[:, :1] ** 2 + 3 * x[:, 1:]) + noise()[:, None]
            found[name] += bool(independence._seen(x, c, rows, 0.05)[0] > 1)
    assert found["none"] <= 18 and found["none, skewed"] <= 18  # 10 are to be expected
    assert found["remembers"] >= 198 and found["drifts"] >= 190


def test_failures_in_bursts_are_seen_and_failures_that_depend_on_x_are_not():
    bursts = searched(lambda x, call, rng: call % 200 < 30, limits=["P(> 0.5) <= 0.3"])
    alone = searched(
        lambda x, call, rng: rng.random() < 1 / (1 + math.exp(-4 * (x.sum() - 1))), limits=["P(> 0.5) <= 0.3"]
    )
    assert seen(bursts)[0] > 5 and seen(alone)[0] == 1


def test_an_equality_and_its_neighbour_each_have_their_own():
    search = searched(
        lambda x, call, rng: [x[0] - x[1] + 0.05 * rng.standard_normal(), x[0] - 1 + 0.2 * math.sin(call / 80) + 0.05 * rng.standard_normal()],
        equalities=[0], equality_tolerance=0.1,
    )  # fmt: skip
    inequality, *equality = seen(search)
    assert inequality > 5 and equality == [1.0, 1.0]


def test_where_there_is_nothing_to_see():
    quiet = searched(lambda x, call, rng: bowl(x))
    assert seen(quiet).tolist() == [1.0]  # no noise in what is limited
    shared = searched(lambda x, call, rng: bowl(x) + math.sin(call / 100), common_random_numbers=True)
    assert seen(shared).tolist() == [1.0]  # evaluations share their random numbers, as they should


def test_a_slow_drift_is_not_certified_as_if_samples_were_independent():
    """The samples alone say nothing: within them the level hardly changes."""
    grades, wrong = [], 0
    for seed in range(8):
        rng, calls = np.random.default_rng(seed), 1000 * seed

        def fun(x, rng=rng):
            nonlocal calls
            calls += 1
            lasting = 0.5 if (calls // 250) % 2 else -0.5
            return -x[0] + 0.05 * rng.standard_normal(), x[0] - 1 + lasting + 0.3 * rng.uniform(-1, 1)

        res = pcces.minimize(fun, [0.0], bounds=[(-2, 2)], max_evaluations=1000, rng=seed, constraint_range=[(-4, 4)])
        grades.append(res.certificate.grade)
        wrong += bool(res.certificate.guaranteed and res.x[0] > 1)
        if not res.certificate.holds and res.status == 1:
            assert "evaluations seem to depend on each other" in res.message
    assert "guaranteed" not in grades and wrong == 0


def test_ranks_magnify_what_a_model_misses_where_noise_has_a_peak():
    rng = np.random.default_rng(0)
    residuals = rng.beta(0.1, 2.0, 600) + 0.02 * np.sin(np.arange(600) / 50)
    assert dependence(residuals) > 5 and dependence(residuals, ranked=False) == 1
    drift = rng.standard_normal(600) + np.linspace(-1, 1, 600)
    assert dependence(drift, ranked=False) == math.inf

"""The pages of runs: what single episodes cost, what training cost in all, prices, the iterate that was returned, other axes."""

import io
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image, ImageFont
from small import FEW, POPULATION
from typer.testing import CliRunner

import pcces
from pcces import report
from pcces.cli import app
from pcces.envs import Discrete, Step, Task
from pcces.envs.simulator import simulator
from pcces.report.concerns import concerns
from pcces.report.curves import time_unit
from pcces.report.episodes import single_episodes
from pcces.report.runs import took
from pcces.rl.film import caption, film
from pcces.rl.folder import load
from pcces.rl.spread import check_spread, histogram, spread

FOLDERS = Path(__file__).parent / "data" / "runs-of-before"
ON_POLICY = dict(iterations=2, epoch_steps=600, hidden=(4,), critic_hidden=(4,), passes=2, minibatches=2)
SEARCH = dict(iterations=2, hidden=(4,), population=8, initial_tries=3, metric_episodes=4)


class Toll(Task):
    """Every step costs 2 of one thing and 3 of another; what is done decides what is earned."""

    name, observation_size, actions, max_steps = "Toll-v0", 1, Discrete(2), 10
    cost_names, thresholds, cost_bounds = ("pence", "pounds"), (25.0, 25.0), (0.0, 3.0)

    def reset(self, key):
        return jnp.zeros(1)

    def step(self, state, action, key):
        return Step(state, action.astype(jnp.float32), jnp.array([2.0, 3.0]), jnp.bool_(False))


@pytest.fixture(scope="module")
def toll(tmp_path_factory):
    settings = FEW | dict(iterations=7, epoch_steps=200, rate=3e-2, initial_tries=2)
    return pcces.train(
        Toll(), out=tmp_path_factory.mktemp("toll") / "run", report=False, entropy_bounds=(-1e9, 1e9), **settings
    )


@pytest.fixture
def run(trained):
    return load(trained.folder)


# -- what it took ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [("pcces", {k: v for k, v in FEW.items() if k != "certify_episodes"}), ("pcces", POPULATION | {"initial_tries": 3}), ("ppo-lag", ON_POLICY), ("openes", SEARCH), ("asebo", SEARCH)],
    ids=["pcces", "paper", "ppo-lag", "openes", "asebo"],
)  # fmt: skip
def test_all_that_training_cost_is_counted(algorithm, settings):
    """Every step costs the same, so what all episodes cost follows from how many steps they had: samples and first policies, too."""
    run = pcces.train(Toll(), algorithm, report=False, **{"certify_episodes": 20} | settings)
    steps = run.metrics["steps"]
    assert np.allclose(run.metrics["total_cost_pence"], np.multiply(steps, 2.0))
    assert np.allclose(run.metrics["total_cost_pounds"], np.multiply(steps, 3.0))
    assert steps[0] > 0 and np.allclose(run.metrics["cost_pence"], 20)
    certifying = run.final["certification_steps"]
    assert run.final["certification_costs"] == [2 * certifying, 3 * certifying] and certifying >= 200


def test_workers_count_what_their_episodes_cost():
    task = replace(simulator("CartPole-v1", max_steps=20, cost=half_a_unit), cost_names=("cost",))
    settings = dict(workers=1, certify_episodes=4, report=False, threshold=100)
    for given in (FEW | settings | dict(epoch_steps=60), POPULATION | settings | dict(population=4, initial_tries=3)):
        run = pcces.train(task, engine="local", **given)
        assert np.allclose(run.metrics["total_cost_cost"], np.multiply(run.metrics["steps"], 0.5))
        assert run.final["certification_costs"] == [run.final["certification_steps"] / 2]


def half_a_unit(observation, action, info):
    return 0.5


def test_the_page_says_what_it_took(toll):
    (table,) = took(toll)
    steps = toll.metrics["steps"][-1]
    certifying = toll.final["certification_steps"]
    assert table.columns == ["", "training", "certification"]
    assert table.rows[:3] == [
        [name, f"{factor * steps:,.0f}", f"{factor * certifying:,.0f}"] for name, factor in (("steps", 1), ("pence", 2), ("pounds", 3))
    ]  # fmt: skip
    assert "What it took" in report.make_page([toll]).html()


def test_of_a_run_that_began_in_an_earlier_version_no_wrong_total_is_given(toll, tmp_path):
    folder = shutil.copytree(toll.path, tmp_path / "run")
    lines = [line.split(",") for line in (folder / "metrics.csv").read_text().splitlines()]
    kept = [i for i, name in enumerate(lines[0]) if not name.startswith("total_cost")]
    (folder / "metrics.csv").write_text("\n".join(",".join(line[i] for i in kept) for line in lines) + "\n")
    settings = FEW | dict(iterations=9, epoch_steps=200, rate=3e-2, initial_tries=2)
    longer = pcces.train(Toll(), out=folder, resume=True, report=False, entropy_bounds=(-1e9, 1e9), **settings)
    assert len(longer.metrics["steps"]) == 9 and np.isnan(longer.metrics["total_cost_pence"]).all()
    assert [row[0] for row in took(longer)[0].rows] == ["steps", "seconds"]


# -- single episodes ---------------------------------------------------------------------------------------------------


def test_quantiles_histogram_and_share_over_the_limit_are_those_of_the_episodes():
    rng = np.random.default_rng(0)
    costs = np.stack([rng.poisson(3.0, 1000), rng.exponential(10.0, 1000)])
    outcome = SimpleNamespace(returns=rng.normal(size=1000), costs=costs)
    problem = SimpleNamespace(cost_limits=[SimpleNamespace(value=4.0), SimpleNamespace(value=5.0)])
    found = spread(problem, outcome)
    assert found["over_limit"] == [np.mean(costs[0] > 4), np.mean(costs[1] > 5)]
    at = found["quantiles"]["shares"].index(0.95)
    assert found["quantiles"]["costs"][1][at] == pytest.approx(np.quantile(costs[1], 0.95))
    assert found["quantiles"]["return"][0] == outcome.returns.min()
    whole, real = found["histograms"]
    assert whole["edges"][:2] == [-0.5, 0.5] and whole["counts"][3] == np.sum(costs[0] == 3)
    assert sum(whole["counts"]) == sum(real["counts"]) == 1000 and 8 <= len(real["counts"]) <= 40
    assert real["edges"][0] == costs[1].min() and real["edges"][-1] == costs[1].max()
    check_spread(json.loads(json.dumps(found)), 2)
    outcome.returns[:] = np.nan  # all failed
    assert spread(problem, outcome) == {}


@pytest.mark.parametrize("values", [[7.0, 7.0], [0.25, 0.25], [0.0], [0.0, 500.0], [0.0, 1e9], [0.1] * 30 + [0.2]])
def test_a_histogram_has_room_for_all(values):
    found = histogram(np.array(values))
    assert sum(found["counts"]) == len(values) and len(found["counts"]) <= 41
    assert len(set(np.round(np.diff(found["edges"]), 6))) == 1  # bars are equally wide


def test_failed_episodes_are_no_part_of_it():
    outcome = SimpleNamespace(returns=np.array([1.0, np.nan, 3.0]), costs=np.array([[1.0, np.nan, 9.0]]))
    found = spread(SimpleNamespace(cost_limits=[SimpleNamespace(value=4.0)]), outcome)
    assert found["over_limit"] == [0.5] and sum(found["histograms"][0]["counts"]) == 2


def test_a_run_keeps_it_and_its_page_shows_it(toll):
    kept = load_toll(toll)
    assert kept.final == toll.final and kept.final["over_limit"] == [0.0, 1.0]  # 20 and 30 of 25
    table, drawn = single_episodes(toll)
    assert table.rows[2][0] == "pounds" and table.rows[2][2:] == [30.0] * 7 and table.rows[2][1] == "100 % (limit 25)"
    assert [chart.title for chart in drawn.charts] == ["pence of single episodes", "pounds of single episodes"]
    (bars,) = drawn.charts[1].series
    assert list(bars.y) == [1.0] and list(bars.x) == [30.0] and bars.bars == 1.0
    assert drawn.charts[1].limits_x[0].value == 25.0 and drawn.charts[1].note == "100 % are above the limit"
    again = toll.certified(episodes=30)
    assert sum(again.final["histograms"][0]["counts"]) == 30 and again.final["iteration"] == toll.final["iteration"]


def load_toll(toll):
    pcces.envs.register_task(Toll())
    return load(toll.path)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ({"histograms": [{"edges": [0.0], "counts": []}] * 2}, "must have rising edges"),
        ({"histograms": [{"edges": [0.0, math.nan], "counts": [1]}] * 2}, "must have rising edges"),
        ({"histograms": [{"edges": ["a", "b"], "counts": [1]}] * 2}, "edges must be a list, each a number"),
        ({"histograms": []}, "not as many as the costs"),
        ({"over_limit": [0.5]}, "not as many as the costs"),
        ({"quantiles": {"shares": [0.5], "return": [1.0], "costs": [[1.0]]}}, "not as many as their shares"),
        ({"quantiles": 3}, "quantiles must be names with values"),
        ({"iteration": -1}, "iteration must be a whole number of at least 0"),
        ({"certification_costs": "many"}, "certification_costs must be a list"),
    ],
)
def test_what_a_stranger_writes_there_is_checked(toll, damage, says, tmp_path):
    pcces.envs.register_task(Toll())
    folder = shutil.copytree(toll.path, tmp_path / "run")
    said = json.loads((folder / "certificate.json").read_text())
    said["fresh_episodes"] |= damage
    (folder / "certificate.json").write_text(json.dumps(said))
    with pytest.raises(ValueError, match=says):
        load(folder)


# -- the course --------------------------------------------------------------------------------------------------------


def test_each_cost_has_the_curve_of_its_price(toll):
    charts = {chart.title: chart for chart in report.charts([toll])}
    (pence,), (pounds,) = (charts[f"price of {name}"].series for name in ("pence", "pounds"))
    assert list(pence.y) == toll.metrics["price_pence"] and list(pounds.y) == toll.metrics["price_pounds"]
    assert max(toll.metrics["price_pence"]) < min(toll.metrics["price_pounds"])  # only the second limit is broken
    one = replace(toll, problem=replace(toll.problem, cost_names=("pence",), thresholds=(25.0,)))
    one.metrics = {name: column for name, column in toll.metrics.items() if not name.startswith("price_")}
    (price,) = {chart.title: chart for chart in report.charts([one])}["price of pence"].series
    assert list(price.y) == toll.metrics["price"]  # as earlier versions noted it


def test_the_returned_iterate_is_marked_where_it_was(toll):
    k = toll.final["iteration"]
    for over, column in (("iteration", "iteration"), ("steps", "steps"), ("time", "seconds")):
        (line,) = report.charts([toll], over)[0].series
        assert line.ring == k and line.x[line.ring] == toll.metrics[column][k]
    (line,) = report.charts([toll, replace(toll, config=toll.config | {"seed": 1})])[0].series
    assert line.ring is None  # a mean of seeds is of no single policy
    assert "A circle marks the policy that was returned" in report.make_page([toll]).html()


def test_the_iteration_is_the_first_that_saw_the_policy():
    """With a population a policy stays for some iterations."""
    run = pcces.train("CartSafe-v0", report=False, threshold=250, **POPULATION | dict(iterations=6))
    moved = [1.0, *run.metrics["success"][:-1]]
    assert 0 <= run.final["iteration"] < 6 and moved[run.final["iteration"]]


def test_curves_are_drawn_over_iterations_steps_or_time(run):
    (line,) = report.charts([run], "steps")[0].series
    assert list(line.x) == run.metrics["steps"] and report.charts([run], "steps")[0].x_label == "environment steps"
    assert list(line.others) == ["iteration", "seconds"] and list(line.others["seconds"]) == run.metrics["seconds"]
    slow = replace(run, metrics=run.metrics | {"seconds": [1800.0 * k for k in range(len(run.metrics["steps"]))]})
    chart = report.charts([slow], "time")[0]
    assert chart.x_label == "hours" and chart.series[0].x[2] == 1.0
    assert time_unit([replace(run, metrics=run.metrics | {"seconds": [600.0]})]) == ("minutes", 60.0)
    later = replace(
        run, config=run.config | {"seed": 1}, metrics=run.metrics | {"steps": [s + 100 for s in run.metrics["steps"]]}
    )
    (mean,) = report.charts([run, later], "steps")[0].series
    assert np.allclose(mean.x, np.add(run.metrics["steps"], 50))
    unknown = replace(run, metrics=run.metrics | {"seconds": [math.nan] * len(run.metrics["steps"])})
    assert list(report.charts([unknown])[0].series[0].others) == ["environment steps"]
    with pytest.raises(ValueError, match="over iteration, steps or time, not over 'hours'"):
        report.charts([run], "hours")


def test_pictures_and_pages_are_drawn_over_steps(run, trained, tmp_path):
    drawn = [run.plot(tmp_path / f"{over}.png", over).read_bytes() for over in ("iteration", "steps", "time")]
    assert len(set(drawn)) == 3
    done = CliRunner().invoke(app, ["plot", str(trained.folder), "--over", "steps", "--out", str(tmp_path / "a.png")])
    assert done.exit_code == 0 and (tmp_path / "a.png").read_bytes() == drawn[1]
    for command in ("plot", "report"):
        done = CliRunner().invoke(app, [command, str(trained.folder), "--over", "epochs"])
        assert done.exit_code == 2 and "not over 'epochs'" in done.stderr
    html = run.report(tmp_path / "page.html", "time").read_text()
    assert html.count('"xLabel":"seconds"') == len(report.charts([run])) and "Single episodes" in html


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1200, 390])
def test_the_reader_chooses_the_axis_and_sees_the_bars(visit, toll, tmp_path, width):
    page = visit(report.make_page([toll]).save(tmp_path / "page.html"), width)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    figure = page.locator("figure.chart", has_text="return").last
    before = figure.locator("path.curve").get_attribute("d")
    assert page.locator(".axes button").all_text_contents() == ["iteration", "environment steps", "seconds"]
    page.get_by_role("button", name="environment steps").click()
    assert page.get_by_role("button", name="environment steps").get_attribute("aria-pressed") == "true"
    assert "environment steps" in figure.locator("text").all_text_contents()
    figure.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    assert f"environment steps {toll.metrics['steps'][0]:.0f}" in figure.locator(".tip").text_content()
    page.get_by_role("button", name="iteration").click()
    assert figure.locator("path.curve").get_attribute("d") == before
    assert figure.locator("circle.ring").count() == 1

    bars = page.locator("figure.chart", has_text="pounds of single episodes")
    assert bars.locator(".bar rect").count() == 1 and bars.locator("path.curve").count() == 0
    assert "← limit 25" in bars.locator("text.limit-name").all_text_contents()  # far from a bar at 30
    bars.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    assert bars.locator(".tip").text_content() == "pounds 29.5 to 30.5share of the episodes: 1"


def test_bars_are_as_high_as_they_say(visit, tmp_path):
    bars = report.Series("share", [0.0, 1.0, 2.0], [0.5, 0.0, 0.25], bars=1.0)
    chart = report.Chart("costs", [bars], x_label="cost", limits_x=[report.LimitLine(1.5, "limit 1.5")])
    page = visit(report.Page("Example", [report.Charts("", [chart])]).save(tmp_path / "page.html"))
    boxes = page.locator(".bar rect").evaluate_all(
        "all => all.map(r => r.getBBox()).map(b => [b.x, b.width, b.height])"
    )
    assert len(boxes) == 2 and boxes[0][2] == pytest.approx(2 * boxes[1][2], abs=0.2)  # nothing is drawn of nothing
    line = float(page.locator("line.limit").get_attribute("x1"))
    assert line == pytest.approx(boxes[1][0], abs=1.5)  # where the bar at 2 begins
    assert page.locator(".axes").count() == 0  # there is one axis only
    drawn = [report.draw([each], tmp_path / "c.png").read_bytes() for each in (chart, replace(chart, limits_x=()))]
    assert drawn[0] != drawn[1]


def test_a_return_that_stayed_where_it_was_is_said_in_amber_under_the_green(visit, toll, tmp_path):
    final = toll.final | {"return": toll.metrics["return"][0]}
    flat = replace(toll, final=final, certificate=replace(toll.certificate, holds=True))
    assert any("no better than that of the first" in words for words in concerns(flat))
    page = visit(report.make_page([flat]).save(tmp_path / "page.html"))
    green, amber = page.locator(".verdict").all()
    assert "Certified" in green.text_content() and "learnt to do nothing" in amber.text_content()
    assert amber.locator(".sign").text_content() == "!"
    colours = [each.locator("h2").evaluate("h => getComputedStyle(h).color") for each in (green, amber)]
    assert colours == ["rgb(23, 121, 74)", "rgb(133, 89, 10)"]


# -- captions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [120, 160, 200, 300, 450, 600, 1000])
def test_what_stands_under_a_film_fits(width):
    words = ["step 1000", "return -88888.8", "hazards -8889 of 25", "off_centre -8889 of 30"]
    size, lines = caption(words, width)
    left, font = iter(words), ImageFont.load_default(size)
    assert sum(lines) == len(words)
    for count in lines:
        line = [font.getlength(next(left)) for _ in range(count)]
        assert sum(line) + 22 * size / 15 * (count - 1) + 24 * size / 15 <= width + 1e-6
    assert size == 15 or width < 200


def test_a_film_of_small_frames_is_shown_larger(run):
    class Small(type(run.task)):
        def draw(self, state):
            return np.zeros((48, 64, 3), np.uint8)

    with Image.open(io.BytesIO(film(replace(run, task=Small()), seed=1).gif)) as picture:
        assert picture.width == 192 and picture.height > 144 + 28  # thrice as large, and more than one line of numbers


# -- earlier versions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["pcces", "openes"])
def test_runs_of_before_are_shown_without_what_they_did_not_note(algorithm, tmp_path):
    run = load(FOLDERS / algorithm)
    html = report.make_page([run]).html()
    assert "Single episodes" not in html and "A circle marks" not in html and "What it took" in html
    assert [row[0] for row in took(run)[0].rows] == ["steps", "seconds"] and took(run)[0].rows[0][2] == "–"
    for over in ("iteration", "steps", "time"):
        assert all(series.ring is None for chart in report.charts([run], over) for series in chart.series)
        assert run.plot(tmp_path / f"{over}.png", over).stat().st_size > 1000

"""The page, as data and in a real browser."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import WHERE, record, study
from typer.testing import CliRunner

import pcces
from pcces import report
from pcces.cli import app
from pcces.core.theory import Constants
from pcces.envs import make
from pcces.envs.simulator import simulator
from pcces.report import (
    Chart,
    Charts,
    Details,
    Dot,
    Dots,
    LimitLine,
    Page,
    Picture,
    Series,
    Table,
    Verdict,
    figure,
    search,
)
from pcces.rl.film import Film, film, ordinary_film, typical
from pcces.rl.folder import load
from pcces.studies.catalogue import EXPERIMENTS, FIRST_SEED
from pcces.studies.policies import keep
from pcces.studies.store import Store


@pytest.fixture
def run(trained):
    return load(trained.folder)


def like(run, seed, shift=0.0, **changes):
    """A run that differs from another as told; its costs are shifted."""
    metrics = run.metrics | {"cost_off_centre": [value + shift for value in run.metrics["cost_off_centre"]]}
    settings = run.config["settings"] | changes
    return replace(run, config=run.config | {"seed": seed, "settings": settings}, metrics=metrics)


# -- data --------------------------------------------------------------------------------------------------------------


def test_the_charts_of_a_run_are_its_metrics(run):
    charts = {chart.title: chart for chart in report.charts([run])}
    assert [title.split()[0] for title in charts] == ["return", "off_centre", "price", "entropy", "step", "accepted,"]
    (series,) = charts["off_centre"].series
    assert list(series.y) == run.metrics["cost_off_centre"] and list(series.x) == list(range(200))
    assert charts["off_centre"].limits == [LimitLine(250.0, "limit 250")] and series.low is None
    assert [limit.value for limit in charts["entropy of an episode"].limits] == [2000.0, 0.0]
    (accepted,) = charts["accepted, share of the last 20 iterations"].series
    assert accepted.y[-1] == pytest.approx(np.mean(run.metrics["success"][-20:]))


def test_seeds_become_a_mean_with_a_band(run):
    runs = [like(run, 0), like(run, 1, shift=2.0), like(run, 2, shift=4.0)]
    (series,) = report.charts(runs)[1].series
    assert series.name == "pcces, mean of 3"
    assert np.allclose(series.y, np.array(run.metrics["cost_off_centre"]) + 2)
    assert np.allclose(np.subtract(series.high, series.y), 2) and np.allclose(np.subtract(series.y, series.low), 2)


def test_runs_that_differ_in_a_setting_are_lines_of_their_own_named_by_it(run):
    other = like(run, 0, passes=20)
    assert list(report.variants([run, other])) == ["pcces, passes 2", "pcces, passes 20"]
    names = [series.name for series in report.charts([run, other])[0].series]
    assert names == ["pcces, passes 2, seed 0", "pcces, passes 20, seed 0"]


def test_runs_with_other_limits_and_lengths_are_told_apart(run):
    other = like(run, 0, iterations=77)
    other = replace(
        other, problem=replace(run.problem, thresholds=(40.0,)), config=other.config | {"thresholds": [40.0]}
    )
    both, same = (report.make_page(some) for some in ([run, other], [run, like(run, 1)]))
    assert f"; {run.config['settings']['iterations']} or 77 iterations;" in both.subtitle
    assert "thresholds 40" in both.html() and "off_centre (limit" not in both.html()
    assert "off_centre (limit 250)" in same.html()


def test_the_page_of_one_run_says_what_is_certified(run):
    verdict, *_ = report.make_page([run]).sections
    assert verdict.holds and verdict.title == "Certified with 95 % confidence (guaranteed)"
    assert verdict.points == run.limits() and "(limit 250)" in verdict.points[0]


def test_a_page_says_amber_when_it_could_be_fooled_red_when_it_does_not_hold_and_grey_when_there_is_none(run):
    assert '<section class="verdict holds">' in report.make_page([run]).html()
    asymptotic = replace(run, certificate=replace(run.certificate, method="t"))
    for runs in ([asymptotic], [run, replace(asymptotic, config=run.config | {"seed": 1})]):
        assert '<section class="verdict holds doubtful">' in report.make_page(runs).html()
    failed = replace(run, certificate=replace(run.certificate, holds=False))
    page = report.make_page([failed]).html()
    assert '<section class="verdict fails">' in page and "Not certified at 95 % confidence" in page
    both = report.make_page([run, replace(failed, config=run.config | {"seed": 1})]).html()
    assert "1 of 2 runs certified (1 guaranteed)" in both
    assert '<td class="bad">not certified</td>' in both and '<td class="good">guaranteed</td>' in both
    unfinished = replace(run, x=None, certificate=None, final={})
    assert '<section class="verdict open">' in report.make_page([unfinished]).html()


def test_the_film_is_of_the_best_certified_policy(run):
    luckier = replace(run, final=run.final | {"return": 1e6}, certificate=replace(run.certificate, holds=False))
    worse = replace(run, final=run.final | {"return": -1e6})
    filmed = []

    def film_of(run):
        filmed.append(run)
        return Film(b"GIF89a", 1, 1, 1.0, (0.0,))

    assert report.at_work([luckier, worse, run, worse], "", film_of)[0].data == b"GIF89a"
    assert filmed == [run]
    assert report.at_work([replace(run, certificate=None)], "", film_of) == [] and len(filmed) == 1


def test_a_task_that_cannot_be_drawn_still_gets_its_report(run, tmp_path):
    class Undrawable(type(make("CartSafe-v0"))):
        def draw(self, state):
            raise RuntimeError("no paint left")

    path = report.write([replace(run, task=Undrawable())], tmp_path / "report.html", ordinary_film)
    assert "The animation could not be drawn" in path.read_text() and "no paint left" in path.read_text()


def test_text_is_escaped_and_braces_stay(tmp_path):
    page = Page("a <b> {{title}}", [Details("x & y", {"k": "</script>"}), Table("t", ["<c>"], [["{{body}}", 1.0]])])
    html = page.html()
    assert "a &lt;b&gt; {{title}}" in html and "<td>{{body}}</td>" in html and "&lt;/script&gt;" in html
    chart = Chart("c", [Series("</script>", [0.0], [math.inf])])
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', Charts("", [chart]).html())
    assert json.loads(data)["series"][0]["name"] == "</script>" and json.loads(data)["series"][0]["y"] == [None]


def test_series_whose_parts_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="differ in length"):
        Series("a", [0, 1], [0])
    with pytest.raises(ValueError, match="one side of a band"):
        Series("a", [0], [0], low=[0])


def test_the_report_of_a_training_has_everything_in_one_file(run):
    html = (run.path / "report.html").read_text()
    assert html.count('<figure class="chart"><') == 7 and html.count("data:image/gif;base64,") == 1
    assert "Certified with 95 % confidence" in html and "version of jax" in html and "initial_tries" in html
    assert not re.search(r"""(src|href)=["'](?!data:)""", html)


# -- a search on a black box -------------------------------------------------------------------------------------------


RNG = np.random.default_rng(0)


def noisy(x):
    return float(((x - 1) ** 2).sum() + 0.01 * RNG.standard_normal()), float(x.sum() - 1 + 0.01 * RNG.standard_normal())


def test_the_page_of_a_search_has_its_certificate_its_answer_and_the_theorys_function(tmp_path):
    res = pcces.minimize(noisy, [0.0, 0.0], bounds=[(-2, 2), (-2, 2)], max_evaluations=1500, rng=0)
    html = res.report(tmp_path / "search.html", optimum=0.5).read_text()
    assert "Certified with 95 % confidence" in html and "objective above the optimum" in html
    charts = {chart.title.split()[0]: chart for chart in search.charts(res, optimum=0.5)}
    assert list(charts) == ["objective", "constraints", "step", "accepted,", "Lyapunov"]
    assert list(charts["constraints"].series[0].y) == list(res.history["excess"][:, 0])
    assert "Lyapunov" not in [chart.title.split()[0] for chart in search.charts(res)]
    assert charts["constraints"].limits[0].value == 0 and charts["objective"].limits[0].goal
    assert list(charts["objective"].series[0].x) == list(res.history["evaluations"])


def test_the_lyapunov_function_of_a_run_without_noise_falls():
    res = pcces.minimize(lambda x: float(((x - 1) ** 2).sum()), [3.0, -2.0], max_evaluations=800, rng=0)
    (phi,) = search.charts(res, optimum=0.0)[-1].series
    assert np.all(np.asarray(phi.y) > 0) and phi.y[-1] < 1e-6 * phi.y[0]
    constants = Constants.for_rule(res.rule.kappa, res.rule.gamma)
    assert phi.y[3] == pytest.approx(constants.lyapunov(res.history["fun"][3], res.history["sigma"][3]))


def test_points_that_break_their_limits_have_no_place_in_the_objectives_curve():
    res = pcces.minimize(lambda x: (x[0], 1.0 - x[0]), [-3.0], bounds=[(-4, 4)], max_evaluations=600, rng=0)
    feasible = res.history["feasible"].astype(bool)
    assert not feasible[0] and feasible[-1]
    (objective,) = search.charts(res)[0].series
    assert np.array_equal(np.isnan(objective.y), ~feasible)


def test_a_limit_far_away_does_not_squeeze_the_data_of_a_picture(tmp_path):
    series = [Series("a", [0, 1], [2.0, 3.0])]

    def drawn(*limits):
        return report.draw([Chart("c", series, limits)], tmp_path / "c.png").read_bytes()

    alone = drawn()
    assert drawn(LimitLine(1e6, "far", always=False)) == alone != drawn(LimitLine(2.5, "near", always=False))
    assert drawn(LimitLine(1e6, "far")) != alone


def test_a_search_that_goes_on_is_reported_from_its_file(tmp_path):
    optimizer = pcces.Optimizer([1.0, 1.0], max_evaluations=400, rng=0)
    for _ in range(6):
        batch = optimizer.ask()
        optimizer.tell(batch, (batch.points**2).sum(1))
    optimizer.save(tmp_path / "search.npz")
    done = CliRunner().invoke(app, ["report", str(tmp_path / "search.npz"), "--figures", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert "Still searching" in Path(said["report"]).read_text()
    assert [Path(figure).read_bytes()[:4] for figure in said["figures"]] == [b"\x89PNG", b"%PDF"]
    (tmp_path / "pages").mkdir()
    done = CliRunner().invoke(app, ["report", str(tmp_path / "search.npz"), "--out", str(tmp_path / "pages"), "--json"])
    assert json.loads(done.stdout)["report"] == str(tmp_path / "pages" / "search.html")
    page = (tmp_path / "pages" / "search.html").read_text()
    assert "Still searching" in page and "Lyapunov" not in page and "version of scipy" in page
    again = ["report", str(tmp_path / "search.npz"), "--optimum", "0"]
    assert CliRunner().invoke(app, again).exit_code == 0 and "Lyapunov" in (tmp_path / "search.html").read_text()
    (tmp_path / "a.json").write_text("{}")
    for wrong, said in (
        (["report", str(tmp_path / "a.json")], "neither a search saved by Optimizer.save"),
        ([*again, "--out", "/proc/none/x.html"], "/proc/none"),
        ([*again, "--figures", str(tmp_path / "a.json")], "--figures takes a folder"),
    ):
        done = CliRunner().invoke(app, wrong)
        assert done.exit_code == 2 and said in done.stderr


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture
def example(tmp_path):
    """A page of known numbers: y = 10 x and y = 100 - x, a limit at 30, another far away."""
    x = list(range(11))
    up = Series("up", x, [10.0 * v for v in x], [10.0 * v - 5 for v in x], [10.0 * v + 5 for v in x])
    down = Series("down, seed 0", x, [100.0 - v for v in x], group="down")
    first = Chart("both", [up, down], [LimitLine(30.0, "limit 30"), LimitLine(9000.0, "at most 9000", always=False)])
    gap = Chart("steps", [Series("up", x, [math.nan if v == 5 else 10.0**-v for v in x])], log=True)
    sections = [Verdict(True, "Holds"), Charts("Curves", [first, gap]), Picture("p", b"GIF89a", "a picture")]
    return Page("Example", sections).save(tmp_path / "example.html")


def test_charts_are_drawn_with_band_limit_and_legend(visit, example):
    page = visit(example)
    first = page.locator("figure.chart").first
    assert first.locator("path.curve").count() == 2 and first.locator("path.band").count() == 1
    assert first.locator("line.limit").count() == 1  # the far one is only pointed at
    assert "↑ at most 9000" in first.locator("text.limit-name").all_text_contents()
    assert first.locator(".legend button").all_text_contents() == ["up", "down", "limit 30", "at most 9000"]
    limit = float(first.locator("line.limit").get_attribute("y1"))
    ticks = dict(
        zip(
            first.locator("text").all_text_contents(),
            first.locator("text").evaluate_all("all => all.map(t => +t.getAttribute('y'))"),
        )
    )
    per_unit = (ticks["25"] - ticks["100"]) / 75
    assert limit == pytest.approx(ticks["25"] - 4 - 5 * per_unit, abs=0.5)  # where 30 belongs between the ticks
    colours = first.locator("path.curve").evaluate_all("all => all.map(p => getComputedStyle(p).stroke)")
    assert len(set(colours)) == 2 and "none" not in colours
    gap = page.locator("figure.chart").nth(1).locator("path.curve").get_attribute("d")
    assert gap.count("M") == 2  # a missing value breaks the line


@pytest.mark.parametrize(
    "name", ["<!--<script>", "</script><script>alert(1)</script>", "]]>\u2028\u2029&lt;\"'", "<!-- --!>"]
)
def test_names_are_text_wherever_they_stand(visit, tmp_path, name):
    chart = Chart(name, [Series(name, [0, 1], [2.0, 3.0])], [LimitLine(2.5, name)], x_label=name, note=name)
    sections = [
        Verdict(True, name, [name], name), Charts(name, [chart, chart], name), Table(name, [name], [[name]], name),
        Details(name, {name: name}), Picture(name, b"GIF89a", name, name),
    ]  # fmt: skip
    page = visit(Page(name, sections, name).save(tmp_path / "page.html"))
    assert page.title() == name
    assert page.locator("path.curve").count() == 2 and page.locator("script").count() == 3
    assert page.locator(".legend button").all_text_contents() == [name, name]  # one a chart: series and limit share it
    assert page.locator("h1").text_content() == name and page.locator("td").first.text_content() == name


@pytest.mark.parametrize("width", [1200, 390])
def test_dots_are_where_their_shares_are(visit, tmp_path, width):
    rows = [("a task", [Dot("one", 0.5, 0.25, 1.0, 1), Dot("other", 0.0, 0.0, 0.1, 2)])]
    page = visit(Page("Example", [Dots("Dots", rows, "no", "yes", "A note.")]).save(tmp_path / "dots.html"), width)
    assert page.locator(".legend span").all_text_contents() == ["one", "other"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    track = page.locator(".dots i").first
    size = track.bounding_box()["width"]

    def at(part, name):
        return float(track.evaluate(f"i => getComputedStyle(i, '::{part}').{name}").removesuffix("px"))

    assert at("before", "left") == pytest.approx(size / 4, abs=1) and at("before", "width") == pytest.approx(
        size * 3 / 4, abs=1
    )
    assert at("after", "left") + at("after", "width") / 2 == pytest.approx(size / 2, abs=1)


def test_hovering_shows_values(visit, example):
    page = visit(example)
    figure = page.locator("figure.chart").first
    tip = figure.locator(".tip")
    assert not tip.is_visible()
    box = figure.locator("svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] - 14, box["y"] + 60)  # the right end: x = 10
    assert tip.is_visible()
    text = tip.text_content()
    assert "iteration 10" in text and "up: 100 (95 to 105)" in text and "down, seed 0: 90" in text
    assert figure.locator("circle").count() == 2
    edge = tip.bounding_box()
    assert edge["x"] + edge["width"] <= box["x"] + box["width"]  # it stays inside
    page.mouse.move(5, 5)
    assert not tip.is_visible() and figure.locator("circle").count() == 0
    figure.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert "iteration 1" in tip.text_content() and "up: 10 " in tip.text_content()


def test_values_stay_when_a_finger_is_lifted(visit, example):
    figure = visit(example).locator("figure.chart").first
    send = "(svg, [kind, type]) => svg.dispatchEvent(new PointerEvent(kind, {pointerType: type, clientX: 300, clientY: 300}))"
    for kind, pointer, shown in (
        ("pointerdown", "touch", True),
        ("pointerleave", "touch", True),
        ("pointerleave", "mouse", False),
    ):
        figure.locator("svg").evaluate(send, [kind, pointer])
        assert figure.locator(".tip").is_visible() is shown


def test_a_film_is_of_an_ordinary_episode(run):
    other = film(run, seed=3)
    final = run.final | {"return": other.total, "costs": list(other.costs)}
    assert typical(replace(run, final=final)) == 3
    made = film(run, seed=typical(run))
    caption = report.at_work([run], "", ordinary_film)[0].caption
    assert f"return {made.total:.4g}" in caption and f"is {run.final['return']:.4g}, off_centre" in caption


def test_a_policy_is_filmed_in_a_simulator_as_well(run):
    """CartSafe as Gymnasium has it: an episode is played in the same way, and drawn while it is played."""
    simulated = replace(run, task=simulator("pcces/CartSafe-v0"))
    made = film(simulated, seed=3)
    assert made.gif[:6] == b"GIF89a" and made.frames == -(-made.steps // 2) + 1 and made == film(simulated, seed=3)
    final = run.final | {"return": made.total, "costs": list(made.costs)}
    assert typical(replace(simulated, final=final)) == 3


def test_the_legend_hides_a_line_and_shows_it_again(visit, example):
    page = visit(example)
    figure = page.locator("figure.chart").first
    button = figure.get_by_role("button", name="down")
    button.click()
    assert figure.locator("path.curve").count() == 1 and button.get_attribute("aria-pressed") == "false"
    figure.locator("svg").hover()
    assert "down" not in figure.locator(".tip").text_content()
    assert page.locator("figure.chart").nth(1).locator("path.curve").count() == 1  # other charts are not touched
    button.click()
    assert figure.locator("path.curve").count() == 2
    for name in ("up", "down", "limit 30", "at most 9000"):
        figure.get_by_role("button", name=name, exact=True).click()
    assert figure.locator("path.curve").count() == 0 and figure.locator("line.limit").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_of_a_run_is_readable_on_a_phone_in_both_schemes(visit, run, scheme):
    page = visit(run.path / "report.html", width=390, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 390  # nothing sticks out
    assert page.locator("path.curve").count() == 6
    animation = page.locator("img")
    assert animation.evaluate("image => image.complete && image.naturalWidth") == 600
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (light == "rgb(255, 255, 255)") == (scheme == "light")
    assert page.locator(".verdict.holds h2").text_content() == "Certified with 95 % confidence (guaranteed)"
    assert not page.get_by_text("initial_tries").is_visible()
    page.locator("summary").click()
    assert page.get_by_text("initial_tries").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_study_works_in_a_browser(visit, tmp_path, scheme):
    store = study(tmp_path, FIRST_SEED, 10, pcces=100.0, pcces_paper_literal=60.0, openes=90.0, asebo=110.0)
    done = CliRunner().invoke(app, ["report", str(store.folder), "--figures", str(tmp_path / "figures")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "figures" / "entropy.png").exists() and (tmp_path / "figures" / "entropy.pdf").exists()
    page = visit(tmp_path / "report.html", width=390, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert "This does not hold, in what has run so far." in page.locator(".verdict.fails h2").first.text_content()
    chart = page.locator("figure.chart").first
    assert chart.locator("path.curve").count() == 4 and chart.locator("path.band").count() == 4
    chart.get_by_role("button", name="OpenES").click()
    assert chart.locator("path.curve").count() == 3
    chart.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    assert "PCCES, mean of 10: " in chart.locator(".tip").text_content()
    dots = page.locator(".dots i")
    assert dots.evaluate_all("all => all.map(i => i.title)") == [
        "OpenES: 1.00 [1.00, 1.00]",
        "ASEBO: 0.00 [0.00, 0.00]",
    ]
    traces = page.locator("details", has=page.locator("figure.chart")).first
    assert not traces.locator("svg").first.is_visible()  # folded away
    traces.locator("summary").first.click()
    assert traces.locator("svg").first.is_visible() and traces.locator("path.curve").count() == 4
    page.get_by_role("link", name="Figure 9").click()
    page.get_by_text("4 arms", exact=True).click()
    arm = page.locator("details details").filter(has_text="CartPole-v0: OpenES, 40 samples")
    arm.locator("summary").click()
    assert arm.get_by_text("version of jax").is_visible()


def test_a_study_keeps_the_best_certified_policy_of_a_task_and_shows_it_at_work(visit, trained, tmp_path):
    arm = next(arm for arm in EXPERIMENTS["safe"].arms if (arm.task, arm.algorithm) == ("CartSafe-v0", "pcces"))
    store, first = Store(tmp_path), FIRST_SEED
    store.add(arm, [record(first, 5.0, 20.0), record(first + 1, 9.0, 20.0)], WHERE)
    store.add(arm, [record(first + 2, 99.0, 20.0, certified=False)], WHERE)
    assert keep(EXPERIMENTS.values(), store) == []  # no run is there any more
    for i in range(3):
        run = tmp_path / "runs" / arm.key / f"seed-{first + i}"
        shutil.copytree(trained.folder, run)
        (run / "config.json").write_text(
            json.dumps(json.loads((run / "config.json").read_text()) | {"seed": first + i})
        )
    (kept,) = keep(EXPERIMENTS.values(), store)
    assert kept == tmp_path / "policies" / "CartSafe-v0" and load(kept).config["seed"] == first + 1
    assert repr(load(kept)).startswith(f"<pcces on CartSafe-v0, seed {first + 1}; CERTIFIED")
    store.add(arm, [record(first, 9.0, 20.0)], WHERE)
    shutil.rmtree(tmp_path / "runs" / arm.key / f"seed-{first}")
    (kept,) = keep(EXPERIMENTS.values(), store)
    assert load(kept).config["seed"] == first + 1  # as good as the first, and it is there
    config = json.loads((kept / "config.json").read_text())
    (kept / "config.json").write_text(json.dumps(config | {"seed": 77, "steps": 10**9}))
    assert keep(EXPERIMENTS.values(), store) == [] and load(kept).config["seed"] == 77  # it was trained for longer
    done = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert done.exit_code == 0 and "filming CartSafe-v0" in done.stderr
    page = visit(tmp_path / "report.html", width=390)
    assert page.get_by_role("heading", name="The policy at work on CartSafe-v0").is_visible()
    assert page.locator("img").evaluate("image => image.complete && image.naturalWidth") == 320
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_two_logarithmic_axes(visit, tmp_path):
    line = Series("variance", [1, 10, 100], [100.0, 10.0, 1.0])
    chart = Chart("variance", [line], log=True, log_x=True, x_label="episodes")
    page = visit(Page("Example", [Charts("", [chart])]).save(tmp_path / "page.html"))
    drawn = page.locator("path.curve").get_attribute("d")
    (x0, y0), (x1, y1), (x2, y2) = [map(float, point.split()) for point in re.findall(r"[\d.]+ [\d.]+", drawn)]
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.3) and y1 - y0 == pytest.approx(y2 - y1, abs=0.3)


def test_a_band_or_a_line_aside_does_not_squash_the_others(tmp_path, monkeypatch):
    limits = []
    monkeypatch.setattr(figure, "_saved", lambda drawn, path: limits.append(drawn.axes[0].get_ylim()))
    wide = Series("wide", [0, 1], [0.0, 10.0], [-6000.0, 0.0], [16000.0, 20.0])
    figure.draw([Chart("return", [wide, Series("bad", [0, 1], [-900.0, -800.0], aside=True)])], tmp_path / "a.png")
    assert limits[-1] == pytest.approx((-4.0, 14.0))
    figure.draw([Chart("return", [Series("bad", [0, 1], [-900.0, -800.0], aside=True)])], tmp_path / "a.png")
    assert limits[-1][0] < -900 and limits[-1][1] > -800

"""The page about a search: what it says, and that it works in a real browser."""

import re

import numpy as np
import pytest

import pcces
from pcces.report import Chart, Charts, Page, Series, draw, search
from pcces.report.search_answer import answer, best_points, limits, troubles, verdict
from pcces.report.search_slices import surroundings

BOX = [(-2.0, 2.0)] * 2


def solved(evaluations=100, size=0.05, **options):
    rng = np.random.default_rng(1)

    def fun(x):
        a, b = size * rng.standard_normal(2)
        if x[0] > 1.5:
            raise ValueError("no")
        return float(((x - 1) ** 2).sum() + a), {"heat": x.sum() - 1 + b, "load <b>": x[0] - 9}

    given = {"bounds": BOX, "max_evaluations": evaluations, "rng": 0} | options
    return pcces.minimize(fun, [0.0, 0.0], **given)


@pytest.fixture(scope="module")
def few():
    return solved(rng=1)


@pytest.fixture(scope="module")
def written(few, tmp_path_factory):
    return few.report(tmp_path_factory.mktemp("page") / "run.html")


def headings(html):
    return re.findall("<h2>(.*?)</h2>", html)


def test_the_page_has_all_of_it(few, written):
    html = written.read_text()
    assert few.success and few.failures > 0
    assert headings(html) == [
        "Certified with 95 % confidence (asymptotic)", "The answer", "The certificate",
        "Which limits bind, and what looser limits would gain", "The search", "Around the answer", "x0", "x1",
        "The best points evaluated", "Evaluations above the limits during the search",
    ]  # fmt: skip
    assert (
        "rare large values" in html
        and "heat &lt;= 0: kept with a margin of at least" in html
        and "load &lt;b&gt;" in html
    )
    assert str(few.improvement) in html and few.improvement.value > 0 and "evaluations that failed" in html
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", html)


def test_grades_are_told_apart(few):
    asked = {"deterministic": True, "size": 0.0, "evaluations": 60}
    assert verdict(few).doubtful and not verdict(solved(**asked)).doubtful
    assert 'class="verdict holds doubtful"' in verdict(few).html()
    assert verdict(solved(**asked)).html().startswith('<section class="verdict holds"><')
    failed = pcces.minimize(lambda x: (x @ x, 1 + x @ x), [0.0, 0.0], max_evaluations=30, rng=0)
    assert verdict(failed).holds is False and verdict(failed).points[0].startswith("c0 <= 0: may be exceeded by up to ")
    stuck = pcces.minimize(lambda x: (x @ x, x[0] - 1), [0.0, 0.0], max_evaluations=20, rng=0)
    assert stuck.status == 4 and verdict(stuck).doubtful and verdict(stuck).title.endswith("but no better than x0")


def test_limits_say_which_bind_and_what_they_cost(few):
    (table,) = limits(few)
    heat, load = table.rows
    m = few.around.multipliers[0]
    assert (
        heat[0] == "heat <= 0"
        and heat[1] == pytest.approx(few.constr[0])
        and heat[3:] == ["binds", f"{m.value:.3g} ± {m.error:.2g}"]
    )
    assert load[3:] == ["far", "0"] and load[2] == few.certificate.upper_bounds[1]
    (change, gain, error) = re.search(
        r"If heat might be ([\d.]+) larger, the smallest f would be ([\d.]+) lower \(± ([\d.]+)\)", table.note
    ).groups()
    assert float(gain) == pytest.approx(m.value * float(change), rel=0.06)
    assert float(error) == pytest.approx(m.error * float(change), rel=0.5)


def test_bounds_that_hold_the_answer_are_limits_too():
    res = pcces.minimize(lambda x: (x[0] - 2) ** 2, [0.0], bounds=[(-1, 1)], max_evaluations=100, rng=0)
    (table,) = limits(res)
    assert [row[0] for row in table.rows] == ["x0: upper bound 1"] and table.rows[0][3] == "binds"
    assert float(table.rows[0][4].split()[0]) == pytest.approx(2, abs=0.1)


def test_a_search_that_could_go_on_says_so():
    res = solved(evaluations=60, strategy="model", max_iterations=1, size=0.0)
    assert "is not explained by limits: a longer search may find a better point" in limits(res)[0].note


def test_the_best_points_are_ordered_with_a_standard_error_against_them(few):
    (table,) = best_points(few)
    assert table.columns[:5] == ["f", "evaluations", "heat, minus its limit", "load <b>, minus its limit", "x0"]
    f, errors = np.array([[float(v) for v in row[0].split(" ± ")] for row in table.rows]).T
    c = np.array([float(row[2]) for row in table.rows])
    kept = c + errors <= 0.01  # the noise of the constraint is that of f
    assert kept[:3].all() and np.all(np.diff((f + errors)[kept][:3]) >= 0)
    (answer,) = [row for row in table.rows if row[-1] == "the answer"]
    assert answer[1] == few.certificate.samples and float(answer[4]) == pytest.approx(few.x[0], rel=1e-4)
    assert answer[0].startswith(f"{few.fun:.5g}")


def test_an_equality_is_kept_by_the_best_points_and_has_words_of_its_own():
    res = pcces.minimize(lambda x: (x @ x, x.sum() - 1), [0.0, 0.0], bounds=BOX, equalities=[0], maxfev=150, rng=0)
    (table,) = best_points(res)
    assert all(abs(float(row[2])) <= 1.01e-4 for row in table.rows[:3]) and table.rows[0][0].startswith("0.49")
    assert sum(row[-1] == "the answer" for row in table.rows) == 1
    assert re.search(r"If c0 had to be 0.0\d* instead of 0, the smallest f would be 0.0\d* higher", limits(res)[0].note)
    assert ["increase of f from x0", "0.4999 ± 0"] in answer(res, None).rows


def test_violations_are_counted_by_constraint(few):
    over, failed = troubles(few)
    c = few.evaluations["c0"]
    assert over.rows[0][1] == int((c > 0).sum()) and over.rows[0][3] == pytest.approx(np.nanmax(c))
    assert over.rows[1][1:] == [0, "0 %", None]
    assert failed.items["evaluations that failed"].startswith(f"{few.failures} of {few.nfev} ")
    (chart,) = search.over_limits(few)
    lines = {series.name: series.y for series in chart.series}
    assert lines["over a limit"][-1] == few.violations.evaluations and lines["failed"][-1] == few.failures


def test_slices_are_charts_with_bands_dots_and_the_answer(few):
    head, first, second = surroundings(few)
    assert head.title == "Around the answer" and {first.title, second.title} == {"x0", "x1"}
    f, heat = (chart for chart in first.charts if chart.title in ("f", "heat <= 0"))
    model, dots = f.series
    assert dots.dots and not model.dots and len(dots.x) > 10 and np.all(np.array(model.high) > np.array(model.low))
    assert f.at == few.x[int(first.title[1])] and f.limits == [] and heat.limits[0].value == 0
    x1 = first if first.title == "x1" else second
    assert "load <b> <= 0" not in [chart.title for chart in x1.charts]  # it does not change along x1


def test_many_variables_are_folded_away_and_choices_are_tables():
    bounds = {f"v{i}": (-1.0, 1.0) for i in range(12)} | {"fuel": pcces.Choice("gas", "coal")}

    def fun(d):
        return sum((d[f"v{i}"] - 0.1 * i) ** 2 for i in range(12)) + 3 * (d["fuel"] == "gas"), d["v0"] - 2

    res = pcces.minimize(fun, None, bounds=bounds, max_evaluations=120, rng=0)
    _, *sections, folded = surroundings(res)
    assert len(sections) == 4 and folded.title == "9 more variables"
    (table,) = [section for section in [*sections, *folded.sections] if section.title == "fuel"]
    assert [row[0] for row in table.rows] == ["gas", "coal"] and table.rows[1][-1] == "the answer"
    assert "<summary>All variables</summary>" in search.search_page(res).html()


def test_a_search_that_has_hardly_begun_and_one_that_failed():
    begun = pcces.Optimizer([0.0, 0.0], bounds=BOX, rng=0).result
    html = search.search_page(begun).html()
    assert (
        headings(html) == ["Still searching: no certificate yet", "The answer", "The certificate"]
        and "not known" in html
    )
    failed = pcces.minimize(lambda x: np.nan, [0.0, 0.0], bounds=BOX, max_evaluations=30, rng=0)
    assert headings(search.search_page(failed).html()) == [
        "Not certified",
        "The answer",
        "The certificate",
        "The search",
    ]


def test_constraints_of_other_sizes_have_charts_of_their_own():
    res = pcces.minimize(
        lambda x: (x @ x, [x[0] - 1, 1000 * x[1] - 1e5, x[1] - 1.5, 1e-4 * (x[0] - 2)]), [0.5, 0.5], max_evaluations=200, rng=0
    )  # fmt: skip
    charts = [chart for chart in search.charts(res) if chart.title.startswith("constraints")]
    assert [[series.name for series in chart.series] for chart in charts] == [
        ["c3 <= 0"],
        ["c0 <= 0", "c2 <= 0"],
        ["c1 <= 0"],
    ]


# -- in a browser --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_readable_on_screens_and_phones_in_both_schemes(visit, few, written, width, scheme):
    page = visit(written, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") == width  # nothing sticks out
    assert page.locator(".verdict.doubtful h2").text_content() == "Certified with 95 % confidence (asymptotic)"
    charts = page.locator("figure.chart")
    drawn = page.locator("path.curve").evaluate_all("all => all.map(path => path.getAttribute('d').length)")
    assert charts.count() >= 9 and min(drawn) > 10
    f = page.locator("figure.chart", has=page.locator("figcaption", has_text=re.compile("^f$"))).first
    assert f.locator(".points circle").count() > 10 and f.locator("path.band").count() == 1
    mark, inside = f.locator("line.mark"), f.locator("svg").bounding_box()
    assert 0 < float(mark.get_attribute("x1")) < inside["width"]
    colours = page.locator("td, h2, p").evaluate_all("all => all.map(e => getComputedStyle(e).color)")
    assert ("rgb(29, 39, 48)" in colours) == (scheme == "light")
    assert not page.get_by_text("evaluations that failed").is_visible()
    page.get_by_text("Failed evaluations", exact=True).click()
    assert page.get_by_text("evaluations that failed").is_visible()


def test_dots_and_marks_are_where_they_belong(visit, tmp_path):
    line = Series("line", [0, 10], [0.0, 100.0])
    dots = Series("dots", [2, 5, 7], [20.0, 50.0, 1e6], dots=True)
    page = visit(Page("p", [Charts("", [Chart("c", [line, dots], at=5.0)])]).save(tmp_path / "page.html"))
    circles = page.locator(".points circle")
    assert circles.count() == 2  # the far one would squeeze the line
    (x0, y0), (x1, y1) = [
        map(float, point.split())
        for point in re.findall(r"[\d.]+ [\d.]+", page.locator("path.curve").get_attribute("d"))
    ]
    at = [(float(c.get_attribute("cx")), float(c.get_attribute("cy"))) for c in circles.all()]
    assert at[0] == pytest.approx((x0 + 0.2 * (x1 - x0), y0 + 0.2 * (y1 - y0)), abs=0.3)
    assert float(page.locator("line.mark").get_attribute("x1")) == pytest.approx(at[1][0], abs=0.1)
    page.get_by_role("button", name="dots").click()
    assert page.locator(".points circle").count() == 0
    page.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    assert "line: 0" in page.locator(".tip").text_content()


def test_a_value_alone_is_a_dot(visit, tmp_path):
    chart = Chart("c", [Series("a", [0, 1, 2, 3], [1.0, np.nan, 2.0, 3.0]), Series("b", [1], [2.0])])
    page = visit(Page("p", [Charts("", [chart])]).save(tmp_path / "page.html"))
    assert page.locator("circle.alone").count() == 2


def test_dots_and_marks_in_a_picture(tmp_path):
    line, dots = Series("line", [0, 10], [0.0, 100.0]), Series("dots", [2, 5], [20.0, 50.0], dots=True)
    sizes = {
        draw([chart], tmp_path / "c.png").read_bytes()
        for chart in (Chart("c", [line]), Chart("c", [line, dots]), Chart("c", [line, dots], at=5.0))
    }
    assert len(sizes) == 3

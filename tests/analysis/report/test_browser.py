"""The page as a browser shows it: quiet, sorted, folded, on a phone, on paper, in the dark, without script."""

import re
import time

import pytest
from matplotlib.figure import Figure

from onebasin.analysis.diagnostics.verdict import Reason, Verdict
from onebasin.analysis.page import (
    AnswerCard,
    Code,
    Details,
    FigureItem,
    Note,
    Provenance,
    Report,
    Section,
    Stat,
    put,
    render,
)
from onebasin.base.table import Column, RowGroup, Table, TableCell

from .browsing import Visit, browser

pytestmark = pytest.mark.browser
LONG = "a_variable_with_a_name_that_is_much_longer_than_a_phone_is_wide" * 2
PAPER = 688  # px between the margins of an A4 sheet


def _said(fact, name="labels", outcome="not judged", remedy=""):
    return Reason(name, outcome, fact, remedy=remedy)


def _verdict() -> Verdict:
    first = _said(
        "The chains agree once labels are aligned: at least `mu`, `sigma` and `theta` move together. Use "
        "aligned means; R-hat falls from 1.73 to 1.00."
    )
    checks = (
        _said("Chains carry different labels.", "labels", "failed"),
        _said("R-hat of `lp` is 1.006.", "predictions and invariants", "passed"),
        _said("Divergences were not recorded.", "sampler", "not judged"),
    )
    cause = _said("Matching lowers R-hat to 1.00.", remedy="Declare the symmetry and align.")
    return Verdict("aligned", (first,), checks, (cause,), ("mu,sigma,theta",), (cause,), (cause,))


def _figure() -> Figure:
    figure = Figure(figsize=(7.6, 2.5))
    figure.subplots().plot([0, 1], [0, 1], color="#2a2f36")
    return figure


def _table(entries: int) -> Table:
    columns = ("parameter", Column("mean"), Column("R-hat", decimals=3), *(["wide"] * 8))

    def row(name, mean, rhat):
        return (f"`{name}`", mean, TableCell(rhat, "bad") if rhat > 1.01 else rhat, *[1.5] * 8)

    rows = tuple(row(f"theta[{i}]", i / 7, 1.0) for i in range(entries))
    group = RowGroup(row("theta", None, 1.2), rows)
    plain = (row("b", -2.5, 1.0), row("a10", 3e-9, 1.005), row("a9", None, 1.3), row(LONG, 1e7, 1))
    return Table(columns, plain, "Parameters", (group, RowGroup(row("phi", 0.5, 1.1))))


def _report(entries: int) -> Report:
    figure = FigureItem(_figure(), "A line", "a rising line")
    sections = (
        Section("Labels", "Text.", figures=(figure,) * 3),
        Section("Parameters", notes=(Note(LONG, "warn", LONG),), parts=(_table(entries),)),
        Section("More", parts=(Details("Folded", (Code(f"x {LONG}"), "What folds.", _table(2))),)),
    )
    stats = (Stat("R-hat", 1.73, "bad", "`mu[0]`"), Stat("draws", "4 × 1000"), Stat("ESS", 1210))
    return Report(
        f"Mixture {LONG}",
        sections=sections,
        provenance=(Provenance("posterior", ((LONG, LONG),)),),
        definitions=(("R-hat", "a ratio"),),
        answers=(AnswerCard(_verdict(), stats=stats),),
    )


@pytest.fixture(scope="module")
def running():
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return put(_report(300), tmp_path_factory.mktemp("page") / "page.html", force=False)


@pytest.fixture(scope="module")
def visit(running, path):
    with Visit(running, path) as opened:
        yield opened


def _names(visit, body="tbody:not([class])"):
    script = f"""() => [...document.querySelectorAll("#section-2 {body} tr")]
        .filter((row) => row.offsetParent && row.cells.length > 1).map((row) => row.cells[0].textContent)"""
    return visit.evaluate(script)


def _beyond(visit, width):
    """Elements that reach beyond the page's right edge, but for what scrolls inside a box of its own."""
    script = """(width) => [...document.querySelectorAll("body *")]
        .filter((e) => e.getBoundingClientRect().right > width + 0.5 && e.getClientRects().length
            && !e.closest("nav") && !e.parentElement.closest(".scroll, pre"))
        .map((e) => e.tagName + "." + e.className)"""
    return visit.evaluate(script, width)


def test_the_page_says_and_asks_nothing(running, path):
    with Visit(running, path) as visit:
        visit.page.click("text=Folded")
        assert visit.messages == []
        assert visit.requests == [path.as_uri()]


def test_the_policy_stops_every_other_script_and_request(running, path, tmp_path):
    other = tmp_path / "other.html"
    foreign = "<script>document.title='foreign'</script><img src='https://example.org/a.png'>"
    other.write_text(path.read_text().replace("<main>", f"<main>{foreign}"))
    with Visit(running, other) as visit:
        assert visit.page.title() != "foreign"
        assert len(visit.messages) == 2
        assert all("Content Security Policy" in message for message in visit.messages)


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_answers_the_question(running, path, width, height):
    with Visit(running, path, width=width, height=height) as visit:
        for selector in (".answer h2", ".sentence", ".checks li:first-child"):
            box = visit.page.locator(selector).first.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= height
            assert box["x"] >= 0 and box["x"] + box["width"] <= width


def test_a_click_sorts_and_a_third_one_restores(visit):
    written = _names(visit)
    heading = visit.page.locator("#section-2 thead th").nth(1)

    def click():
        heading.locator("button").click()
        return heading.get_attribute("aria-sort"), _names(visit)

    assert click() == ("ascending", ["b", "a10", LONG, "a9"])  # what has no value comes last
    assert click() == ("descending", [LONG, "a10", "b", "a9"])
    assert click() == (None, written)


def test_names_sort_with_their_numbers_from_the_keyboard(visit):
    heading = visit.page.locator("#section-2 thead th").first
    heading.locator("button").focus()
    visit.page.keyboard.press("Enter")
    assert _names(visit) == [LONG, "a9", "a10", "b"]
    assert _names(visit, "tbody.group") == ["phi", "theta"]  # groups sort by their own rows
    visit.page.keyboard.press("Space")
    visit.page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") is None


def test_a_group_unfolds_shows_its_first_rows_and_then_all(visit):
    button = visit.page.locator("#section-2 .fold")
    assert button.count() == 1  # a group without rows has nothing to unfold
    assert _names(visit, "tbody.entries") == []
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert len(_names(visit, "tbody.entries")) == 200
    visit.page.click("text=and 100 more")
    assert len(_names(visit, "tbody.entries")) == 300
    button.click()
    assert _names(visit, "tbody.entries") == []


def test_a_search_finds_entries_of_folded_groups(visit):
    box = visit.page.get_by_label("Search parameter").first
    box.fill("THETA[29")
    assert _names(visit, "tbody.entries") == ["theta[29]", *(f"theta[29{i}]" for i in range(10))]
    assert _names(visit) == []
    box.fill("")
    assert _names(visit, "tbody.entries") == []
    assert len(_names(visit)) == 4


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_nothing_is_wider_than_the_screen(running, path, width):
    with Visit(running, path, width=width) as visit:
        visit.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true })")
        assert visit.evaluate("document.documentElement.scrollWidth") <= width
        assert _beyond(visit, width) == []


def test_paper_shows_what_is_folded_and_cuts_nothing(running, path):
    with Visit(running, path, width=PAPER) as visit:
        visit.page.emulate_media(media="print")
        assert _beyond(visit, PAPER) == []
        clipped = """() => [...document.querySelectorAll("main *, header *")].filter((e) =>
            e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible").length"""
        assert visit.evaluate(clipped) == 0
        inside = """() => [...document.querySelectorAll(".panel table, figure svg, pre")]
            .every((e) => e.getBoundingClientRect().right <= innerWidth + 0.5)"""
        assert visit.evaluate(inside)
        assert len(_names(visit, "tbody.entries")) == 200
        assert visit.page.locator("text=and 100 more").first.is_visible()
        assert visit.page.locator("text=What folds.").bounding_box()["height"] > 0
        assert not visit.page.locator("nav").is_visible()
        pages = len(re.findall(rb"/Type\s*/Page\b", visit.page.pdf(format="A4")))
        assert pages >= 4


_CONTRASTS = """() => {
    const light = (c) => { const v = c.match(/[\\d.]+/g).slice(0, 3).map((x) => x / 255)
        .map((x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
        return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
    const behind = (e) => { for (; e; e = e.parentElement) {
        const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } };
    return [...document.querySelectorAll("h1, h2, h3, p, th, td, dt, dd, a, small, summary, .mark, figcaption, .note")]
        .filter((e) => e.textContent.trim()).map((e) => {
            const a = light(getComputedStyle(e).color), b = light(behind(e));
            return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }); }"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(running, path, scheme):
    with Visit(running, path, color_scheme=scheme) as visit:
        contrasts = visit.evaluate(_CONTRASTS)
        assert len(contrasts) > 100
        assert min(contrasts) >= 4.5


def test_the_dark_has_colours_of_its_own(running, path):
    def colours(scheme):
        with Visit(running, path, color_scheme=scheme) as visit:
            line = visit.style("#section-1 figure svg path[style*=figure-ink]", "stroke")
            styles = (("body", "backgroundColor"), ("body", "color"), (".answer h2", "color"))
            return (*(visit.style(*each) for each in styles), line)

    assert all(a != b for a, b in zip(colours("light"), colours("dark"), strict=True))


def test_without_script_everything_is_there(running, path):
    with Visit(running, path, java_script_enabled=False) as visit:
        assert visit.page.locator("#section-2 tbody.entries tr").count() == 300
        assert visit.page.locator("#section-2 tbody.entries tr").last.is_visible()
        assert visit.page.locator("main button, main input").count() == 0


def test_what_acts_has_a_name_and_pictures_say_what_is_seen(visit):
    for role in ("button", "searchbox", "link", "region"):
        for element in visit.page.get_by_role(role).all():
            assert element.evaluate(
                "(e) => e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim()"
            )
    assert visit.page.get_by_role("img", name="a rising line").count() == 3
    assert visit.page.get_by_role("table", name="Parameters").count() == 1


@pytest.mark.usefixtures("unchecked")  # checked, the annotations take longer than all else
def test_ten_thousand_parameters_are_light_and_open_at_once(running, tmp_path):
    html = render(_report(10_000))
    assert len(html.encode()) < 10_000_000
    path = tmp_path / "big.html"
    path.write_text(html, encoding="utf-8")
    with Visit(running, path) as visit:
        painted = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        ready = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
        assert visit.evaluate(painted) < 3000  # ms; 100 to 250 on two busy cores
        assert visit.evaluate(ready) < 6000  # 300 to 700
        begun = time.perf_counter()
        visit.page.locator("#section-2 .fold").click()
        visit.page.locator("#section-2 thead th button").nth(1).click()
        assert _names(visit, "tbody.entries")[0] == "theta[0]"
        assert time.perf_counter() - begun < 6  # s; 0.7

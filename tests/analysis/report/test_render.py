"""The page: complete, escaped, self-contained; and the file it goes to."""

import re
from base64 import b64encode
from hashlib import sha256
from html import unescape

import pytest
from matplotlib.figure import Figure

import onebasin as ob
from onebasin.analysis.page import (
    SCRIPT,
    FigureItem,
    Note,
    OutputError,
    Provenance,
    Report,
    Section,
    claimed,
    embed,
    render,
)
from onebasin.analysis.report import InlineReport
from onebasin.base.table import Column, Table, TableCell

from .conftest import Page, assert_only_our_script, assert_self_contained


def _figure():
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1], [0, 1])
    return figure


@pytest.fixture(scope="module")
def report():
    table = Table(
        ("name", Column("R-hat", decimals=3, unit="largest"), "ESS"),
        (("free", TableCell(1.8, "bad", "`b1[0]`"), 6), ("givens", TableCell(1.0, "good"), None)),
        caption="Two rows",
    )
    section = Section(
        "First <section>",
        text="One `name`.\n\nTwo & three.",
        notes=(Note("Look here.", "warn", "Title"),),
        tables=(table, table),
        figures=(FigureItem(_figure(), "A line", 'a "line"'), FigureItem(_figure(), "B", "b")),
    )
    shared = ("Machine", "same")
    runs = tuple(Provenance(name, (("Seed", seed), shared)) for name, seed in ("a1", "b2"))
    return Report("Title", "Lede", (section, Section("Second")), runs, (("R-hat", "a ratio"),))


@pytest.fixture(scope="module")
def html(report):
    return render(report)


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_render_is_self_contained_and_well_formed(html):
    assert_self_contained(Page(html), html)


def test_render_shows_every_part(page):
    for text in ("Title", "Lede", "First <section>", "Two & three.", "Look here.", "A line"):
        assert text in page.text
    assert len(page.all("table")) == 2
    assert len(page.all("svg")) == 2
    assert page.all("svg")[0]["aria-label"] == 'a "line"'
    assert page.cells[0] == ["name", "R-hatlargest", "ESS"]
    assert page.cells[1] == ["free", "1.800✗b1[0]", "6"]
    assert page.cells[2] == ["givens", "1.000✓", "–"]


def test_render_aligns_numbers_and_flags_cells_in_words(page):
    classes = [attrs.get("class", "").split() for attrs in page.all("td")]
    assert classes[0] == ["number", "bad"]
    assert classes[1] == ["number"]
    marks = [a["aria-label"] for a in page.all("span") if "aria-label" in a]
    assert marks[:3] == ["look at this", "bad", "good"]


def test_render_links_its_contents(page):
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    targets = [href[1:] for href in page.values("href")]
    assert set(targets) <= set(ids)
    assert {"section-1", "section-2", "made"} <= set(targets)


def test_render_tells_what_runs_share_once(page):
    assert page.text.count("Machine") == 1
    assert page.text.count("Seed") == 2


def test_render_is_the_same_every_time(report, html):
    assert render(report) == html


def test_render_escapes_what_users_name():
    evil = "<script>alert(1)</script>"
    table = Table((evil, "x"), ((evil, TableCell(evil, "bad", evil)),), caption=evil)
    figure = Figure(figsize=(3, 2))
    figure.subplots().set_title(evil + "-->")
    parts = {"notes": (Note(evil, title=evil),), "tables": (table,)}
    parts["figures"] = (FigureItem(figure, evil, evil + '" onload="x'),)
    runs = (Provenance(evil, ((evil, evil),)),)
    html = render(Report(evil, evil, (Section(evil, text=evil, **parts),), runs, ((evil, evil),)))
    page = Page(html)
    assert_only_our_script(page)
    assert not any("onload" in attrs for _, attrs in page.elements)
    assert page.text.count(evil) >= 12


def test_render_draws_what_is_heavy_as_an_image_inside_its_figure(rng):
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot(rng.normal(size=30_000), rng.normal(size=30_000), ".")
    html = render(Report("T", sections=(Section("S", figures=(FigureItem(figure, "c", "dots"),)),)))
    page = Page(html)
    assert len(html) < 300_000
    assert page.all("svg")[0]["aria-label"] == "dots"
    assert len(page.all("image")) == 1
    assert_self_contained(page, html)


def test_a_figure_that_stays_heavy_is_one_image():
    (image,) = Page(embed(_figure(), prefix="f1", alt='a "line"', max_svg_bytes=100)).all("img")
    assert image["alt"] == 'a "line"'
    assert image["src"].startswith("data:image/png;base64,")


def test_figures_of_other_libraries_have_the_pages_greys_and_ground():
    figure = Figure(figsize=(3, 2))  # matplotlib's own colours: black on white
    axes = figure.subplots()
    axes.set_title("title")
    for place, colour in enumerate(("#000207", "#808080", "#dadadd", "#2244aa")):
        axes.plot([0, 1], [place, place], color=colour)
    section = Section("S", figures=(FigureItem(figure, "", ""),))
    page = Page(render(Report("T", sections=(section,))))
    styles = " ".join(page.values("style"))
    for name in ("ground", "ink", "muted", "grid"):
        assert f"var(--figure-{name})" in styles
    assert set(re.findall(r"#[0-9a-f]{6}", styles)) == {"#2244aa"}


def test_claiming_needs_a_folder(tmp_path):
    with pytest.raises(OutputError, match=r"but its folder does not exist: create .*missing"):
        claimed(tmp_path / "missing" / "out.html").__enter__()


def test_a_page_may_load_and_run_nothing(html):
    head = html[: html.index("<title>")]
    policy = next(a["content"] for a in Page(html).all("meta") if "http-equiv" in a)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    digest = b64encode(sha256(SCRIPT.encode()).digest()).decode()
    wanted = dict.fromkeys(("default-src", "base-uri", "form-action"), "'none'")
    wanted |= {"script-src": f"'sha256-{digest}'", "img-src": "data:", "font-src": "data:"}
    wanted["style-src"] = "'unsafe-inline'"  # figures set their colours element by element
    assert rules == wanted
    # Before anything that it rules.
    assert head.index("Content-Security-Policy") < head.index("viewport")
    used = Page(html).values("src")
    assert all(value.startswith("data:") for value in used)


@pytest.fixture
def tree(make_mcmc, rng, blank_figures):
    return make_mcmc({"theta": rng.normal(size=(2, 50, 2)), "phi": rng.normal(size=(2, 50))})


@pytest.fixture
def shown(tree):
    return ob.report(tree, title='A "page" <b>')


def test_with_a_path_the_file_is_given_back(tree, tmp_path):
    path = ob.report(tree, tmp_path / "page.html", title="Mine")
    assert path == tmp_path / "page.html"
    assert "<title>Mine</title>" in path.read_text(encoding="utf-8")


def test_a_notebook_shows_the_page_in_a_frame_that_reaches_nothing(shown):
    assert isinstance(shown, InlineReport)
    (frame,) = Page(shown._repr_html_()).all("iframe")
    assert frame["sandbox"] == "allow-scripts"  # not the notebook's own origin
    assert frame["title"] == 'A "page" <b>'
    assert frame["srcdoc"] == shown.html
    assert unescape(shown._repr_html_()).count("Content-Security-Policy") == 1
    assert "save" in repr(shown)


def test_what_a_notebook_shows_can_be_saved(shown, tmp_path):
    path = shown.save(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == shown.html
    with pytest.raises(RuntimeError, match="exists"):
        shown.save(path)
    shown.save(path, force=True)

"""The page: complete, escaped, self-contained; and the file it goes to."""

import json
import os
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from analysis.report import (
    Cell,
    Column,
    FigureItem,
    Note,
    OutputError,
    Report,
    Run,
    Section,
    Table,
    check_output,
    posterior_report,
    render,
    write,
)

VOID = {"meta", "img", "link", "br", "hr", "input"}


class Page(HTMLParser):
    """Collects elements, text and ids of a page, and checks that tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.cells: list[list[str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        elif tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data
        if self.open and {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]

    def values(self, attribute):
        return [attrs[attribute] for _, attrs in self.elements if attribute in attrs]


def _figure():
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([0, 1], [0, 1])
    return figure


@pytest.fixture
def report():
    table = Table(
        ("name", Column("R-hat", decimals=3, unit="largest"), "ESS"),
        (("free", Cell(1.8, "bad", "`b1[0]`"), 6), ("givens", Cell(1.0, "good"), None)),
        caption="Two rows",
    )
    section = Section(
        "First <section>",
        text="One `name`.\n\nTwo & three.",
        notes=(Note("Look here.", "warn", "Title"),),
        tables=(table, table),
        figures=(FigureItem(_figure(), "A line", 'a "line"'), FigureItem(_figure(), "B", "b")),
    )
    runs = (
        Run("a", (("Seed", "1"), ("Machine", "same"))),
        Run("b", (("Seed", "2"), ("Machine", "same"))),
    )
    return Report("Title", "Lede", (section, Section("Second")), runs, (("R-hat", "a ratio"),))


@pytest.fixture
def posteriors(network_tree, make_variational, rng):
    x = rng.normal(size=(1, 100, 1, 2))
    density = -0.5 * (x**2).sum((2, 3))
    fit = make_variational({"W1": x, "W2": np.swapaxes(x, 2, 3)}, lp=density, log_q=density)
    return {"nuts": network_tree, "advi": fit}


def _assert_self_contained(page, html):
    assert page.all("script") == page.all("link") == page.all("iframe") == []
    for attribute in ("src", "href"):
        for value in page.values(attribute):
            assert value.startswith(("#", "data:image/png;base64,"))
    assert "http:" not in html and "https:" not in html
    assert "@import" not in html
    assert all(part.startswith("#") for part in _after(html, "url("))


def _after(text, mark):
    return text.split(mark)[1:]


def test_render_is_self_contained_and_well_formed(report):
    html = render(report)
    _assert_self_contained(Page(html), html)


def test_render_shows_every_part(report):
    page = Page(render(report))
    for text in ("Title", "Lede", "First <section>", "Two & three.", "Look here.", "A line"):
        assert text in page.text
    assert len(page.all("table")) == 2
    assert len(page.all("svg")) == 2
    assert page.all("svg")[0]["aria-label"] == 'a "line"'
    assert page.cells[0] == ["name", "R-hatlargest", "ESS"]
    assert page.cells[1] == ["free", "1.800✗b1[0]", "6"]
    assert page.cells[2] == ["givens", "1.000✓", "–"]


def test_render_aligns_numbers_and_flags_cells_in_words(report):
    page = Page(render(report))
    classes = [attrs.get("class", "").split() for attrs in page.all("td")]
    assert classes[0] == ["number", "bad"]
    assert classes[1] == ["number"]
    marks = [a["aria-label"] for a in page.all("span") if "aria-label" in a]
    assert marks[:3] == ["look at this", "bad", "good"]


def test_render_links_its_contents(report):
    page = Page(render(report))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    targets = [href[1:] for href in page.values("href")]
    assert set(targets) <= set(ids)
    assert {"section-1", "section-2", "made"} <= set(targets)


def test_render_tells_what_runs_share_once(report):
    page = Page(render(report))
    assert page.text.count("Machine") == 1
    assert page.text.count("Seed") == 2


def test_render_is_the_same_every_time(report):
    assert render(report) == render(report)


def test_render_escapes_what_users_name():
    evil = "<script>alert(1)</script>"
    table = Table((evil, "x"), ((evil, Cell(evil, "bad", evil)),), caption=evil)
    figure = Figure(figsize=(3, 2))
    figure.subplots().set_title(evil + "-->")
    section = Section(
        evil,
        text=evil,
        notes=(Note(evil, title=evil),),
        tables=(table,),
        figures=(FigureItem(figure, evil, evil + '" onload="x'),),
    )
    html = render(Report(evil, evil, (section,), (Run(evil, ((evil, evil),)),), ((evil, evil),)))
    page = Page(html)
    assert page.all("script") == []
    assert not any("onload" in attrs for _, attrs in page.elements)
    assert page.text.count(evil) >= 12


def test_render_embeds_a_heavy_figure_as_an_image(rng):
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot(rng.normal(size=30_000), rng.normal(size=30_000), ".")
    html = render(Report("T", sections=(Section("S", figures=(FigureItem(figure, "c", "dots"),)),)))
    page = Page(html)
    (image,) = page.all("img")
    assert image["alt"] == "dots"
    _assert_self_contained(page, html)


def test_a_table_refuses_rows_that_do_not_fit():
    with pytest.raises(ValueError, match=r"row of 1 cells .* 2 `columns`"):
        Table(("a", "b"), (("only",),))


def test_without_empty_columns_drops_dashes_alone():
    table = Table(("a", "b", "c"), (("x", None, 0), ("y", float("nan"), None)))
    assert table.without_empty_columns() == Table(("a", "c"), (("x", 0), ("y", None)))


def test_posterior_report_shows_both_kinds_of_posterior(posteriors):
    report = posterior_report(posteriors, title="Two ways")
    html = render(report)
    page = Page(html)
    _assert_self_contained(page, html)
    titles = [section.title for section in report.sections]
    assert titles[0] == "Overview"
    assert titles[-2:] == ["nuts", "advi"]
    assert {"Optimisation", "Shape of the posterior", "Predictions"} <= set(titles)
    assert [run.name for run in report.provenance] == ["nuts", "advi"]
    # trace and rank (one Markov chain), ELBO, scatter, tree depth, band
    assert len(page.all("svg")) + len(page.all("img")) == 5
    for text in ("k-hat", "E-BFMI", "target_accept = 0.8", "jax = 0.10.2", "a processor, 2 cores"):
        assert text in page.text


def test_posterior_report_flags_what_diagnose_warns_of(posteriors):
    diverging = np.zeros((4, 100), bool)
    diverging[1, :5] = True
    posteriors["nuts"]["sample_stats"]["diverging"].values[:] = diverging
    report = posterior_report(posteriors)
    (attention,) = [s for s in report.sections if s.title == "What needs attention"]
    assert [note.title for note in attention.notes] == ["nuts"]
    assert "5 of 400 draws diverged" in attention.notes[0].text
    page = Page(render(report))
    assert any(row[0].startswith("nuts") and "5✗" in row for row in page.cells)


def test_posterior_report_works_on_any_stan_program(make_mcmc, rng):
    tree = make_mcmc({"theta": rng.normal(size=(2, 50, 2))}, attrs={"engine": "stan"})
    del tree["sample_stats"]
    for name in ("settings", "versions", "wall_time", "sampling_seconds", "warmup_seconds"):
        del tree.attrs[name]
    page = Page(render(posterior_report({"eight schools": tree})))
    assert "theta[1]" in page.text


def test_posterior_report_lists_the_attempts_before_a_fit(make_variational, rng):
    one = rng.normal(size=(1, 50))
    attempts = json.dumps([{"eta": 1.0, "outcome": "NaN"}])
    tree = make_variational({"mu": one}, lp=one, log_q=one, attrs={"attempts": attempts})
    facts = dict(posterior_report({"fit": tree}).provenance[0].facts)
    assert facts["Tried before"] == "eta = 1.0, outcome = NaN"
    assert facts["Converged"] == "yes"


def test_posterior_report_names_the_posterior_that_cannot_be_diagnosed(make_mcmc, rng):
    good, bad = rng.normal(size=(2, 50)), np.full((2, 50), np.nan)
    trees = {"good": make_mcmc({"mu": good}), "bad.nc": make_mcmc({"mu": bad})}
    with pytest.raises(
        ValueError, match=r"bad\.nc: `posterior` holds 100 draws that are not finite"
    ):
        posterior_report(trees)


def test_posterior_report_refuses_nothing():
    with pytest.raises(ValueError, match="`posteriors` is empty"):
        posterior_report({})


def test_write_makes_one_readable_file(report, tmp_path):
    path = write(report, tmp_path / "out.html")
    assert path.read_text(encoding="utf-8") == render(report)
    assert os.listdir(tmp_path) == ["out.html"]
    assert path.stat().st_mode & 0o044


def test_write_does_not_replace_a_file_unless_told_to(report, tmp_path):
    path = tmp_path / "out.html"
    path.write_text("mine")
    with pytest.raises(OutputError, match=r"out\.html' exists already: .*--force"):
        write(report, path)
    assert path.read_text() == "mine"
    write(report, path, force=True)
    assert path.read_text() != "mine"


def test_check_output_needs_a_folder(tmp_path):
    with pytest.raises(OutputError, match=r"a folder that does not exist: make .*missing"):
        check_output(tmp_path / "missing" / "out.html")
    with pytest.raises(OutputError, match="is a folder, and a file is needed"):
        check_output(tmp_path)


def test_check_output_says_that_a_folder_is_read_only(tmp_path, monkeypatch):
    # Not by chmod: a superuser may write everywhere, and tests are run as one in containers.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OutputError, match="folder that is not writable: choose another one"):
        check_output(tmp_path / "out.html")


def test_write_explains_a_disk_error_and_leaves_nothing(report, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError, match=r"cannot be written \(No space left on device\)"):
        write(report, tmp_path / "out.html")
    assert os.listdir(tmp_path) == []

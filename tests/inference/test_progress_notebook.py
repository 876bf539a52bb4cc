"""Bars in a notebook: one output, written anew in place, which ends as text; nothing of it in the file but that."""

import threading

import pytest

from onebasin.base import progress_notebook
from onebasin.base.progress_notebook import Bar, NotebookBars, in_html, in_text

from ..cards import check_page

CELL = """
import threading
from onebasin.base.progress import ProgressBars
with ProgressBars(True) as bars:
    def run(number):
        chain = bars.chain(number, warmup=50, draws=50)
        for done in range(101):
            chain.show(done, step_size=0.5, divergences=number)
        chain.end(1.0, step_size=0.5, divergences=number)
    bars.say("compiling")
    run(0)
    other = threading.Thread(target=run, args=(1,))
    other.start(); other.join()
"""


@pytest.fixture
def published(monkeypatch):
    """What a notebook is told, in order."""
    told = []
    monkeypatch.setattr(NotebookBars, "_publish", lambda self, bundle: told.append(bundle))
    monkeypatch.setattr(progress_notebook, "EVERY", 0.0)
    return told


@pytest.mark.full
def test_a_saved_notebook_holds_what_bars_said_last_and_nothing_else():
    import nbformat  # here: it takes seconds, and every worker imports this file
    from nbclient import NotebookClient

    cells = [
        nbformat.v4.new_code_cell(CELL),
        nbformat.v4.new_code_cell("with ProgressBars(True): pass"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120).execute()
    (output,) = notebook.cells[0].outputs
    assert notebook.cells[1].outputs == []
    assert output.output_type == "display_data"
    assert sorted(output.data) == ["text/html", "text/plain"]
    assert output.data["text/plain"] == (
        "chain 1 sampling step 0.5, 0 divergent  100 / 100\n"
        "chain 2 sampling step 0.5, 1 divergent  100 / 100"
    )
    check_page(output.data["text/html"])
    assert "<progress" not in output.data["text/html"]


def test_bars_move_with_a_message_under_them(published):
    bars = NotebookBars()
    bars.start()
    bars.say("compiling mixture.stan <1>")
    bar = bars.add("chain 1", 1000)
    bars.move(bar, 400, None)
    html = published[-1]["text/html"]
    check_page(html)
    assert '<progress max="1000" value="400">' in html
    assert "400 / 1,000" in html
    assert "compiling mixture.stan &lt;1&gt;" in html
    bars.stop()
    assert "compiling" not in published[-1]["text/html"]
    assert published[-1]["text/plain"] == "chain 1  400 / 1,000"


def test_looks_are_few_and_nothing_is_shown_where_nothing_is_said(published, monkeypatch):
    monkeypatch.setattr(progress_notebook, "EVERY", 60.0)
    bars = NotebookBars()
    bars.start()
    bars.stop()
    assert published == []
    bars = NotebookBars()
    bar = bars.add("chain 1", 1000)
    for done in range(1000):
        bars.move(bar, done, None)
    assert len(published) <= 1
    bars.stop()
    assert published[-1]["text/plain"] == "chain 1  999 / 1,000"


def test_many_chains_are_counted_together():
    bars = [Bar(f"chain {number + 1}", 100, number) for number in range(30)]
    lines = in_text(bars, "").splitlines()
    assert len(lines) == progress_notebook.MOST + 1
    assert lines[-1] == f"and 22 more  {sum(range(8, 30))} / 2,200"


@pytest.mark.parametrize(
    ("seconds", "said"), [(1.0, ""), (10.0, "about 90 s left"), (60.0, "about 9 min left")]
)
def test_the_time_left_follows_from_the_time_taken(seconds, said):
    html = in_html([Bar("chain 1", 100, 10)], "", seconds)
    assert said in html
    assert ("left" in html.rpartition("</table>")[2]) == bool(said)


def test_threads_may_move_bars_at_once(published):
    bars = NotebookBars()

    def run():
        bar = bars.add("chain", 200)
        for done in range(201):
            bars.move(bar, done, None)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bars.stop()
    assert published[-1]["text/plain"] == "\n".join(["chain  200 / 200"] * 4)

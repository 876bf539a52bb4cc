"""Figures of how posteriors were made, the same for every study."""

from onebasin.analysis.page.page import FigureItem
from onebasin.analysis.report.posterior_figures import elbo_figure, trace_figure

from .cells import ENGINE_WORDS, METHOD_WORDS, Cell, Outcomes
from .frame import Frame, Row

_FAMILIES = {"meanfield": "mean-field", "fullrank": "full-rank"}


def worst_chains(cells: Frame) -> Row | None:
    """Find the cell of NUTS with the largest R-hat of a parameter; None where none is known."""
    sampled = cells.known("rhat_value").where(method="nuts")
    return max(sampled, key=lambda row: row["rhat_value"], default=None)


def worst_trace(outcomes: Outcomes, cells: Frame) -> FigureItem | None:
    """Draw traces and ranks of the cell with the largest R-hat of a parameter."""
    worst = worst_chains(cells)
    if worst is None:
        return None
    (cell,) = (cell for cell in outcomes if cell.key == worst["key"])
    return trace_figure(outcomes.tree(cell), outcomes.diagnosis(cell))


def elbo_traces(outcomes: Outcomes) -> tuple[FigureItem, ...]:
    """Draw the ELBO of every variational fit, one figure per engine."""
    items = []
    for engine in dict.fromkeys(cell.engine for cell in outcomes):
        fits = {
            f"{cell.problem}, {_FAMILIES[cell.method]}": outcomes.tree(cell)
            for cell in outcomes
            if cell.engine == engine and cell.method in _FAMILIES
        }
        item = elbo_figure(fits)
        if item is not None:
            caption = f"{ENGINE_WORDS[engine]}: {item.caption}"
            items.append(FigureItem(item.figure, caption, f"{item.alt}, {ENGINE_WORDS[engine]}"))
    return tuple(items)


def panels(
    outcomes: Outcomes, problems: tuple[str, ...], methods: tuple[str, ...]
) -> dict[str, Cell]:
    """Give a cell for each panel of a figure, of the first engine that has it, by its title."""
    cells: dict[tuple[str, str], Cell] = {}
    for engine in dict.fromkeys(cell.engine for cell in outcomes):
        for cell in outcomes:
            if cell.engine == engine:
                cells.setdefault((cell.problem, cell.method), cell)
    names = [(problem, method) for problem in problems for method in methods]
    return {f"{p}, {METHOD_WORDS[m]}": cells[p, m] for p, m in names if (p, m) in cells}

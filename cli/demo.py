"""`onebasin demo`: a mixture whose labels switch, approximations of a network, and a page about both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from onebasin.base.processes.libraries import prepare_libraries

WIDTH = 50
"""Width of a label in characters."""


def demo(
    out: Annotated[Path, typer.Option(help="The page to write; an existing file is replaced.")] = (
        Path("demo/report.html")
    ),
) -> None:
    """Show in half a minute what onebasin does with a mixture and a network; no compiler is needed."""
    from onebasin.analysis.page import OutputError
    from onebasin.base.files.writing import claim

    with claim(out, force=True, error=OutputError, argument="--out"), _compiling_quickly():
        from onebasin.analysis.page import put
        from onebasin.studies.demo import mixture, network
        from onebasin.studies.demo.page import MEASURES, page, score_table

        from . import console

        _write("1. A mixture of two normal components, in Stan")
        _write("   No prior tells them apart, so every chain chooses its own labels.")
        mixed = mixture.run()
        means = mixed.posterior.posterior["mu"].mean("draw").values[:, 0]
        rhats = mixed.aligned
        _write("   Mean of mu[0] in each of 4 chains of NUTS", "  ".join(f"{m:.2f}" for m in means))
        _write("   R-hat of these draws (the limit is 1.01)", f"{rhats.raw.rhat.value:.2f}")
        _write("   Symmetry that onebasin finds in the log density", mixed.words)
        _write("   Change of the log density under it, at most", f"{max(mixed.changes):.0e} nats")
        _write("   Draws that alignment relabels", f"{100 * mixed.relabelled:.0f} %")
        _write("   R-hat of the aligned draws", f"{rhats.aligned.rhat.value:.2f}")
        _write("   Verdict of onebasin on the draws", mixed.verdict)
        for name in ("mu", "sigma"):
            mean = mixed.draws[name].mean(("chain", "draw")).values
            label = f"   Means of the aligned {name}[0] and {name}[1]"
            _write(label, f"{mean[0]:.2f} and {mean[1]:.2f}")
        _write("\n2. A network of two hidden tanh units, in Stan and in NumPyro")
        _write("   Three approximations are compared with NUTS, the reference.")
        fits = network.run()
        aligned = fits.diagnosis.aligned
        assert aligned is not None, "a network declares its symmetry"
        constant = f"{fits.constant:.4f} nats, a constant"
        _write("   Log density in Stan minus that in NumPyro", constant)
        _write("   Largest deviation from this constant, 10 points", f"{fits.spread:.0e} nats")
        _write("   R-hat of NUTS as sampled", f"{aligned.raw.rhat.value:.2f}")
        _write("   R-hat of NUTS aligned", f"{aligned.aligned.rhat.value:.2f}")
        console.write_table(score_table(fits.scores))
        typer.echo(fill(MEASURES, 80, initial_indent="   ", subsequent_indent="   "))
        put(page(mixed, fits), out, force=True)
    _write(f"\nThe same with pictures: {out}")


@contextmanager
def _compiling_quickly() -> Iterator[None]:
    """Turn off most of JAX's optimisations, since compiling small models takes longer than running them."""
    prepare_libraries()
    import jax

    name = "jax_disable_most_optimizations"
    before = jax.config.read(name)
    jax.config.update(name, True)
    try:
        yield
    finally:
        jax.config.update(name, before)


def _write(label: str, value: str = "") -> None:
    typer.echo(f"{label:<{WIDTH}} {value}".rstrip())

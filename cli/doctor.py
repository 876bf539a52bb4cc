"""`onebasin doctor`: what this machine has, and which engines work."""

from typing import Annotated, Literal

import typer

from onebasin.base.processes.libraries import prepare_jax


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of a table.")] = False,
    build: Annotated[
        bool, typer.Option("--build/--no-build", help="Assemble CmdStan now if there is none.")
    ] = False,
) -> None:
    """Show what this machine has, tried out; the exit code is 0 if models run and all that was set up works."""
    from dataclasses import asdict

    from . import console
    from .machine import examine, first_remedy, working_engines

    prepare_jax()
    checks = examine(build=build, progress=console.say)
    engines = working_engines(checks)
    if json:
        console.write_json({"engines": engines, "checks": [asdict(check) for check in checks]})
    else:
        console.write_rows(
            [(_flag(check.ok, check.matters), check.name, check.detail) for check in checks]
        )
        for check in checks:
            if check.remedy:
                flag = _flag(check.ok, check.matters)
                console.write_remark(f"{check.name}: {check.remedy}", flag)
        for engine, works in engines.items():
            verdict = "works" if works else "does not work"
            needed = any(check.engine == engine and not check.ok for check in checks)
            flag = "good" if works else "bad" if needed else "warn"
            console.write_remark(f"the {engine} engine {verdict}", flag)
    remedy = first_remedy(checks)
    if remedy is not None:
        console.say(f"onebasin: {remedy}")
        raise typer.Exit(1)


def _flag(ok: bool, matters: bool) -> Literal["good", "warn", "bad"]:
    if ok:
        return "good"
    return "bad" if matters else "warn"

"""`onebasin doctor`: what this machine has, and which engines work."""

from __future__ import annotations

import typer

from onebasin.base.processes.libraries import prepare_jax
from onebasin.base.text import Flag

from .options import Json, option


def doctor(
    details: bool = option(
        False, "Show every data set, and how to get those that are missing.", "--details"
    ),
    json: Json = False,
    build: bool = option(False, "Assemble CmdStan now if there is none.", "--build/--no-build"),
) -> None:
    """Show what this machine has, tried out; the exit code is 0 if models run and all that was set up works."""
    from dataclasses import asdict

    from . import console
    from .machine import DATA, Check, examine, first_remedy, working_engines

    prepare_jax()
    checks = examine(build=build, progress=console.say)
    engines = working_engines(checks)
    if json:
        console.write_json({"engines": engines, "checks": [asdict(check) for check in checks]})
    else:
        sets = [check for check in checks if check.name.startswith(DATA)]
        rows = checks
        if not details:
            here = sum(check.ok for check in sets)
            detail = f"{here} of {len(sets)} are here: onebasin doctor --details lists them"
            told = [c for c in checks if c not in sets and not (c.name == "make" and c.ok)]
            rows = [*told, Check("data sets", True, detail)]
        console.write_rows([(_flag(c.ok, c.matters), c.name, c.detail) for c in rows])
        for check in rows:
            if check.remedy:
                flag = _flag(check.ok, check.matters)
                console.write_remark(f"{check.name}: {check.remedy}", flag)
        able = [engine for engine, works in engines.items() if works]
        if able:
            console.write_remark(f"{_listed(able)} work{'s' * (len(able) == 1)}", "good")
        for engine in engines.keys() - set(able):
            needed = any(check.engine == engine and not check.ok for check in checks)
            console.write_remark(f"{_listed([engine])} does not work", _flag(False, needed))
    remedy = first_remedy(checks)
    if remedy is not None:
        console.say(f"onebasin: {remedy}")
        raise typer.Exit(1)


def _listed(engines: list[str]) -> str:
    *others, last = engines
    return f"the engines {', '.join(others)} and {last}" if others else f"the engine {last}"


def _flag(ok: bool, matters: bool) -> Flag:
    return "good" if ok else "bad" if matters else "warn"

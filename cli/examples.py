"""Examples that stand under every `--help`: what a command is for, and the line to type."""

from __future__ import annotations

from collections.abc import Mapping

Examples = tuple[tuple[str, str], ...]
"""Pairs of a description and a command line."""

_TEXT = """
onebasin
    see what it does, in half a minute | onebasin demo
    what this machine has | onebasin doctor
    sample a Stan program | onebasin sample mixture.stan data.json --out run.nc
    may the draws be used? | onebasin diagnose run.nc
    one page about them | onebasin report run.nc --out report.html
onebasin demo
    align a mixture, compare approximations of a network | onebasin demo
onebasin doctor
    look at everything, change nothing | onebasin doctor
    assemble CmdStan, too, if there is none | onebasin doctor --build
onebasin truth
    all references | onebasin truth list
    is one intact, and what it claims to be? | onebasin truth check eight-schools
onebasin truth make
    one of ours, again | onebasin truth make eight-schools
    of a program of yours | onebasin truth make mixture.stan data.json --out mixture
    another seed | onebasin truth make eight-schools --seed 2
onebasin truth list
    all of them | onebasin truth list
onebasin truth show
    one reference | onebasin truth show eight-schools
    label-free quantities | onebasin truth show mixture-2 --invariants
onebasin truth check
    by code that did not make it | onebasin truth check eight-schools
    against another seed's | onebasin truth check one --against two
onebasin sample
    NUTS, four chains of 1,000 draws | onebasin sample mixture.stan data.json --out run.nc
    components whose labels may switch | onebasin sample mixture.stan data.json --exchangeable mu,sigma
    a NumPyro model: the function `model` of a file | onebasin sample model.py:model data.json
    approximate it in seconds | onebasin sample mixture.stan data.json --method pathfinder
onebasin symmetry
    what is interchangeable? | onebasin symmetry mixture.stan data.json
    of a NumPyro model | onebasin symmetry model.py:model data.json
    tried at draws too, for a program | onebasin symmetry any.stan --draws run.nc --json
onebasin calibrate
    is a family of ours sampled rightly? | onebasin calibrate mixture-2
    a NumPyro model, which draws what it observes | onebasin calibrate model.py:model data.json --observed y
    a Stan program against a simulator in Python | onebasin calibrate any.stan --simulator sim.py:simulate --out ranks
    how far off is an approximation? with a picture | onebasin calibrate net-free --method meanfield --figure ranks.png
onebasin diagnose
    may the posterior be used? | onebasin diagnose run.nc
    modulo switching labels | onebasin diagnose run.nc --exchangeable mu,sigma,theta
    chains as CmdStan wrote them | onebasin diagnose chain_1.csv chain_2.csv
    everything, for a program | onebasin diagnose run.nc --json
onebasin align
    by the symmetry that the file declares | onebasin align run.nc --out aligned.nc
    by one that is said here | onebasin align run.nc --exchangeable mu,sigma --out aligned.nc
onebasin compare
    the first file is the truth | onebasin compare nuts.nc advi.nc
    a network's predictions at other points | onebasin compare nuts.nc advi.nc --points test.npz
    with a reference posterior | onebasin compare run.nc --truth eight-schools
onebasin predict
    a network; or a Stan program whose file is unchanged | onebasin predict run.nc new.json
    a NumPyro model, into a file | onebasin predict run.nc new.json --program model.py:model -o predicted.nc
onebasin loo
    one model | onebasin loo run.nc
    which model predicts better? | onebasin loo one.nc two.nc
    weights of modes that chains disagree on | onebasin loo run.nc --by mode
onebasin report
    one posterior | onebasin report run.nc --out report.html
    several next to each other | onebasin report nuts.nc advi.nc --out both.html
onebasin convert
    to Zarr | onebasin convert run.nc --out run.zarr
    chains of CmdStan to one file | onebasin convert chain_1.csv chain_2.csv --out run.nc
    runs of many machines, each with its seed | onebasin convert 'run-*.nc' --out run.nc
onebasin study
    what there is | onebasin study --list
    one of them, small | onebasin study relu-teacher --quick
    resume a stopped run: the same line again | onebasin study relu-teacher --quick --out runs/mine
onebasin truth leaderboard
    two references, small | onebasin truth leaderboard --only eight-schools,mixture-3 --quick
    your own method, next to the records of ours | onebasin truth leaderboard --add mine=sampler.py:sample
    files of your own, one a reference | onebasin truth leaderboard --add 'mine=runs/{reference}.nc'
onebasin cmdstan
    build it now, once a machine | onebasin cmdstan build
    let other tools find it | export CMDSTAN=$(onebasin cmdstan path)
onebasin cmdstan build
    as fast as this machine can | onebasin cmdstan build
    with one compiler at a time | onebasin cmdstan build --jobs 1
onebasin cmdstan path
    for cmdstanpy, cmdstanr and brms | export CMDSTAN=$(onebasin cmdstan path)
    without building anything | onebasin cmdstan path --no-build
onebasin cmdstan info
    what is there, and what it takes | onebasin cmdstan info
onebasin cmdstan clean
    remove it | onebasin cmdstan clean
onebasin bridgestan
    let BridgeStan and nutpie find it | export BRIDGESTAN=$(onebasin bridgestan path)
onebasin bridgestan path
    for bridgestan and nutpie | export BRIDGESTAN=$(onebasin bridgestan path)
    without building anything | onebasin bridgestan path --no-build
"""


def _read(text: str) -> dict[str, Examples]:
    found: dict[str, Examples] = {}
    for line in text.strip().splitlines():
        if not line.startswith(" "):
            command = line
            found[command] = ()
        else:
            what, _, typed = line.strip().partition(" | ")
            found[command] += ((what, typed),)
    return found


EXAMPLES: Mapping[str, Examples] = _read(_TEXT)


def examples_text(path: str) -> str:
    """The examples of a command, by its words; empty where it has none."""
    lines = [f"  # {what}\n  {line}\n" for what, line in EXAMPLES.get(path, ())]
    return "".join(["\nExamples:\n", *lines]) if lines else ""

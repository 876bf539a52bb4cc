"""What all methods' arguments mean alike, written once; every method's docstring has it.

A method's own docstring says what is its own: what it does, its settings, what comes back, and what else it refuses.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from onebasin.base.docstrings import completed, entries

ALIKE = """What methods take alike.

Parameters
----------
target : Target
    The model conditioned on data: `ob.stan_program`, `ob.numpyro_model`, or a network's `condition(x, y)`.
engine : {"numpyro", "stan"}, optional
    Whose definition of the model is used, and by what: JAX in this process, or CmdStan's executable; by default the
    engine that the target has a definition for, NumPyro where it has both. The posterior has the same groups and names
    either way.
seed : int
    From 0 to 2^32 - 1, for everything that is random. The same call with the same seed gives the same draws, bit by
    bit, on the same machine and versions.
checkpoint : path, optional
    A folder in which chains, or the state of training, are kept as they go. The same call made again goes on from
    there to the same draws; anything else that lies there, of another model, data, settings or seed, is not taken.
predictive_mb : float
    Megabytes that the groups `log_likelihood`, `posterior_predictive` and `log_prior` may take together; beyond
    them every second, third, ... draw is kept there, and 0 leaves the groups out. What a Stan program computes
    itself is kept whole.
check_symmetry : bool
    Whether a declared symmetry is held against the log density before the run and at its draws afterwards, as by
    `ob.check_symmetry`; a network's, which its architecture has, is not. It changes no draw; False leaves it out.
progress : bool
    Whether to show progress: in a terminal on stderr, in a notebook below the cell.

Raises
------
TypeError
    If `settings` are of another class, or `target` is no target.
ValueError
    If a word is unknown, the seed out of range, or the target has no definition for the engine.
SymmetryError
    If the log density does not have the declared symmetry. What draws alone contradict is recorded in the attribute
    `symmetry_evidence` and said in a notice.
"""

_ARGUMENTS = entries(ALIKE, "Parameters")
_ERRORS = entries(ALIKE, "Raises")


def method[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Complete a method's docstring by what methods have alike: arguments in the signature's order, and errors."""
    if function.__doc__ is None:  # python -OO keeps none
        return function
    own = entries(function.__doc__, "Parameters")
    taken = inspect.signature(function).parameters
    arguments = {name: own.get(name) or _ARGUMENTS[name] for name in taken}
    errors = {n: e for n, e in _ERRORS.items() if n != "SymmetryError" or "check_symmetry" in taken}
    text = completed(function.__doc__, "Parameters", arguments)
    function.__doc__ = completed(text, "Raises", errors)
    return function

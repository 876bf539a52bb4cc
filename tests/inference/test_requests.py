"""What every method refuses before any work, and that its class, its word and its function agree."""

import inspect
from dataclasses import fields
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

import onebasin as ob
from onebasin.inference.contracts.method import ENGINES, engine_for, found_at, implemented
from onebasin.inference.methods import FUNCTIONS, METHODS, method_named
from onebasin.inference.runs.keywords import RUNNING
from onebasin.models import BayesianNetwork, Exchangeable, Network, Target
from onebasin.models.numpyro_target import numpyro_model
from onebasin.stan import stan_program

TARGET = BayesianNetwork(Network(1, (2,))).condition(np.zeros((3, 1)), np.zeros((3, 1)), name="net")


def test_engine_that_is_not_named_is_the_one_that_the_target_has(tmp_path):
    (tmp_path / "m.stan").write_text("parameters { real a; } model { a ~ std_normal(); }")
    numpyro_model = Target("m", numpyro_model=lambda: None)
    for target, name in [
        (TARGET, "numpyro"),  # both
        (numpyro_model, "numpyro"),
        (stan_program(tmp_path / "m.stan"), "stanli"),
    ]:
        assert engine_for(target, None) == name
        assert engine_for(target, "stan") == "cmdstan"


@pytest.mark.parametrize("cls", FUNCTIONS)
def test_a_class_and_its_function_have_the_same_fields_in_the_same_order_with_the_same_defaults(
    cls,
):
    shown = inspect.signature(FUNCTIONS[cls]).parameters
    shared = dict([*inspect.signature(ob.infer).parameters.items()][2:-1])
    assert list(shared) == list(RUNNING)
    assert list(shown) == ["target", *(f.name for f in fields(cls)), *RUNNING]
    for name, default in {
        **{f.name: f.default for f in fields(cls)},
        **{name: of.default for name, of in shared.items()},
    }.items():
        assert repr(shown[name].default) == repr(default)
    assert method_named(cls.name) == cls()


def test_every_method_has_an_engine_and_every_place_holds_its_implementation():
    for method in METHODS.values():
        places = [place for engine in ENGINES if (place := implemented(method, engine))]
        if find_spec("nutpie") is None:
            places = [place for place in places if ".nutpie:" not in place]
        assert places and all(callable(found_at(place)) for place in places)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("method", "how", "said"),
    [
        ({"draws": 5}, {}, "`method` is 'dict'; give a method"),
        (ob.Nuts(), {"draws": 5}, r"`draws` is given as well as Nuts\(\.\.\.\); set it there"),
        ("mclmc", {"start": {}}, "`init` gives values, but mclmc does not accept"),
        ("advi", {"checkpoint": "a"}, "`checkpoint` is 'a', but advi saves nothing before it ends"),
        ("mclmc", {"engine": "stan"}, "`engine` is 'cmdstan', but mclmc uses JAX"),
        (
            "pathfinder",
            {"engine": "numpyro"},
            "which has no pathfinder. Use engine='stanli' or 'cmdstan'",
        ),
        (
            "hmc",
            {"engine": "nutpie"},
            r"which has no hmc \(it has nuts\)\. Use engine='numpyro' or",
        ),
    ],
)
def test_a_request_that_cannot_be_met_is_refused(method, how, said):
    if how.get("engine") == "nutpie" and find_spec("nutpie") is None:
        pytest.skip("nutpie is not installed")
    with pytest.raises((TypeError, ValueError), match=said):
        ob.infer(TARGET, method, **how)


@pytest.mark.parametrize(
    "words", ["mu,sigma", ["mu,sigma"], (Exchangeable({"mu": 0, "sigma": 0}),)]
)
def test_a_symmetry_is_given_in_blocks_or_in_words(tmp_path, words):
    program = tmp_path / "m.stan"
    program.write_text("parameters { vector[2] mu; vector[2] sigma; }")
    for make in (partial(stan_program, program), partial(numpyro_model, lambda: None)):
        assert make(symmetry=words).symmetry == (Exchangeable({"mu": 0, "sigma": 0}),)


def test_a_method_that_takes_no_numpyro_model_names_others():
    with pytest.raises(ValueError, match=r"does not support a NumPyro model\. Use `dadvi`"):
        ob.pathfinder(Target("m", numpyro_model=lambda: None))

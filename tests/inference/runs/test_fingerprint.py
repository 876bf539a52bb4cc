"""What decides a run and describes it: fingerprints, kept states, the origin and the versions."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

from onebasin.base.errors import CmdStanNotFound
from onebasin.inference import Nuts, infer
from onebasin.inference.runs import checkpoint, posterior
from onebasin.inference.runs.checkpoint import fingerprint
from onebasin.inference.runs.posterior import data_sha256, origin_of, versions
from onebasin.models.target import Target
from onebasin.stan import stan_program
from onebasin.stan.home.assemble import Home

Y = np.linspace(-1.0, 1.0, 30)
ONE_CHAIN = Nuts(chains=1, warmup=20, draws=10)


def normal(
    y: Any = Y,
    *,
    prior: float = 1.0,
    noise: Callable[..., Any] = dist.Normal,
    shift: Any = 0.0,
    name: str = "mu",
    square: Callable[[Any], Any] | None = None,
) -> Target:
    """A normal mean: always of one name, with one thing or another changed."""

    def model() -> None:
        mu = numpyro.sample(name, dist.Normal(0.0, prior))
        if square is not None:
            numpyro.deterministic("square", square(mu))
        numpyro.sample("y", noise(mu + shift, 1.0), obs=y)

    return Target("normal", numpyro_model=model)


def of(target: Target, **how: Any) -> str:
    found = fingerprint(target, engine="numpyro", **how)
    assert found is not None
    return found


def test_fingerprint_sees_all_that_a_numpyro_model_computes():
    one_bit = Y.copy()
    one_bit[15] = np.nextafter(one_bit[15], 1.0)
    assert of(normal()) == of(normal(Y.copy()))
    others = {
        "data": normal(one_bit),
        "data in single precision": normal(Y.astype(np.float32)),
        "prior": normal(prior=2.0),
        "prior, by one bit": normal(prior=float(np.nextafter(1.0, 2.0))),
        "likelihood": normal(noise=dist.Laplace),
        "a number in a closure": normal(shift=0.1),
        "an array in a closure": normal(shift=np.full(30, 0.1)),
        "an array in a closure, by one entry": normal(shift=np.r_[np.full(29, 0.1), 0.2]),
        "an array of JAX in a closure": normal(shift=jnp.full(30, 0.3)),
        "name of a variable": normal(name="nu"),
        "a derived quantity": normal(square=jnp.square),
        "another derived quantity": normal(square=jnp.abs),
    }
    found = {words: of(target) for words, target in others.items()}
    assert len({of(normal()), *found.values()}) == len(others) + 1, found


def test_other_versions_and_another_generator_of_random_numbers_are_another_run(monkeypatch):
    before, known = of(normal()), posterior._version
    for library in ("onebasin", "jax", "jaxlib", "numpyro"):
        with monkeypatch.context() as patch:
            patch.setattr(
                posterior, "_version", lambda n, other=library: "9.9" if n == other else known(n)
            )
            assert of(normal()) != before, library
    with jax.default_prng_impl("rbg"):
        assert of(normal()) != before
    monkeypatch.setattr(jax, "__version__", "9.9")  # the version that is loaded counts
    assert of(normal()) != before


ELSEWHERE = """
import sys
sys.path.insert(0, {folder!r})
from onebasin.base.processes.libraries import prepare_libraries
prepare_libraries()
from tests.inference.runs.test_fingerprint import normal, of, recurrent
import jax.numpy as jnp
print(of(normal(square=jnp.tanh)), of(recurrent()))
"""


def recurrent() -> Target:
    """A model with nested programs: a scan, a loop with an end, a Cholesky factor, a special function."""

    def model() -> None:
        rate = numpyro.sample("rate", dist.Gamma(2.0, 2.0))
        factor = numpyro.sample("factor", dist.LKJCholesky(3, 1.0))
        last, _ = jax.lax.scan(lambda c, y: (rate * c + y, None), jnp.zeros(()), jnp.asarray(Y))
        power = jax.lax.fori_loop(0, 3, lambda i, c: c * rate, jnp.ones(()))
        numpyro.factor("f", -(last**2) - power + jnp.linalg.slogdet(factor)[1])

    return Target("recurrent", numpyro_model=model)


@pytest.mark.full
def test_fingerprint_is_the_same_in_another_process():
    here = f"{of(normal(square=jnp.tanh))} {of(recurrent())}"
    code = ELSEWHERE.format(folder=str(Path(__file__).parents[3]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\n")[-2] == here, done.stderr


def calling_python() -> Target:
    def model() -> None:
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
        still = jax.lax.stop_gradient(mu)
        shape = jax.ShapeDtypeStruct((), mu.dtype)
        numpyro.deterministic(
            "twice", jax.pure_callback(lambda v: 2 * v, shape, still, vmap_method="sequential")
        )

    return Target("outside", numpyro_model=model)


def test_what_has_no_fingerprint_is_not_resumed_and_said_in_a_line(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "onebasin"):
        tree = infer(calling_python(), ONE_CHAIN, checkpoint=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert "no fingerprint" in caplog.text
    assert tree.posterior["twice"].shape == (1, 10)


def test_kept_chain_of_a_model_with_other_data_is_not_taken(tmp_path):
    first = infer(normal(), ONE_CHAIN, checkpoint=tmp_path)
    other = infer(normal(Y + 5.0), ONE_CHAIN, checkpoint=tmp_path)
    assert (other.posterior["mu"] != first.posterior["mu"]).all()


@pytest.mark.cmdstan  # the interpreter rejects data that do not fit the program
@pytest.mark.parametrize("index", [1, 1000])
def test_fingerprint_sees_every_digit_of_every_value(tmp_path, index):
    path = tmp_path / "mean.stan"
    path.write_text("data { vector[2000] y; }")

    def of(data: dict[str, Any]) -> str | None:
        return fingerprint(stan_program(path, data), engine="cmdstan")

    values = np.arange(2000.0)
    base = of({"y": values})
    assert base == of({"y": values.copy()})
    values[index] += 1e-12
    assert base != of({"y": values})
    assert base != of({"z": values})
    of_lists = of({"y": [1.0, 2.0], "n": np.int64(2)})
    assert of_lists != of({"y": [1.0, 2.0], "n": np.int64(3)})


@pytest.fixture
def with_include(tmp_path: Path) -> Target:
    """A program whose prior is in another file, which includes a third one."""
    (tmp_path / "mean.stan").write_text(
        "parameters { real mu; }\nmodel {\n#include prior.stan\n}\n"
    )
    (tmp_path / "prior.stan").write_text("mu ~ normal(\n#include where.stan\n, 1);\n")
    (tmp_path / "where.stan").write_text("0\n")
    return stan_program(tmp_path / "mean.stan")


def test_fingerprint_sees_every_included_file(with_include, tmp_path):
    base = fingerprint(with_include, engine="stanli")
    assert base == fingerprint(with_include, engine="stanli")
    (tmp_path / "where.stan").write_text("1000\n")
    assert base != fingerprint(with_include, engine="stanli")


def test_arrays_come_back_for_their_run_alone(tmp_path):
    path = tmp_path / "folder" / "state.npz"
    assert checkpoint.read(path, "this run") is None
    arrays = {"draws/a b": np.arange(3.0), "stats/diverging": np.array([True, False])}
    checkpoint.write(path, "this run", arrays)
    found = checkpoint.read(path, "this run")
    assert found is not None
    assert found.keys() == arrays.keys()
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype
    assert checkpoint.read(path, "another run") is None
    assert [p.name for p in path.parent.iterdir()] == ["state.npz"]


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("spoil", [flip, lambda content: b"", lambda content: content[:-60]])
def test_damaged_file_is_not_taken_and_said_in_a_line(spoil, tmp_path, caplog):
    path = tmp_path / "state.npz"
    arrays = {"draws/a": np.arange(300.0)}
    checkpoint.write(path, "this run", arrays)
    path.write_bytes(spoil(path.read_bytes()))
    assert checkpoint.read(path, "this run") is None
    assert caplog.text.count(str(path)) == 1
    checkpoint.write(path, "this run", arrays)
    assert checkpoint.read(path, "this run") is not None
    assert len(caplog.messages) == 1


def test_training_goes_on_from_a_whole_state_and_starts_again_from_a_damaged_one(tmp_path, caplog):
    start = ({"w": jnp.zeros(4)}, [])

    def keeper() -> checkpoint.Keeper:
        return checkpoint.keeper_in(str(tmp_path), lambda: "this run")

    first = keeper()
    first.save(({"w": jnp.ones(4)}, [np.ones(2)]))
    assert not first.path.exists()  # it is written now and then, not every time
    first.seconds = 0.0
    first.save(({"w": jnp.arange(4.0)}, [np.ones(2)]))
    np.testing.assert_array_equal(keeper().load(start)[0]["w"], np.arange(4.0))
    path = tmp_path / "state.npz"
    path.write_bytes(flip(path.read_bytes()))
    assert keeper().load(start) is start
    assert len(caplog.messages) == 1
    assert checkpoint.keeper_in(tmp_path, lambda: None).path is None


DATA = np.array([0.5, 1.5, 2.5])

PROGRAM = """#include part.stan
/*
#include nothing.stan
*/
data { int n; vector[n] y; }
parameters { real mu; real<lower=0> sigma; }
transformed parameters { real twice = mu * 2; }
model { y ~ normal(mu, sigma); }
generated quantities { vector[n] log_lik = rep_vector(0, n); real other = 1; }
"""


def model(noise: float = 1.0) -> None:
    mu = numpyro.sample("mu", dist.Normal())
    numpyro.deterministic("twice", 2 * mu)
    numpyro.deterministic("y_hat", mu)
    numpyro.factor("no_data", -(mu**2))
    numpyro.sample("y", dist.Normal(mu, noise), obs=DATA)


@pytest.mark.stan
def test_a_stan_program_tells_its_text_and_kinds(tmp_path):
    (tmp_path / "part.stan").write_text("functions { real f(real x) { return x; } }\n")
    (tmp_path / "whole.stan").write_text(PROGRAM)
    origin = origin_of(stan_program(tmp_path / "whole.stan", {"n": 3, "y": DATA}), "stan")
    attributes = origin.attributes(["mu", "sigma", "twice", "log_lik", "other"])
    assert attributes["kinds"] == {
        "mu": "parameter",
        "sigma": "parameter",
        "twice": "transformed",
        "log_lik": "generated",
        "other": "generated",
    }
    assert attributes["program_name"] == "whole.stan"
    assert "// part.stan begins\nfunctions { real f" in attributes["program"]
    assert "#include nothing.stan" in attributes["program"]  # within a comment
    assert attributes["program"].endswith(PROGRAM.split("stan\n", 1)[1])
    assert attributes["data_sha256"] == data_sha256({"y": DATA.tolist(), "n": 3.0})


@pytest.mark.parametrize(
    "other",
    [
        {"y": DATA + 1e-12, "n": 3},
        {"y": DATA[:, None], "n": 3},
        {"z": DATA, "n": 3},
        {"y": DATA},
        {"y": DATA, "n": {"n": 3}},
    ],
)
def test_other_data_have_another_hash(other):
    given = data_sha256({"n": 3, "y": DATA})
    assert given == data_sha256({"y": list(DATA), "n": np.float32(3)})
    assert given != data_sha256(other)
    assert data_sha256({}) == ""
    assert json.dumps(given)


def test_versions_name_cmdstan_and_stand_without(monkeypatch):
    monkeypatch.setattr(
        posterior, "existing_cmdstan", lambda: Home(Path("/a"), (2, 37, 1), "conda")
    )
    assert versions()["stan"] == "2.37.1"
    assert {"python", "onebasin", "jax", "numpyro", "cmdstanpy", "arviz", "numpy"} < set(versions())

    def misled() -> None:
        raise CmdStanNotFound("`/nowhere` (CMDSTAN) is not a directory.")

    for find in (lambda: None, misled):
        monkeypatch.setattr(posterior, "existing_cmdstan", find)
        assert "stan" not in versions()

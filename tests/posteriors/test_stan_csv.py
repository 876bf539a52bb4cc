"""Tests of reading CmdStan's CSV files, and of rejecting invalid ones."""

import json

import numpy as np
import pytest

from onebasin.base.errors import PosteriorFileError
from onebasin.posteriors.open import open_posterior

from . import chains
from .chains import refusal


def test_chains_become_arrays_under_arviz_names(tmp_path):
    tree = open_posterior(chains.write(tmp_path))
    assert dict(tree.posterior.sizes) == {"chain": 4, "draw": 40, "mu_dim_0": 2}
    for number in range(4):
        table = chains.numbers(number + 1, 40)
        np.testing.assert_array_equal(tree.posterior.mu.values[number], table[:, 7:9])
        np.testing.assert_array_equal(tree.posterior.sigma.values[number], table[:, 9])
        np.testing.assert_array_equal(tree.sample_stats.lp.values[number], table[:, 0])
    stats = tree.sample_stats
    assert (stats.diverging.dtype, stats.tree_depth.dtype) == (np.dtype(bool), np.dtype(np.int64))
    assert stats.diverging.values.any()
    names = "lp acceptance_rate step_size tree_depth n_steps diverging energy"
    assert set(stats.data_vars) == set(names.split())


def test_comments_become_attributes(tmp_path):
    said = open_posterior(chains.write(tmp_path, chains=2)).attrs
    settings = json.loads(said.pop("settings"))
    run = {"chains": 2, "draws": 40, "warmup": 10, "thin": 1, "metric": "diag_e", "step_size": 1.0}
    assert settings == run | {"target_acceptance": 0.9, "max_tree_depth": 9}
    of = {"target": "mix", "program_name": "mix", "engine": "stan", "method": "nuts", "seed": 7}
    of |= {"max_tree_depth": 9, "versions": '{"stan": "2.39.0"}'}
    of |= {"created_at": "2026-01-31T12:00:00+00:00", "warmup_seconds": "[0.25, 0.25]"}
    assert said == of | {"sampling_seconds": "[0.5, 0.5]"}


def test_rows_of_warmup_are_left_out(tmp_path):
    tree = open_posterior(chains.write(tmp_path, keep_warmup=True))
    assert tree.posterior.sizes["draw"] == 40
    table = chains.numbers(2, 50)[10:]
    np.testing.assert_array_equal(tree.posterior.sigma.values[1], table[:, 9])
    path = tmp_path / "run.csv"  # A run without adaptation.
    path.write_text(chains.text(keep_warmup=True).replace("# Adaptation terminated\n", ""))
    assert open_posterior(path).posterior.sizes["draw"] == 40


def _text(method: str, columns: str, table: np.ndarray) -> str:
    said = f"# stan_version_major = 2\n# model = m_model\n# method = {method}\n"
    return said + columns + "\n" + "".join(chains.lines(table))


def test_files_of_other_methods(tmp_path, rng):
    table = rng.normal(size=(9, 4))
    path = tmp_path / "run.csv"
    path.write_text(_text("variational\n# algorithm = meanfield", "lp__,log_p__,log_g__,x", table))
    tree = open_posterior(path)
    assert tree.attrs["method"] == "advi-meanfield"
    np.testing.assert_array_equal(tree.posterior.x.values[0], table[1:, 3])  # Row 0 is the mean.
    np.testing.assert_array_equal(tree.sample_stats.lp.values[0], table[1:, 1])
    np.testing.assert_array_equal(tree.sample_stats.log_q.values[0], table[1:, 2])
    path.write_text(_text("pathfinder", "lp_approx__,lp__,path__,x", table))
    np.testing.assert_array_equal(open_posterior(path).sample_stats.log_q.values[0], table[:, 0])
    path.write_text(_text("laplace", "log_p__,log_q__,x,y", table))
    assert set(open_posterior(path).sample_stats.data_vars) == {"lp", "log_q"}
    path.write_text(_text("sample\n# algorithm = fixed_param", "lp__,accept_stat__,x,y", table))
    assert open_posterior(path).attrs["method"] == "fixed-param"
    path.write_text(_text("generate_quantities", "x,y,z.1,z.2", table))
    tree = open_posterior(path)
    assert (list(tree.children), tree.posterior.z.shape) == (["posterior"], (1, 9, 2))


def test_a_table_without_comments_is_read(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text('"mu[1]","mu[2]"\n1,2\n3,nan\n5,-inf\n7,8')
    tree = open_posterior(path)
    np.testing.assert_array_equal(tree.posterior.mu[0], [[1, 2], [3, np.nan], [5, -np.inf], [7, 8]])
    assert tree.attrs == {}


WHOLE = chains.text()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "has no draws"),
        ("# method = sample\n", "has no draws"),
        (WHOLE.split("\n# Adaptation")[0] + "\n", "has no draws"),
        (WHOLE[: len(WHOLE) // 2], "of the 40 expected draws"),
        (WHOLE[: WHOLE.index("# \n#  Elapsed") - 30], "is truncated"),
        (WHOLE[: WHOLE.index("# \n#  Elapsed") - 3], "is truncated"),
        (WHOLE.replace("method = sample", "method = optimize"), "the file contains an optimum"),
        (WHOLE.replace("mu.1,mu.2", "mu.1,mu.1"), "two columns named 'mu.1'"),
        (WHOLE.replace("sigma", "draw"), "which is the name of an axis"),
        (WHOLE.replace("sigma", ".."), "which no file can store"),
        ("name,Mean\nmu,0.5\n", "has 'mu' in row 1, which is not a number"),
        ("a,b\n1,2\n3\n4,5\n", "has 1 field(s) in row 2, although"),
        ("lp__,energy__\n1,2\n", "contains only statistics of the sampler"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, content, says):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    message = refusal(path)
    assert says in message
    assert str(path) in message


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (chains.text(2, model="other"), "has the model other"),
        (chains.text(2, names="mu.1,mu.2,tau"), "has no column sigma"),
        (chains.text(2, names="mu.1,mu.2,sigma,tau"), "has a column tau"),
        (chains.text(2, draws=30), "has fewer draws than"),
        (chains.text(2).replace("engine = nuts", "engine = static"), "has the method hmc"),
        (chains.text(1), "has the same draws as"),
    ],
)
def test_files_that_are_not_chains_of_one_posterior_are_refused(tmp_path, other, says):
    first, second = tmp_path / "a_1.csv", tmp_path / "a_2.csv"
    first.write_text(chains.text(1))
    second.write_text(other)
    message = refusal(first, second)
    assert says in message
    assert str(second) in message


def test_a_file_that_is_given_twice_or_is_no_chain_is_refused(tmp_path):
    first, second = chains.write(tmp_path, chains=2)
    assert "is given twice" in refusal(first, second, first)
    (tmp_path / "run.nc").write_bytes(b"")
    with pytest.raises(PosteriorFileError, match=r"run\.nc is not a readable NetCDF file"):
        open_posterior([first, tmp_path / "run.nc"])
    assert "does not exist" in refusal(first, tmp_path / "absent.csv")


def test_a_folder_and_a_pattern_stand_for_their_files(tmp_path):
    whole = open_posterior(chains.write(tmp_path, chains=11, draws=5))
    assert open_posterior(tmp_path).identical(whole)
    assert open_posterior(tmp_path / "chain_*.csv").identical(whole)  # Chain 10 follows chain 9.
    assert "is a pattern that no file matches" in refusal(tmp_path / "other_*.csv")
    (tmp_path / "empty").mkdir()
    assert "not a Zarr store and contains no CSV files" in refusal(tmp_path / "empty")

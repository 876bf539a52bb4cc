"""What a Stan program computes of its own, in the groups that ArviZ has for it."""

import numpy as np

import onebasin as ob
from onebasin.inference.runs.origin import Origin
from onebasin.inference.runs.posterior import build
from onebasin.posteriors.view import GENERATED, TRANSFORMED

KINDS = {"lprior": TRANSFORMED, "log_lik": GENERATED, "y_rep": GENERATED, "y_hat": GENERATED}
SHAPES = {"mu": (2,), "lprior": (), "log_lik": (3,), "y_rep": (3,), "y_hat": (3,)}


def posterior(tmp_path, **how):
    path = tmp_path / "any.stan"
    path.write_text("")
    data = {"N": 3, "y": [1.0, 2, 3], "x": [[1.0, 2], [3, 4], [5, 6]], "pair": {"1": 0}}
    target = ob.stan_program(path, data, **how)
    rng = np.random.default_rng(1)
    draws = {name: rng.normal(size=(2, 10, *shape)) for name, shape in SHAPES.items()}
    origin = Origin(kinds=KINDS, dims=target.dims)
    return build(target, draws, {}, {"engine": "stan", "seed": 1}, origin=origin), draws


def test_quantities_go_to_their_groups(tmp_path):
    tree, draws = posterior(tmp_path)
    assert set(tree["posterior"].data_vars) == {"mu", "y_hat"}
    assert set(tree["constant_data"].data_vars) == {"N", "x"}
    for group, name, own in (
        ("log_likelihood", "y", "log_lik"),
        ("posterior_predictive", "y", "y_rep"),
        ("log_prior", "lprior", "lprior"),
    ):
        assert set(tree[group].data_vars) == {name}
        np.testing.assert_array_equal(tree[group][name], draws[own])
    np.testing.assert_array_equal(tree["observed_data"]["y"], [1, 2, 3])
    assert tree["log_likelihood"]["y"].dims[2:] == tree["observed_data"]["y"].dims == ("y_dim_0",)


def test_axes_of_quantities_are_those_of_the_data(tmp_path, caplog):
    labels = {"place": ["a", "b", "c"]}
    tree, _ = posterior(tmp_path, dims={"y_rep": ("place",)}, coords=labels)
    for group in ("log_likelihood", "posterior_predictive", "observed_data"):
        assert tree[group]["y"].dims[-1] == "place"
        assert list(tree[group]["place"].values) == ["a", "b", "c"]
    # Labels that do not fit are left out with a notice.
    tree, _ = posterior(tmp_path, dims={"mu": ("side",)}, coords={"side": ["left"]})
    assert "side" not in tree["posterior"].coords or len(tree["posterior"]["side"]) == 2
    assert "`coords` has 1 labels for side, which has length 2" in caplog.text


def test_what_a_declared_symmetry_moves_stays(tmp_path):
    block = ob.Exchangeable({"mu": 0, "log_lik": 0})
    tree, _ = posterior(tmp_path, symmetry=(block,))
    assert "log_lik" in tree["posterior"]
    assert "log_likelihood" not in tree.children
    (tmp_path / "any.stan").write_text("")  # without data
    target = ob.stan_program(tmp_path / "any.stan")
    draws = {"mu": np.zeros((1, 4))}
    tree = build(target, draws, {}, {"engine": "stan"}, origin=Origin(kinds={}))
    assert set(tree.children) == {"posterior", "sample_stats"}

"""Posteriors of other makers in our words: statistics under ArviZ's present names, groups where they now belong.

Older files call them otherwise (`treedepth`, `divergent`), and keep the log likelihood among the statistics. Nothing
is read or copied for it; what is called rightly stays as it is, and where both names are there so do both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import schema

if TYPE_CHECKING:
    import xarray as xr

_OLDER = {
    "lp__": schema.LP,
    "logp": schema.LP,
    "model_logp": schema.LP,
    "divergent": schema.DIVERGING,
    "divergent__": schema.DIVERGING,
    "divergence": schema.DIVERGING,
    "divergences": schema.DIVERGING,
    "is_divergent": schema.DIVERGING,
    "treedepth": schema.TREE_DEPTH,
    "treedepth__": schema.TREE_DEPTH,
    "depth": schema.TREE_DEPTH,
    "n_leapfrog": schema.N_STEPS,
    "n_leapfrog__": schema.N_STEPS,
    "num_steps": schema.N_STEPS,
    "num_integration_steps": schema.N_STEPS,
    "accept_stat": schema.ACCEPTANCE_RATE,
    "accept_stat__": schema.ACCEPTANCE_RATE,
    "accept_prob": schema.ACCEPTANCE_RATE,
    "mean_tree_accept": schema.ACCEPTANCE_RATE,
    "energy__": schema.ENERGY,
    "stepsize": schema.STEP_SIZE,
    "stepsize__": schema.STEP_SIZE,
}
"""Names that statistics had, have with single samplers, or have in CmdStan's files."""


def adopted(tree: xr.DataTree) -> xr.DataTree:
    """Return a posterior in our words: the tree itself where there is nothing to rename."""
    if schema.SAMPLE_STATS not in tree.children:
        return tree
    import xarray as xr

    stats = tree[schema.SAMPLE_STATS].to_dataset()
    renamed: dict[str, str] = {}
    for name in stats.data_vars:
        word = _OLDER.get(str(name))
        if word is not None and word not in stats and word not in renamed.values():
            renamed[str(name)] = word
    moves = schema.LOG_LIKELIHOOD in stats.data_vars and schema.LOG_LIKELIHOOD not in tree.children
    if not renamed and not moves:
        return tree
    groups = {name: child.to_dataset() for name, child in tree.children.items()}
    if moves:
        moved = [schema.LOG_LIKELIHOOD]
        groups[schema.LOG_LIKELIHOOD] = stats[moved].rename({schema.LOG_LIKELIHOOD: "obs"})
        used = {dim for name in stats.data_vars if name not in moved for dim in stats[name].dims}
        stats = stats.drop_dims([dim for dim in stats.dims if dim not in used])
        stats = stats.drop_vars(moved, errors="ignore")
    groups[schema.SAMPLE_STATS] = stats.rename(renamed)
    made = xr.DataTree.from_dict(groups)
    made.attrs = dict(tree.attrs)
    made.set_close(tree.close)
    return made

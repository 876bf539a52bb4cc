"""What the command line says of the groups beside the draws: arguments of `stan_program`, as options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from onebasin.base.errors import StudyError

OPTIONS = {
    "log_likelihood": "--log-likelihood",
    "posterior_predictive": "--predictive",  # help texts of 80 columns have no place for more
    "observed": "--observed",
}
"""How the arguments of `stan_program` are spelt."""

LogLikelihood = Annotated[
    list[str] | None,
    typer.Option(
        OPTIONS["log_likelihood"],
        metavar="[DATA=]NAME",
        help="The quantity of a Stan program that holds a log likelihood for each observation (of DATA). By default "
        "log_lik. Repeatable.",
    ),
]
PosteriorPredictive = Annotated[
    list[str] | None,
    typer.Option(
        OPTIONS["posterior_predictive"],
        metavar="[DATA=]NAME",
        help="The quantity of a Stan program that is predicted like the data (DATA). By default y_rep, y_pred, "
        "y_tilde or y_sim for data y. Repeatable.",
    ),
]
Observed = Annotated[
    list[str] | None,
    typer.Option(
        OPTIONS["observed"],
        metavar="DATA",
        help="Which of a Stan program's data are observed; the others are constant. By default those that the two "
        "above are of, or y. Repeatable.",
    ),
]
PredictiveMb = Annotated[
    float | None,
    typer.Option(
        metavar="MEGABYTES",
        help="What log likelihoods and predictions of a NumPyro model may take; 0 leaves them out. By default 256.",
    ),
]


@dataclass(frozen=True)
class Groups:
    """What is said of the groups; where nothing is said, `stan_program` and the methods know themselves.

    Attributes
    ----------
    roles : mapping
        Arguments of `stan_program` by name, those alone that were given.
    predictive_mb : float or None
        Limit of what is computed beside a NumPyro model's draws.
    """

    roles: Mapping[str, Any] = field(default_factory=dict)
    predictive_mb: float | None = None

    @property
    def said(self) -> dict[str, Any]:
        """All that was given, by name."""
        limit = {} if self.predictive_mb is None else {"predictive_mb": self.predictive_mb}
        return {**self.roles, **limit}


def groups_for(
    engine: str,
    *,
    log_likelihood: Sequence[str] | None,
    posterior_predictive: Sequence[str] | None,
    observed: Sequence[str] | None,
    predictive_mb: float | None,
) -> Groups:
    """Read the options of a program's or a model's groups.

    Raises
    ------
    StudyError
        If an option cannot be read, or the engine has no use for it.
    ValueError
        If `predictive_mb` is negative or not finite.
    """
    roles: dict[str, Any] = {}
    if log_likelihood:
        roles["log_likelihood"] = _by_data("log_likelihood", log_likelihood)
    if posterior_predictive:
        roles["posterior_predictive"] = _by_data("posterior_predictive", posterior_predictive)
    if observed:
        roles["observed"] = tuple(observed)
    if roles and engine == "numpyro":
        raise StudyError(
            f"`{OPTIONS[next(iter(roles))]}` is for Stan programs; of a NumPyro model, the observed sites say which "
            "data are observed and what their log likelihoods are."
        )
    if predictive_mb is not None and engine == "stan":
        raise StudyError(
            "`--predictive-mb` is for NumPyro models; what a Stan program computes itself is kept whole."
        )
    if predictive_mb is not None:
        from onebasin.base.checks import check_not_negative

        check_not_negative("predictive_mb", predictive_mb)
    return Groups(roles, predictive_mb)


def _by_data(name: str, words: Sequence[str]) -> dict[str, str]:
    """Quantities by the data that they are of; `""` where those are to be found."""
    found: dict[str, str] = {}
    for word in words:
        of, equals, quantity = word.rpartition("=")
        if not quantity or (equals and not of):
            raise StudyError(
                f"`{OPTIONS[name]}` is {word!r}; give a quantity's name, such as log_lik, or data and the quantity "
                "that is of them, such as y=log_lik."
            )
        if of in found:
            both = f"{found[of]} and {quantity}"
            raise StudyError(
                f"`{OPTIONS[name]}` is given as {both}{f' for {of}' if of else ''}; say which data each is of, such as "
                f"y={quantity}, and name all data once."
            )
        found[of] = quantity
    return found

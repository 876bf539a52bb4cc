"""The network of two weights: tables, sentences and the chapter of the page."""

from collections.abc import Callable, Iterator

import numpy as np

from onebasin.base.table import TableCell

from ...lab import Chapter, Field, Frame, Frames, Pairs, Row, RowTable, mean_and_sd, mean_of, read
from .claims import CLAIMS as CLAIMS
from .claims import beyond, gain
from .design import WORDS
from .figures import contours, over_alpha
from .measures import TOGETHER, off, relative_separation, separations

_SURE = 4.0
"""Monte Carlo errors within which a method's own account agrees with quadrature."""


def _settings(frames: Frames) -> Row:
    return read("two_weights", frames).rows[0]


def _fits(frames: Frames) -> str:
    number = _settings(frames)["fits"]
    return f"{number} fits" if number > 1 else "one fit"


def rounded(value: float) -> float:
    """Round to the four decimals that are shown, so that none is shown as minus zero."""
    return round(value, 4) + 0.0


def _by_alpha(frames: Frames) -> Iterator[Row]:
    """Cases of the fits' noise, each with the fits of every method; none where there are no fits."""
    fits, noise = read("weight_fits", frames), _settings(frames)["noise"]
    for case in read("cases", frames).where(noise=noise) if len(fits) else ():
        mine = {fit["method"]: fit for fit in fits.where(alpha=case["alpha"])}
        yield {**case, "fits": mine}


def _spread(method: str, measure: str, decimals: int, unit: str = "") -> Field:
    def value(row: Row) -> str:
        fit = row["fits"].get(method)
        return mean_and_sd(fit[measure], decimals) if fit else ""

    return Field(WORDS[method], value, unit=unit)


def _worst_account(row: Row) -> TableCell:
    found = [float(np.abs(off(fit)).max()) for fit in row["fits"].values()]
    if not found:
        return TableCell("")
    return TableCell(f"{max(found):.1f}", "good" if max(found) <= _SURE else "bad")


_ALPHA = Field("alpha", lambda row: f"{row['alpha']:g}")
_ELBOS = {"ELBO": "elbo", "symmetrised ELBO": "symmetrised_elbo"}
MSE = RowTable(
    lambda frames: (
        f"The paper's Table 2: test MSE of the mean prediction, mean ± sd over {_fits(frames)} (noise's variance "
        f"{_settings(frames)['noise'] ** 2:g}). SGM is the symmetrised mean field; InfoNCE has "
        f"K = {_settings(frames)['permutations']}"
    ),
    (
        _ALPHA,
        Field("exact posterior", lambda row: f"{row['exact']['mse']:.4f}"),
        *(_spread(method, "mse", 4) for method in WORDS),
    ),
    over=_by_alpha,
)
ELBO = RowTable(
    lambda frames: (
        "The paper's Table 3: the methods' own account of the ELBO and of the symmetrised one (its lower side), in "
        f"nats, mean ± sd over {_fits(frames)}; off: by how many Monte Carlo errors an ELBO is away from quadrature"
    ),
    (
        _ALPHA,
        Field("log evidence", lambda row: f"{row['log_evidence']:.2f}", unit="nats"),
        *(_spread(method, measure, 2, u) for method in WORDS for u, measure in _ELBOS.items()),
        Field("off", _worst_account, unit="MCSE, largest"),
    ),
    over=_by_alpha,
)


def _over_distance(value: Callable[[Row], float]) -> Callable[[Row], float]:
    """Divide by how far apart the modes are."""
    return lambda row: value(row) / (2 * row["alpha"])


_APART, _TRULY_APART = "|m1 - m2| / (2 alpha)", "mean |w1 - w2| / (2 alpha)"
DIVERGENCES = RowTable(
    lambda frames: (
        "What the paper could not give: divergences of the fits from the posterior, means over "
        f"{_fits(frames)}. MFVI is trained for KL(q || p), SGM for KL(q^G || p)"
    ),
    (
        Field("alpha, method", lambda fit: f"{fit['alpha']:g}, {fit['label']}"),
        Field("KL(q || p)", mean_of("kl"), decimals=4, unit="nats"),
        Field("KL(q^G || p)", mean_of("kl_symmetrised"), decimals=4, unit="nats"),
        Field(
            "spread",
            lambda fit: float(np.ptp(fit["kl_symmetrised"])),
            digits=2,
            unit="of KL(q^G || p) over fits",
        ),
        Field("best possible", "best", decimals=4, unit="of what is trained for"),
        Field(_APART, _over_distance(lambda fit: float(separations(fit).mean())), decimals=2),
        Field("truth", _over_distance(lambda fit: fit["truth"]), decimals=2, unit=_TRULY_APART),
        Field("log score", mean_of("log_score"), decimals=3, unit="nats, test"),
    ),
    over="weight_fits",
)


def _divergence(heading: str, name: str, measure: str, unit: str) -> Field:
    return Field(heading, lambda case: rounded(case[name][measure]), decimals=4, unit=unit)


def _log_score(name: str, unit: str) -> Field:
    return Field("log score", lambda case: case[name]["log_score"], decimals=4, unit=unit)


def _per_alpha(name: str) -> Callable[[Row], float]:
    return _over_distance(lambda case: case[name]["separation"])


def _mean_field_apart(case: Row) -> TableCell:
    together = relative_separation(case, "mfvi") < TOGETHER
    return TableCell(_per_alpha("mfvi")(case), "warn" if together else "")


_CASE = Field("noise, alpha", lambda case: f"{case['noise']:g}, {case['alpha']:g}")
OPTIMA = RowTable(
    "The best of each kind, found without chance, on the data set of the fits; a mark shows where the mean "
    "field interpolates",
    (
        _CASE,
        _divergence("KL(q || p)", "mfvi", "kl", "MFVI"),
        _divergence("KL(q^G || p)", "mfvi", "kl_symmetrised", "MFVI, symmetrised after"),
        _divergence("KL(q^G || p)", "sgm", "kl_symmetrised", "SGM"),
        Field(_APART, _mean_field_apart, decimals=2, unit="MFVI"),
        Field(_APART, _per_alpha("sgm"), decimals=2, unit="SGM"),
        Field(_TRULY_APART, _per_alpha("exact"), decimals=2, unit="truth"),
        _log_score("exact", "exact"),
        _log_score("mfvi", "MFVI"),
        _log_score("sgm", "SGM"),
    ),
    over="cases",
)


def _in_noise(heading: str, value: Callable[[Row], float], unit: str) -> Field:
    """Write what is in units of the noise's variance."""
    return Field(heading, lambda case: value(case) / case["noise"] ** 2, decimals=4, unit=unit)


def _error(name: str, unit: str) -> Field:
    return _in_noise("error", lambda case: float(np.mean(case["errors"][name])), unit)


def _gain(case: Row) -> TableCell:
    pairs, better = gain(case), beyond(gain(case), case["noise"])
    value = rounded(pairs.mean / case["noise"] ** 2)
    return TableCell(value, "good" if better is True else "bad" if better is False else "")


AVERAGES = RowTable(
    lambda frames: (
        "Expected squared error of the mean prediction, against the true function, over "
        f"{_settings(frames)['data_sets']} data sets, by the best of each kind, in units of the noise's variance "
        "(add 1 for the expected test MSE)"
    ),
    (
        _CASE,
        Field(
            "MFVI interpolates", lambda case: f"{case['interpolates']:.0%}", unit="of the data sets"
        ),
        _error("exact", "exact posterior"),
        _error("mfvi", "MFVI"),
        _error("sgm", "SGM"),
        Field("gain", _gain, decimals=4, unit="MFVI less SGM"),
        _in_noise("standard error", lambda case: gain(case).error, "of the gain"),
        Field(
            "exact less SGM",
            lambda case: rounded(
                Pairs(case["errors"]["exact"], case["errors"]["sgm"]).mean / case["noise"] ** 2
            ),
            decimals=4,
        ),
    ),
    over="cases",
)
TABLES = (MSE, ELBO, DIVERGENCES, OPTIMA, AVERAGES)


_NEAR = 0.001


def chapter(frames: Frames) -> Chapter | None:
    """Lay out the part of the page; None where the cases could not be solved."""
    if not read("cases", frames):
        return None
    settings, moved = frames["two_weights"].rows[0], max(frames["cases"].column("moved"))
    power = int(np.ceil(np.log10(max(moved, 1e-15))))
    text = (
        "f(x) = relu(w1 x) + relu(w2 x), with w1 and w2 ~ N(0, 1), is the smallest network whose units can be "
        "swapped; its posterior is known. The data follow f(x) = alpha |x|, so that (alpha, -alpha) and "
        "(-alpha, alpha) serve equally well, and lie the farther apart the larger alpha is. The text of the paper at "
        f"hand has lost its numbers; here there are {settings['num_obs']} training points with x ~ N(0, 1), noise of "
        f"standard deviation {settings['noise']:g}, and {settings['num_test']} test points. Every alpha has the same "
        "x and the same standardised errors. Methods are trained by "
        f"{settings['steps']} steps of Adam on all points at once (the paper has batches), from random starts.\n\n"
        "The posterior is found by quadrature: its log evidence moves by at most "
        f"1e{power:d} nats when the panels are halved. A Gaussian's ELBO is in "
        "closed form here, and its information a smooth integral, so that divergences from the posterior are known of "
        "every q, and the best q of each kind can be found without chance, as a yardstick of the fits. All errors of "
        "predictions against the true function are expected ones over x ~ N(0, 1)."
    )
    drawn = (contours(frames), over_alpha(frames))
    return Chapter("The smallest network with a permutation", text, TABLES, drawn)


def headline(frames: Frames) -> Iterator[str]:
    """Say the result in a few sentences."""
    cases = read("cases", frames)
    if not cases:
        return
    edges = [
        f"alpha = {edge['alpha']:.2f} with noise {edge['noise']:g}"
        for edge in read("edges", frames)
        if edge["alpha"] is not None
    ]
    if edges:
        least = min(relative_separation(case, "sgm") for case in cases)
        yield (
            f"Of the network with two weights, the best mean field lies between the modes up to {' and '.join(edges)}; "
            f"the best symmetrised one does so nowhere (its means are {least:.2f} times as far apart as the truth's "
            "weights, or more)."
        )
    fits = read("weight_fits", frames)
    worst = max(case["sgm"]["kl_symmetrised"] for case in cases)
    plain = [case["mfvi"]["kl"] for case in cases]
    exact = [max(fit["kl_symmetrised"]) for fit in fits.where(method="sgm-exact")]
    trained = f", and fits trained with the exact term are within {max(exact):.3f}" if exact else ""
    left = [case["mfvi"]["kl_symmetrised"] - case["sgm"]["kl_symmetrised"] for case in cases]
    case = cases.rows[int(np.argmax(left))]
    near = sum(value < _NEAR for value in left)
    yield (
        f"The best symmetrised approximations are within {worst:.3f} nats of the exact posterior{trained}; the best "
        f"mean fields are {min(plain):.2f} to {max(plain):.2f} nats away. Symmetrised only after training, a mean "
        f"field is up to {max(left):.2f} nats farther away than one trained for it (noise {case['noise']:g}, alpha = "
        f"{case['alpha']:g}), and by less than {_NEAR:g} in {near} of {len(left)} cases."
    )
    yield _prediction(cases)


def _prediction(cases: Frame) -> str:
    better, worse = (_moved(cases, up=up) for up in (True, False))
    if not better and not worse:
        return "Symmetrising changes no prediction by more than chance."
    said = [f"lowers the expected test MSE at {' and '.join(better)}"] if better else []
    if worse:
        it = "it" if better else "the expected test MSE"
        said.append(
            f"raises {it} at {' and '.join(worse)}, where the midpoint of the modes, which shrinks the function, is "
            "nearer to a truth that is small"
        )
    number = len(cases.rows[0]["errors"]["mfvi"])
    return f"Over {number} data sets symmetrising {' and '.join(said)}."


def _moved(cases: Frame, *, up: bool) -> list[str]:
    """Alphas, noise by noise, at which the error is surely lower (`up`) or higher."""
    found: dict[float, list[str]] = {}
    for case in cases:
        if beyond(gain(case), case["noise"]) is up:
            found.setdefault(case["noise"], []).append(f"{case['alpha']:g}")
    return [f"alpha = {', '.join(at)} with noise {noise:g}" for noise, at in found.items()]

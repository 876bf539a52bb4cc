"""The section of the page on classifiers of growing width."""

from __future__ import annotations

import numpy as np

from onebasin.analysis.report import Section

from ...lab.images import classifier, image_split
from ...lab.legacy import filled, present
from ..design import Config
from ..part import Part
from . import widths_pictures as pictures
from . import widths_tables as tables
from .widths import WidthResults, paired
from .widths_statements import statements

NAME = "widths"
TITLE = "Classifiers of growing width"


def part(config: Config, results: WidthResults) -> Part:
    """Say what follows from the fits."""
    accuracy, pairs = tables.accuracy_table(results), tables.paired_table(results)
    every = filled(accuracy, tables.elbo_table(results), pairs, tables.fit_table(results))
    return Part(
        name=NAME,
        headline=headline(results),
        section=Section(
            TITLE,
            text=_text(config),
            tables=every,
            figures=present((pictures.curves(results),)),
        ),
        statements=statements(results),
        tables=every,
        shown=filled(accuracy, pairs),
        data=results.to_dict(),
    )


def _text(config: Config) -> str:
    data, vi = image_split(config.images, config.seed), config.vi
    model = classifier(config.images, config.widths[0])
    inputs, _, classes = model.network.widths
    return (
        "Does training with the term change a classifier? Networks with one hidden layer of ReLU units, N(0, 1) "
        f"priors, {inputs} inputs and {classes} classes are conditioned on {data.train.num_obs:,} images and tried on "
        f"{data.test.num_obs:,} others ({data.train.source}); {vi.fits} seeds, {vi.steps:,} steps of Adam with "
        "local reparametrisation. Starts, batches, noise and the draws of the final report are the same for all "
        "methods, so that they are compared seed by seed. Whatever q was trained with, its symmetrised ELBO is that "
        "of one estimator: the ELBO plus an interval for the mutual information, exact for few units and by "
        "importance sampling (below) and Bethe's free energy (above) for more. Compared are lower ends.\n\n"
        "Where there is something to gain: units that are far apart earn all of log |G| without being trained for it. "
        "Units that overlap earn less, and the term pulls them apart; among them are those that mean-field VI prunes, "
        "whose q are all alike and close to the prior. Wider networks have more of them."
    )


def headline(results: WidthResults) -> tuple[str, ...]:
    """Say the result in a few sentences."""
    said = (_gains(results), _infonce(results), _prediction(results))
    return tuple(sentence for sentence in said if sentence)


def _gains(results: WidthResults) -> str:
    found = []
    for width in results.widths:
        ours, infonce = results.recommended(width), results.best_infonce(width)
        if ours and infonce:
            found.append(f"{width} units {paired(ours, infonce, 'symmetrised').write()}")
    if not found:
        return ""
    return (
        "Symmetrised ELBO of classifiers trained by the recommended estimator, less that by InfoNCE at its best K, in "
        f"nats: {'; '.join(found)}."
    )


def _infonce(results: WidthResults) -> str:
    largest = [
        abs(paired(fits, plain, "symmetrised").mean)
        for width in results.widths
        for fits in results.at(width, "infonce")
        if (plain := results.mfvi(width))
    ]
    if not largest:
        return ""
    return (
        "The mean symmetrised ELBO of fits that InfoNCE trained differs from that of plain mean-field fits by at most "
        f"{max(largest):.2f} nats at any width and K."
    )


def _prediction(results: WidthResults) -> str:
    gains = {
        name: [
            found
            for width in results.widths
            if (ours := results.recommended(width)) and (plain := results.mfvi(width))
            for found in [paired(ours, plain, name)]
        ]
        for name in ("accuracy", "log_score")
    }
    if not gains["accuracy"]:
        return ""
    num = len(gains["accuracy"])
    words = {}
    for name, found in gains.items():
        up, down = (sum(one.above is side for one in found) for side in (True, False))
        words[name] = f"rises for sure at {up} of {num} widths and falls for sure at {down}"
    means = [float(np.mean([one.mean for one in found])) for found in gains.values()]
    return (
        f"Predictions: with the recommended estimator the test accuracy {words['accuracy']} (mean change "
        f"{means[0]:+.4f}), the log score {words['log_score']} ({means[1]:+.4f} nats)."
    )

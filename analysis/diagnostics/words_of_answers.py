"""Sentences of answers: causes, labels, the three rows, the headline and remarks. `describe` fills them."""

from __future__ import annotations

from collections.abc import Mapping

from .words_of_checks import APART, OTHERS

_MOVE = (
    "Sample again from other starting points, with a longer warmup or a higher target acceptance rate; do not just "
    "leave the chain out, because it may have stopped in a region of the posterior that the others never met"
)
_NUTS = "Sample with NUTS (`--method nuts`, `ob.nuts`)"
_MODES = (
    "Keep no average over these chains: they weigh modes by where they started. Sample mode by mode: "
    "`ob.sample_modes(target)`, or `onebasin sample --method modes`, finds modes from many starts and weighs them by "
    "bridge sampling"
)

ANSWERS: Mapping[str, str | tuple[str, ...]] = {
    # Causes
    "entry not finite": (
        "`{name}` is finite in some draws and not in others, first in draw {draw} of chain {chain}[[, and {others} "
        "other entries likewise]]",
        "Find out why the model produces such draws (an overflow, a division by zero, a log of a negative number), and "
        "sample again",
    ),
    "never finite": (
        "No draw of {names:names} is finite",
        "Find out why the model produces no number: an overflow, a division by zero, or a start outside of the support",
    ),
    "lp not finite": (
        "{what} is not finite in {bad} of {draws} draws, first in draw {draw} of chain {chain}",
        "Find out why: a sampler accepts no draw without a finite log density, so the file or the model is wrong "
        "there. Sample again, or write the file again",
    ),
    "chain never moves": ("Chain {chain} never moves (`{name}`)", _MOVE),
    "chain repeats": (
        "Chain {chain} repeats {length} of its {draws} draws, from draw {first} on (`{name}`)",
        _MOVE,
    ),
    "chains narrow": (
        "{chains:chains} hardly {verb}: the variance of {names:names} is less than a thousandth of other chains' there",
        _MOVE,
    ),
    "all constant": ("Nothing moves: every draw of {names:names} is the same", _MOVE),
    "few distinct": (
        "The {draws:,} draws are only {distinct:count distinct draw} in any order, as after resampling, and are worth "
        "{worth:,.0f} independent ones",
        "Take more particles before resampling, or give the draws before it with their weights, `log_weight` in "
        "`sample_stats`. Store a parameter that takes few values as integers",
    ),
    "unread weights": (
        "`{name}` looks like weights of the draws and was not used, so that every draw counts alike",
        "Give the logarithms of the weights, up to a constant, as `log_weight` in `sample_stats` (`log_weight__` in a "
        "table), or leave `{name}` out",
    ),
    "chains overlap": (
        "{chains:chains} have about {common} of {draws} draws in common, so that they are not independent",
        "Give each chain its own seed and sample again, or leave one of them out",
    ),
    "chains equal": (
        "{chains:chains} have the same draws, so that they are one chain",
        "Give each chain its own seed and sample again, or leave the copies out",
    ),
    "funnel": (
        "where `{scale}` is {side}, `{vector}` becomes narrow (rank correlation {correlation:.2f})[[; {there} of "
        "{divergences} divergences lie in that quarter of the draws]][[; E-BFMI is {bfmi:digits 2}]][[; `{scale}` has "
        "{ess:.0f} effective draws]]",
        "Non-centre `{vector}`: sample {vector}_raw ~ normal(0, 1) and compute {vector} as its location plus {scale} "
        "times {vector}_raw; a higher target acceptance rate (0.95 or 0.99) helps less",
    ),
    "modes": (
        "[[each chain agrees with itself and not with the others (R-hat {rhat:rhat} of `{name}`; {bad} of {entries} "
        "entries)]][[{settled} in different places]]"
        f"[[; {APART.replace('below', 'lower than')}]][[; their heights are {{heights}}]]",
        _MODES,
    ),
    "integers apart": (
        "chains disagree about the whole numbers {names:names} (R-hat {rhat:rhat})",
        'If they change places, as two changepoints do, align them: `symmetry="a~b"` or `--exchangeable a~b` for '
        "`a` and `b`; else sample again, longer or from other starting points",
    ),
    "weights": (
        "{fact}",
        "Take more `draws` (and `chains`), which make the error of bridge sampling smaller, or sample more of the "
        "modes (`most`); until then use each mode by itself, by the statistic `mode`",
    ),
    "points apart": (
        "chains disagree on predictions at {bad}, or have too few effective draws there (R-hat up to {rhat:rhat}, "
        "bulk ESS down to {ess:.0f}), and agree at {good} of {count} {which}",
        "The function may have several states at these inputs, which many chains from random starts weigh best; judge "
        "your own inputs by `diagnose(posterior, x=...)`, or `onebasin diagnose --at NEW.json`",
    ),
    "too few": (
        "Chains of {draws} draws are too short to judge",
        "Draw at least {enough} times a chain, after a warmup",
    ),
    "short": (
        "[[chains disagree with their own halves as they do with one another (R-hat {rhat:rhat} of `{worst}`); ]]"
        "`{name}` has {ess:.0f} effective draws of {draws}[[, and {needed:.0f} are needed]]",
        "Draw about {times} times as many, with a longer warmup, or reparametrise what mixes slowly",
    ),
    "ridge": (
        "[[chains disagree with their own halves as they do with one another (R-hat {rhat:rhat} of `{worst}`); ]]"
        "`{name}` has {ess:.0f} effective draws of {draws}. The model identifies {combination} ({known:,.0f} effective "
        "draws, a standard deviation {narrower:.0f} times smaller), and hardly {names:names} alone",
        "Use {combination}, or make it a parameter in place of one of {names:names}. A constraint (one of them "
        "constant, a sum of zero) or a narrower prior removes the ridge. For single values draw about {times} times "
        "as many",
    ),
    "approximation": ("{fact}", "{advice}; until then use it only for starting points"),
    "fit off": (
        "[[Importance weights change its {off:plain}]][[{also} do not tell whether {unknown:names} may be used]] "
        "([[k-hat {khat:.2f}; ]]the weights are worth {worth:,.0f} of {count:,} draws)",
        "{advice}",
    ),
    "heavy weights": (
        "Pareto k-hat of the weights is {khat:digits 2}, above {limit:.2f}: a few draws decide, and the {count:,} "
        "weighted draws are worth {worth:,.0f} independent ones",
        _NUTS,
    ),
    "few worth": (
        "The {count:,} weighted draws are worth {worth:,.0f} independent ones, and {least:.0f} are needed",
        _NUTS,
    ),
    "uneven weights": (
        "The {count:,} weighted draws are worth {worth:,.0f} independent ones, {share:.0%} of them, and k-hat of the "
        "weights is {khat:digits 2}: the draws hardly reach a part of the posterior",
        _NUTS,
    ),
    "chains drift": (
        "Short chains from the draws move away, `{name}` by {move:.1f} standard errors: the posterior lies beyond the "
        "draws",
        _NUTS,
    ),
    "fits apart": (
        "The fits disagree (R-hat {rhat:rhat} of `{name}`): they lie at different optima, and the draws weigh these by "
        "the number of fits",
        f"{_NUTS}, or mode by mode (`--method modes`, `ob.sample_modes`), which weighs the optima",
    ),
    "tails of most": ("The tails of {names:names} are too heavy for these draws", _NUTS),
    "heavy tails": (
        "Do not use [[the mean and sd of {means:names}]][[{then}]][[the sd of {sds:names}]][[{also}]][[the quantiles "
        "of {ends:names}]]: these draws do not know them well enough, or short chains from them could not confirm them",
        f"{_NUTS} if you need more",
    ),
    "no khat": (
        "k-hat cannot be computed, and nothing else tells how far an approximation is from its posterior",
        "Record `lp` and `log_q` of at least {least} draws, or compare the draws with those of MCMC by `compare`",
    ),
    "optima": (
        "Members of an ensemble are optima and no draws, and no number here tells how far they are from the posterior",
        OTHERS,
    ),
    # Labels: what they do (`moves`), the cause, the row
    "labels change places": "The components of {names:names} change places",
    "labels turn": "The components of {names:names} turn into one another",
    "labels change sign": "{names:names} {verb} sign{end}",
    "labels complement": "{names:names} or 1 minus {them} cannot be told apart",
    "labels": (
        "{moves}[[: R-hat {before:rhat} as the draws came, {after:rhat} with labels aligned]][[ at every draw: "
        "alignment leaves {kept:.2f} of what it would leave of noise]]",
        "{remedy}",
    ),
    "labels with others": (
        "{moves}. {why} To move only some of these parameters would leave the posterior, so nothing was aligned",
        "{advice} If other quantities that differ do not belong to the components, the chains disagree about them: "
        "sample again, longer or from other starting points",
    ),
    "use aligned": (
        "Use aligned draws: `ob.align(posterior)`, or `onebasin align`.[[ Declare them before the next run, by "
        "{options}, and they are checked on the log density.]][[ In these draws only the positions {places:plain} "
        "change places: if the others differ in the model, declare {few}]]"
    ),
    "use no labels": (
        "[[To look at the components all the same, align them by {options}. ]]Use label-free quantities, or tell "
        "the components apart in the model: an order, different priors"
    ),
    "use no rotation": (
        "Use what no rotation changes, such as L L' of loadings L; [[or declare the rotation by {options} and align by "
        "it; ]]or fix the rotation in the model: loadings with zeros above a positive diagonal"
    ),
    "use rotated": (
        "Use what no rotation changes, such as L L' of loadings L. For the components use aligned draws: "
        "`ob.align(posterior)`, or `onebasin align`; varimax chooses their rotation, not the data"
    ),
    "no equal modes": (
        "The chains' log densities differ, which labels do not explain: remove the other cause first"
    ),
    "use neither": "Alignment does not bring the chains together: remove the other cause first",
    "labels not looked at": "Labels were not looked at",
    "labels sorted": "Labels switch; alignment sorts them",
    "rotation sorted": "The components of {names:names} rotate; varimax and matching align them",
    "rotation not sorted": (
        "The components of {names:names} rotate, and alignment does not bring the chains together"
    ),
    "labels not sorted": (
        "Labels of {names:names} switch, and alignment does not bring the chains together"
    ),
    "labels unlike": (
        "Chains differ in the labels of {names:names}, and in their log densities, which labels do not explain"
    ),
    "labels in company": "Labels of {names:names} switch, with more than alignment can move",
    "labels turning": "The components of {turning:names} turn into one another, which no labels sort",
    "labels nearly": "Labels of {names:names} switch, and alignment does not keep the posterior",
    "labels overlap": "Labels of {names:names} switch, and alignment cannot tell the components apart",
    "labels stay": "All draws have one labelling of {names:names}.[[ {caveat}]]",
    "labels of one chain": (
        "No labels switch within the chain; that others would have the same cannot be seen"
    ),
    "labels open": (
        "No label switching seen; while chains disagree, components that are close, or scalars of their own, may "
        "still do"
    ),
    "labels unseen": "No label switching seen",
    "labels unjudged": "Not judged: {why}",
    "labels of a fit": "Whether labels switch is not judged: {why}",
    "no labels": "The search on the log density found no labels that could switch",
    "labels of no parameters": "There are no parameters whose labels could switch",
    # Predictions and invariants
    "lp apart": f"Log densities do not agree: R-hat of `lp` {{rhat:rhat}}[[; {APART}]]",
    "lp too slow": (
        f"Log densities are not known well enough: `lp` has {{ess:.0f}} effective draws[[; {APART}]]"
    ),
    "invariants": (
        f"Label-free quantities agree between chains (R-hat at most {{rhat:rhat}})[[; {APART}]]"
    ),
    "invariants apart": (
        f"Label-free quantities disagree between chains (R-hat up to {{rhat:rhat}}[[, `{{name}}`]])[[; {APART}]]"
    ),
    "invariants blocked": (
        "Label-free quantities agree between chains (R-hat at most {rhat:rhat}), but are not reliable until the cause "
        f"below is removed[[; {APART}]]"
    ),
    "no invariants": "Neither `lp` nor other quantities without labels are there",
    "unreliable": f"Parameters are not reliable, nor is what is computed of them[[; {APART}]]",
    "halves agree": "One chain agrees with its halves; with others it could not be compared",
    "points": (
        "Predictions can be used at {good} of {count} {which}[[, not at {bad} (R-hat up to {rhat:rhat}, bulk ESS down "
        "to {ess:.0f})]]"
    ),
    "points agree": (
        "Chains agree on predictions, with enough effective draws, at {good} of {count} {which}[[, not at {bad} "
        "(R-hat up to {rhat:rhat}, bulk ESS down to {ess:.0f})]]"
    ),
    "all agree": "Chains agree about all parameters[[ and the log density (R-hat of `lp` {lp:rhat})]]",
    "independent draws": "Independent draws need no convergence",
    "worth of weights": (
        "The {count:,} weighted draws are worth {worth:,.0f} independent ones, and [[k-hat of the weights is "
        "{khat:digits 2}]][[the weights are {even}]]"
    ),
    "weights agree": (
        "Importance weights ([[k-hat {khat:.2f}, ]]worth {worth:,.0f} of {count:,} draws) leave means, sds and "
        "quantiles as they are"
    ),
    "weights disagree": (
        "Importance weights ([[k-hat {khat:.2f}, ]]worth {worth:,.0f} of {count:,} draws) change what is named above"
    ),
    # The sampler
    "sampler sound": (
        "No divergences[[{trees}]][[; E-BFMI is at least {bfmi:digits 2}]][[; by the gradients at the draws no mean is "
        "off by more than {most_shift:.2g} standard deviations, no variance by more than {most_spread:.0%}]]"
    ),
    "sampler unjudged": "{what} could not be judged",
    "sampler unknown": "Nothing was recorded of the sampler",
    "no chain": "No Markov chain was run; the draws are independent",
    # The answer
    "do not use": "Do not use it. {why}[[ Besides, labels of {names:names} switch]]",
    "nothing to judge": "There is nothing to judge: no parameter varies",
    "usable by one chain": (
        "You may use it as far as one chain can tell: its halves agree (R-hat at most {rhat:rhat}) and there are at "
        "least {ess:,.0f} effective draws, but modes that it did not meet cannot be seen"
    ),
    "usable": (
        "You may use it: R-hat is at most {rhat:rhat}, and there are at least {ess:,.0f} effective draws"
    ),
    "tails": "Its tails are rough: `{name}` has a tail ESS of {ess:digits 0}",
    "one labelling": "All chains have one labelling of the declared symmetry",
    "nothing recorded": "{what} could not be judged, for nothing of the kind was recorded",
    "aligned": (
        "{who} once labels are aligned: {least}{names:names} {move}[[ (declare {words:names})]]. Use aligned "
        "means; R-hat falls from {before:rhat} to {after:rhat}"
    ),
    "aligned by rotation": (
        "{names:names} rotate, and label-free quantities agree between chains: use these first. Aligned means of "
        "simple structure (varimax) may be used too; R-hat falls from {before:rhat} to {after:rhat}"
    ),
    "aligned at every draw": (
        "Every R-hat is good, yet labels switch all the time: {least}{names:names} {move}[[ (declare {words:names})]], "
        "so that the mean of one component is an average over all components. Use aligned means"
    ),
    "invariant": "Use only label-free quantities: predictions, densities, sums over components. {why}",
    "parts turn": (
        "Components of {names:names} turn into one another: alignment can only sort them, not tell which is which"
    ),
    "rotation unclear": "{why}",
    "parts overlap": (
        "Components of {names:names} overlap[[ ({first} and {second} are {distance:.1f} sds apart)]]: alignment can "
        "only sort them, not tell which is which"
    ),
    "parts apart": (
        "Alignment does not bring the chains' {names:names} together, while label-free quantities agree"
    ),
    "parts nearly": (
        "Labels of {names:names} are at most nearly exchangeable: the likelihood has none, but the weights are broken "
        "off a stick, which has an order. No alignment keeps the posterior. Tell the heavy components apart by a rule "
        "of your own, such as the order of their means"
    ),
    "parts spare": (
        "Aligned draws do not tell components {first} and {second} of {names:names} apart: they overlap, or there are "
        "more components than the data need"
    ),
    "parts spare turned": (
        "Component {first} of {names:names} is like noise that alignment has sorted: there are more components than "
        "the data need. Fit one fewer"
    ),
    "parts alike": (
        "Labels of {names:names} switch, and the components overlap: alignment can only sort them, not tell which is "
        "which"
    ),
    "bias bounded": (
        "Its draws may have a bias of the step size, which agreement between chains does not show: by the gradients at "
        "the draws no mean is off by more than {most_shift:.2g} standard deviations, no variance by more than "
        "{most_spread:.0%}"
    ),
    "bias unknown": (
        "Its draws have a bias of the step size, which agreement between chains does not show"
    ),
    "usable fit": (
        "You may use it: importance weights change no mean by more than 0.1 sd, no sd by more than 10 %, and no 5 % or "
        "95 % quantile by more than 0.15 sd. They see no other mode"
    ),
    "usable resampled": (
        "You may use it: means, sds and quantiles rest on enough weighted draws. They see no other mode"
    ),
    "usable but for": "You may use what is not named here",
    "usable weights": (
        "You may use it: means, sds and quantiles rest on enough weighted draws, and short chains from these stay "
        "where they are"
    ),
    "aligned fit": (
        "You may use it once labels are aligned: its draws have several labellings of {names:names}, so that the "
        "mean of one component is an average over several. Use aligned means"
    ),
    "usable in part": "You may use the {others:plain}",
    "usable at points": (
        "You may use predictions at {good} of {count} {which}, and no single weights. Do not use predictions at {bad}"
    ),
    "bad fit": "Do not use it in the posterior's place",
    "unproved": "Not to be used in the posterior's place: {why}. {remedy}",
    "usable independent": (
        "You may use it: nothing was sampled by a Markov chain, and the {draws:,} draws are independent"
    ),
    # Next to the answer
    "one chain only": "One chain: other modes, and other labels, cannot be seen. Run four",
    "one start": (
        "All {chains} chains began at the same point: R-hat cannot show a mode that all of them miss. Give each chain "
        "its own start (`init`) to find out"
    ),
    "alike parts": (
        "`{name}[0..{last}]` have one and the same posterior: if they are labels of a mixture, their means say nothing "
        "about any one component"
    ),
    "as an ensemble": (
        "As an ensemble over modes the chains may still predict well: score them by "
        "`ob.networks.score_predictions`, and see by `ob.networks.summarise_predictions` where they agree"
    ),
    "rests not on": (
        "Not used for the verdict: {names:names} ({why})[[. R-hat is above {limit:g} for {bad} of "
        "{count:count entry}]]"
    ),
    "angles": (
        "{names:names}: an angle whose draws lie across the cut of its circle. Its mean and sd are circular, and its "
        "other numbers are of the draws within half a circle of that mean. Chains cannot cross the ends of a parameter "
        "with bounds; those of the angle of a unit vector can"
    ),
    "the same": "{names:names}: the same in every draw",
    "in no draw": "{names:names}: finite in no draw",
    "in some draws": "Finite in some draws only: {names:names}",
    "no rhat of a fit": (
        "R-hat does not apply: the draws are independent ones from an approximation, and agree however far it is from "
        "the posterior"
    ),
    "no khat of ratios": "k-hat is not defined: importance ratios are not finite",
    "restarts": (
        "Broken off and taken up again from the last draw, step size and metric, with a new random stream: {chains}"
    ),
}
"""Sentences of findings, meanings and remedies, by kind."""

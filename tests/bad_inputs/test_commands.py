"""Words of commands: mistyped, missing, out of range, contradictory; outputs that cannot be written."""

from __future__ import annotations

import numpy as np

from . import files as f
from .cases import MISUSED, Case, table

RUN = {"run.nc": f.good}
TWO = {"run.nc": f.good, "other.nc": f.other}
NETS = {"run.nc": f.of_network, "other.nc": f.of_network}
PROGRAM = {"a.stan": "parameters { real x; } model { x ~ std_normal(); }"}
SAMPLE = "sample a.stan --out run.nc"


def _misused(id: str, words: str, *says: str) -> Case:
    return Case(id, words, says, code=MISUSED)


def _option(words: str, *says: str) -> Case:
    return Case(f"sample {words}", f"{SAMPLE} {words}", says, PROGRAM)


@table(
    [
        _misused("unknown-command", "smaple", "Did you mean 'sample'?"),
        _misused("unknown-command-of-cmdstan", "cmdstan biuld", "Did you mean 'build'?"),
        _misused("cmdstan-alone", "cmdstan", "Missing command"),
        _misused("distil-is-no-command", "distil run.nc", "No such command 'distil'"),
        _misused("unknown-option", "diagnose run.nc --vra mu", "--var"),
        _misused("sample-without-anything", "sample", "PROGRAM.stan"),
        _misused("sample-without-out", "sample a.stan", "--out"),
        _misused("sample-out-without-value", "sample a.stan --out", "--out"),
        _misused("sample-too-many", "sample a.stan b.json c.json --out run.nc", "c.json"),
        _misused("diagnose-without-file", "diagnose", "RUN.nc"),
        _misused("align-without-out", "align run.nc", "--out"),
        _misused("align-without-file", "align --out b.nc", "RUN.nc"),
        _misused("compare-without-files", "compare", "RUN.nc"),
        _misused("report-without-files", "report --out page.html", "RUN.nc"),
        _misused("report-without-out", "report run.nc", "--out"),
        _misused("study-without-name", "study", "relu-teacher"),
        _misused("study-two-names", "study boston relu-teacher", "relu-teacher"),
        _misused("chains-a-word", f"{SAMPLE} --chains two", "--chains", "'two'"),
        _misused("chains-a-fraction", f"{SAMPLE} --chains 1.5", "--chains", "'1.5'"),
        _misused("chains-empty", f"{SAMPLE} --chains ''", "--chains"),
        _misused("chains-exponent", f"{SAMPLE} --chains 1e3", "--chains"),
        _misused("chains-nan", f"{SAMPLE} --chains nan", "--chains"),
        _misused("seed-a-word", f"{SAMPLE} --seed lucky", "--seed"),
        _misused("seed-a-fraction", f"{SAMPLE} --seed 0.5", "--seed"),
        _misused("acceptance-a-word", f"{SAMPLE} --target-acceptance high", "--target-acceptance"),
        _misused("tolerance-a-word", f"{SAMPLE} --method meanfield --tolerance low", "--tolerance"),
        _misused("flag-with-a-value", f"{SAMPLE} --json=yes", "--json"),
        _misused("permutations-a-word", "compare a.nc b.nc --permutations many", "--permutations"),
        _misused(
            "file-with-a-null-byte", "diagnose 'a\0b.nc'", "RUN.nc", "a name that a file can have"
        ),
        _misused("restarts-a-word", "align a.nc --out b.nc --restarts few", "--restarts"),
        _misused("jobs-a-word", "cmdstan build --jobs all", "--jobs"),
        _misused("doctor-with-a-word", "doctor now", "now"),
        _misused("clean-with-a-word", "cmdstan clean everything", "everything"),
        _misused("splits-a-word", "study boston --splits all", "--splits"),
    ]
)
def test_command_that_is_not_understood(refuse, case):
    refuse(case)


@table(
    [
        _option("--chains 0", "`--chains`", "at least 1"),
        _option("--chains -1", "`--chains`"),
        _option("--warmup 0", "`--warmup`"),
        _option("--draws 0", "`--draws`"),
        _option("--draws -5", "`--draws`"),
        _option("--seed -1", "`--seed`"),
        _option("--seed 4294967296", "`--seed`"),
        _option("--seed 99999999999999999999999", "`--seed`"),
        _option("--target-acceptance 0", "`--target-acceptance`"),
        _option("--target-acceptance 1", "`--target-acceptance`"),
        _option("--target-acceptance nan", "`--target-acceptance`"),
        _option("--target-acceptance inf", "`--target-acceptance`"),
        _option("--metric dens", "`--metric`", "Did you mean 'dense'?"),
        _option("--metric ''", "`--metric`"),
        _option("--method gibbs", "`--method`", "nuts"),
        _option("--method NUTS", "`--method`", "nuts"),
        _option("--method ''", "`--method`"),
        _option("--method ensemble", "`--method`"),
        _option("--init best", "`--init`", "optimum"),
        _option("--init-starts 5", "`--init-starts`", "--init optimum"),
        _option("--init optimum --init-starts 0", "`--init-starts`"),
        _option("--init-radius -1", "`--init-radius`"),
        _option("--init-radius nan", "`--init-radius`"),
        _option("--init-radius inf", "`--init-radius`"),
        _option("--max-tree-depth 0", "`--max-tree-depth`"),
        _option("--max-tree-depth -3", "`--max-tree-depth`"),
        _option("--trajectory-length 2", "`--trajectory-length`", "does not apply"),
        _option("--method hmc --trajectory-length 0", "`--trajectory-length`"),
        _option("--method hmc --trajectory-length nan", "`--trajectory-length`"),
        _option("--method hmc --max-tree-depth 5", "`--max-tree-depth`", "does not apply"),
        _option("--method meanfield --chains 2", "`--chains`", "does not apply"),
        _option("--method fullrank --warmup 10", "`--warmup`", "does not apply"),
        _option("--method fullrank --metric diag", "`--metric`", "does not apply"),
        _option("--method meanfield --iterations 0", "`--iterations`"),
        _option("--method meanfield --gradient-samples 0", "`--gradient-samples`"),
        _option("--method meanfield --elbo-samples -1", "`--elbo-samples`"),
        _option("--method meanfield --evaluate-every 0", "`--evaluate-every`"),
        _option("--method meanfield --tolerance 0", "`--tolerance`"),
        _option("--method meanfield --tolerance -1", "`--tolerance`"),
        _option("--method meanfield --tolerance nan", "`--tolerance`"),
        _option("--tolerance 0.1", "`--tolerance`", "does not apply"),
        _option("--exchangeable ''", "`--exchangeable`"),
        _option("--exchangeable ,", "`--exchangeable`"),
        _option("--exchangeable mu,,x", "`--exchangeable`"),
        _option("--exchangeable mu,mu", "`--exchangeable`", "twice"),
        _option("--exchangeable mu:one", "`--exchangeable`"),
        _option("--exchangeable mu:-1", "`--exchangeable`"),
        _option("--exchangeable mu:", "`--exchangeable`"),
        _option("--exchangeable :1", "`--exchangeable`"),
        _option("--exchangeable mu:0:0", "`--exchangeable`"),
        _option("--exchangeable mu:1.5", "`--exchangeable`"),
        _option("--exchangeable 'mu sigma'", "`--exchangeable`"),
        _option("--exchangeable +-", "`--exchangeable`"),
        _option("--exchangeable 1-", "`--exchangeable`"),
        _option("--exchangeable 1-theta:0", "`--exchangeable`"),
        _option("--exchangeable +-1-theta", "`--exchangeable`"),
    ]
)
def test_option_of_sample_that_is_out_of_range_or_does_not_apply(refuse, case):
    refuse(case)


@table(
    [
        Case(
            "diagnose-unknown-variable",
            "diagnose run.nc --var tau",
            ("`--var`", "tau", "sigma"),
            RUN,
        ),
        Case(
            "diagnose-two-files", "diagnose run.nc b.nc", ("`RUN.nc`", "b.nc does not exist"), RUN
        ),
        Case("diagnose-empty-variable", "diagnose run.nc --var ''", ("`--var`",), RUN),
        Case("diagnose-variables-in-one-word", "diagnose run.nc --var mu,sigma", ("`--var`",), RUN),
        Case("diagnose-entry", "diagnose run.nc --var mu[0]", ("`--var`",), RUN),
        Case(
            "diagnose-exchangeable-unknown",
            "diagnose run.nc --exchangeable mu,tau",
            ("`--exchangeable`", "tau"),
            RUN,
        ),
        Case(
            "diagnose-exchangeable-scalar",
            "diagnose run.nc --exchangeable mu,noise",
            ("`--exchangeable`", "noise"),
            RUN,
        ),
        Case(
            "diagnose-exchangeable-axis",
            "diagnose run.nc --exchangeable mu:1",
            ("`--exchangeable`", "axis 1"),
            RUN,
        ),
        Case(
            "diagnose-held-out-of-two-chains",
            "diagnose run.nc --exchangeable mu,sigma --held-out",
            ("`--held-out`", "chains"),
            RUN,
        ),
        Case("align-nothing-declared", "align run.nc --out out.nc", ("`--exchangeable`",), RUN),
        Case(
            "align-unknown-variable",
            "align run.nc --out out.nc --exchangeable mu,tau",
            ("`--exchangeable`", "tau"),
            RUN,
        ),
        Case(
            "align-axis-taken-twice",
            "align run.nc --out out.nc --exchangeable mu --exchangeable mu",
            ("`--exchangeable`",),
            RUN,
        ),
        Case(
            "align-unknown-reference",
            "align run.nc --out out.nc --exchangeable mu --reference median",
            ("`--reference`", "mean"),
            RUN,
        ),
        Case(
            "align-reference-empty",
            "align run.nc --out out.nc --exchangeable mu --reference ''",
            ("`--reference`",),
            RUN,
        ),
        Case(
            "align-reference-absent",
            "align run.nc --out out.nc --exchangeable mu --reference absent.nc",
            ("`--reference`", "absent.nc"),
            RUN,
        ),
        Case(
            "align-reference-of-another-model",
            "align run.nc --out out.nc --exchangeable mu --reference net.nc",
            ("mu",),
            RUN | {"net.nc": f.of_network},
        ),
        Case(
            "align-activations-without-network",
            "align run.nc --out out.nc --exchangeable mu --cost activations",
            ("`--cost`",),
            RUN,
        ),
        Case(
            "align-unknown-cost",
            "align run.nc --out out.nc --exchangeable mu --cost distance",
            ("`--cost`", "weights"),
            RUN,
        ),
        Case(
            "align-no-restarts",
            "align run.nc --out out.nc --exchangeable mu --restarts 0",
            ("`--restarts`",),
            RUN,
        ),
        Case(
            "align-no-sweeps",
            "align run.nc --out out.nc --exchangeable mu --max-sweeps 0",
            ("`--max-sweeps`",),
            RUN,
        ),
        Case(
            "align-negative-seed",
            "align run.nc --out out.nc --exchangeable mu --seed -1",
            ("`--seed`",),
            RUN,
        ),
        Case(
            "align-huge-seed",
            "align run.nc --out out.nc --exchangeable mu --seed 4294967296",
            ("`--seed`",),
            RUN,
        ),
        Case("compare-one-file", "compare run.nc", ("`RUN.nc`",), RUN),
        Case("compare-file-twice", "compare run.nc run.nc", ("`RUN.nc`",), RUN),
        Case(
            "compare-unknown-truth",
            "compare run.nc other.nc --truth third.nc",
            ("`--truth`", "third.nc"),
            TWO,
        ),
        Case(
            "compare-no-permutations",
            "compare run.nc other.nc --permutations 0",
            ("`--permutations`",),
            TWO,
        ),
        Case("compare-negative-seed", "compare run.nc other.nc --seed -3", ("`--seed`",), TWO),
        Case(
            "compare-unknown-variable", "compare run.nc other.nc --var tau", ("`--var`", "tau"), TWO
        ),
        Case(
            "compare-unlike-models",
            "compare run.nc net.nc",
            ("run", "net"),
            RUN | {"net.nc": f.of_network},
        ),
        Case(
            "compare-points-without-network",
            "compare run.nc other.nc --points p.npz",
            ("`--points`",),
            TWO | {"p.npz": f.points(x=np.zeros((3, 2)))},
        ),
        Case(
            "compare-points-absent", "compare run.nc other.nc --points p.npz", ("`--points`",), NETS
        ),
        Case(
            "compare-points-text",
            "compare run.nc other.nc --points p.npz",
            ("`--points`",),
            NETS | {"p.npz": "x"},
        ),
        Case(
            "compare-points-empty",
            "compare run.nc other.nc --points p.npz",
            ("`--points`",),
            NETS | {"p.npz": b""},
        ),
        Case(
            "compare-points-folder",
            "compare run.nc other.nc --points p.npz",
            ("`--points`",),
            NETS | {"p.npz": None},
        ),
        Case(
            "compare-points-without-x",
            "compare run.nc other.nc --points p.npz",
            ("`--points`",),
            NETS | {"p.npz": f.points(z=np.zeros(3))},
        ),
        Case(
            "compare-points-pickled",
            "compare run.nc other.nc --points p.npz",
            ("`--points`",),
            NETS | {"p.npz": f.points(x=np.array([{}], object))},
        ),
        Case(
            "compare-points-text-array",
            "compare run.nc other.nc --points p.npz",
            ("`x`",),
            NETS | {"p.npz": f.points(x=np.array([["a", "b"]]))},
        ),
        Case(
            "compare-points-complex",
            "compare run.nc other.nc --points p.npz",
            ("`x`",),
            NETS | {"p.npz": f.points(x=np.zeros((3, 2), complex))},
        ),
        Case(
            "compare-points-shape",
            "compare run.nc other.nc --points p.npz",
            ("`x`", "(4, 3)"),
            NETS | {"p.npz": f.points(x=np.zeros((4, 3)))},
        ),
        Case(
            "compare-points-one-axis",
            "compare run.nc other.nc --points p.npz",
            ("`x`",),
            NETS | {"p.npz": f.points(x=np.zeros(2))},
        ),
        Case(
            "compare-points-none",
            "compare run.nc other.nc --points p.npz",
            ("`x`",),
            NETS | {"p.npz": f.points(x=np.zeros((0, 2)))},
        ),
        Case(
            "compare-points-nan",
            "compare run.nc other.nc --points p.npz",
            ("`x`",),
            NETS | {"p.npz": f.points(x=np.full((3, 2), np.nan))},
        ),
        Case(
            "compare-points-y-short",
            "compare run.nc other.nc --points p.npz",
            ("`y`",),
            NETS | {"p.npz": f.points(x=np.zeros((3, 2)), y=np.zeros(2))},
        ),
        Case(
            "compare-points-y-inf",
            "compare run.nc other.nc --points p.npz",
            ("`y`",),
            NETS | {"p.npz": f.points(x=np.zeros((2, 2)), y=np.array([0, np.inf]))},
        ),
        Case("report-file-twice", "report run.nc run.nc --out page.html", ("`RUN.nc`",), RUN),
        Case("study-unknown", "study iris", ("`NAME`", "boston")),
        Case("study-unknown-engine", "study boston --engine jags", ("`--engine`", "stan")),
        Case("study-quick-and-full", "study boston --quick --full", ("`--full`",)),
        Case("study-no-chains", "study relu-teacher --chains 0", ("`--chains`",)),
        Case("study-no-draws", "study relu-teacher --draws -1", ("`--draws`",)),
        Case("study-no-warmup", "study relu-teacher --warmup 0", ("`--warmup`",)),
        Case("study-negative-seed", "study relu-teacher --seed -1", ("`--seed`",)),
        Case("study-no-splits", "study boston --splits 0", ("`--splits`",)),
        Case("study-too-many-splits", "study boston --splits 1000", ("`--splits`",)),
        Case(
            "study-splits-do-not-apply",
            "study relu-teacher --splits 3",
            ("`--splits`", "does not apply"),
        ),
        Case(
            "study-unknown-parametrisation",
            "study boston --parametrisations sorted",
            ("`--parametrisations`", "free"),
        ),
        Case(
            "study-empty-parametrisation",
            "study boston --parametrisations ''",
            ("`--parametrisations`",),
        ),
        Case(
            "study-problems-do-not-apply",
            "study boston --problems free",
            ("`--problems`", "does not apply"),
        ),
        Case(
            "study-unknown-problem", "study label-switching --problems nothing", ("`--problems`",)
        ),
        Case(
            "study-out-a-file", "study boston --out file", ("`--out`", "file"), {"file": "precious"}
        ),
        Case(
            "study-out-below-a-file", "study boston --out file/run", ("file",), {"file": "precious"}
        ),
        Case(
            "study-out-in-use",
            "study relu-teacher --out run --chains 1",
            ("`--out`", "run"),
            {"run/notes.txt": "precious"},
        ),
        Case("build-no-jobs", "cmdstan build --jobs 0", ("`--jobs`",)),
        Case("build-negative-jobs", "cmdstan build --jobs -2", ("`--jobs`",)),
    ]
)
def test_option_that_is_out_of_range_or_does_not_fit_the_files(refuse, case):
    refuse(case)


def _outputs() -> list[Case]:
    """Places where nothing can be written, for every command that writes a file."""
    writers = {
        "sample": ("sample a.stan --out {}", PROGRAM),
        "align": ("align run.nc --exchangeable mu --out {}", RUN),
        "report": ("report run.nc --out {}", RUN),
    }
    places = {
        "exists": ("there", {"there": "precious"}),
        "folder": ("there", {"there": None}),
        "folder-forced": ("there --force", {"there": None}),
        "below-a-file": ("file/there", {"file": "precious"}),
        "empty": ("''", {}),
        "dot": (".", {}),
        "name-too-long": ("x" * 300, {}),
    }
    cases = [
        Case(f"{writer}-{place}", words.format(name), ("`--out`",), files | also)
        for writer, (words, files) in writers.items()
        for place, (name, also) in places.items()
    ]
    cases += [
        Case(f"{writer}-onto-its-input", words.format(f"{source} --force"), (source,), files)
        for writer, (words, files) in writers.items()
        for source in files
    ]
    return cases


@table(_outputs())
def test_output_that_cannot_be_written(refuse, case):
    refuse(case)

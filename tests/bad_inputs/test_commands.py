"""Words of commands: mistyped, missing, out of range, contradictory; outputs that cannot be written."""

from __future__ import annotations

import numpy as np

from . import files as f
from .cases import MISUSED, Case, commands

RUN = {"run.nc": f.good}
TWO = {"run.nc": f.good, "other.nc": f.other}
NETS = {"run.nc": f.of_network, "other.nc": f.of_network}
PROGRAM = {"a.stan": "parameters { real x; } model { x ~ std_normal(); }"}
POINTS = "compare run.nc other.nc --points p.npz"


def test_command_that_is_not_understood(refuse):
    refuse(commands(MISTYPED, code=MISUSED))
    null = "diagnose 'a\0b.nc'"
    refuse([Case("null byte", null, ("RUN.nc", "a name that a file can have"), code=MISUSED)])


MISTYPED = """
smaple                                          | Did you mean 'sample'?
cmdstan biuld                                   | Did you mean 'build'?
cmdstan                                         | Missing command
distil run.nc                                   | No such command 'distil'
diagnose run.nc --vra mu                        | --var
sample                                          | PROGRAM.stan
sample a.stan --out                             | --out
sample a.stan b.json c.json --out run.nc        | c.json
diagnose                                        | RUN.nc
align --out b.nc                                | RUN.nc
compare                                         | RUN.nc
report --out page.html                          | RUN.nc
convert run.nc                                  | --out
study                                           | relu-teacher
study boston relu-teacher                       | relu-teacher
doctor now                                      | now
cmdstan clean everything                        | everything
# Values of another type
sample a.stan --out run.nc --chains two         | --chains ~ 'two'
sample a.stan --out run.nc --chains 1.5         | --chains ~ '1.5'
sample a.stan --out run.nc --chains ''          | --chains
sample a.stan --out run.nc --chains nan         | --chains
sample a.stan --out run.nc --seed 0.5           | --seed
sample a.stan --out run.nc --target-acceptance high   | --target-acceptance
sample a.stan --out run.nc --method meanfield --tolerance low   | --tolerance
sample a.stan --out run.nc --json=yes           | --json
compare a.nc b.nc --permutations many           | --permutations
align a.nc --out b.nc --restarts few            | --restarts
cmdstan build --jobs all                        | --jobs
study boston --splits all                       | --splits
"""


def test_option_of_sample_that_is_out_of_range_or_does_not_apply(refuse):
    refuse(commands(SAMPLE_OPTIONS, "sample a.stan --out run.nc ", files=PROGRAM))


SAMPLE_OPTIONS = """
--chains 0                                      | `--chains` ~ at least 1
--warmup 0                                      | `--warmup`
--draws -5                                      | `--draws`
--seed -1                                       | `--seed`
--seed 4294967296                               | `--seed`
--target-acceptance 1                           | `--target-acceptance`
--target-acceptance nan                         | `--target-acceptance`
--metric dens                                   | `--metric` ~ Did you mean 'dense'?
--method NUTS                                   | `--method` ~ nuts
--method ''                                     | `--method`
--method ensemble                               | `--method`
--init best                                     | `--init` ~ optimum
--init-starts 5                                 | `--init-starts` ~ --init optimum
--init optimum --init-starts 0                  | `--init-starts`
--init-radius inf                               | `--init-radius`
--max-tree-depth 0                              | `--max-tree-depth`
--trajectory-length 2                           | `--trajectory-length` ~ does not apply
--method hmc --trajectory-length nan            | `--trajectory-length`
--method hmc --max-tree-depth 5                 | `--max-tree-depth` ~ does not apply
--method meanfield --chains 2                   | `--chains` ~ does not apply
--method fullrank --warmup 10                   | `--warmup` ~ does not apply
--method fullrank --metric diag                 | `--metric` ~ does not apply
--method meanfield --iterations 0               | `--iterations`
--method meanfield --gradient-samples 0         | `--gradient-samples`
--method meanfield --elbo-samples -1            | `--elbo-samples`
--method meanfield --evaluate-every 0           | `--evaluate-every`
--method meanfield --tolerance 0                | `--tolerance`
--tolerance 0.1                                 | `--tolerance` ~ does not apply
# Symmetries that cannot be read
--exchangeable ''                               | `--exchangeable`
--exchangeable ,                                | `--exchangeable`
--exchangeable mu,,x                            | `--exchangeable`
--exchangeable mu,mu                            | `--exchangeable` ~ twice
--exchangeable mu:one                           | `--exchangeable`
--exchangeable mu:-1                            | `--exchangeable`
--exchangeable mu:                              | `--exchangeable`
--exchangeable :1                               | `--exchangeable`
--exchangeable mu:0:0                           | `--exchangeable`
--exchangeable mu:1.5                           | `--exchangeable`
--exchangeable 'mu sigma'                       | `--exchangeable`
--exchangeable +-                               | `--exchangeable`
--exchangeable 1-                               | `--exchangeable`
--exchangeable 1-theta:0                        | `--exchangeable`
--exchangeable +-1-theta                        | `--exchangeable`
"""


def test_option_that_is_out_of_range_or_does_not_fit_the_files(refuse):
    refuse(commands(OF_ONE_RUN, files=RUN))
    refuse(commands(OF_TWO_RUNS, files=TWO | {"net.nc": f.of_network}))
    refuse(commands(OF_NO_RUN))


OF_ONE_RUN = """
diagnose run.nc --var tau                       | `--var` ~ tau ~ sigma
diagnose run.nc b.nc                            | `RUN.nc` ~ b.nc does not exist
diagnose run.nc --var ''                        | `--var`
diagnose run.nc --var mu,tau                    | `--var` ~ tau
diagnose run.nc --var mu[0]                     | `--var`
diagnose run.nc --exchangeable mu,tau           | `--exchangeable` ~ tau
diagnose run.nc --exchangeable mu,noise         | `--exchangeable` ~ noise
diagnose run.nc --exchangeable mu:1             | `--exchangeable` ~ axis 1
diagnose run.nc --exchangeable mu,sigma --held-out   | `--held-out` ~ chains
align run.nc --out out.nc                       | `--exchangeable`
align run.nc --out out.nc --exchangeable mu,tau                        | `--exchangeable` ~ tau
align run.nc --out out.nc --exchangeable mu --exchangeable mu          | `--exchangeable`
align run.nc --out out.nc --exchangeable mu --reference median         | `--reference` ~ mean
align run.nc --out out.nc --exchangeable mu --reference ''             | `--reference`
align run.nc --out out.nc --exchangeable mu --reference absent.nc      | `--reference` ~ absent.nc
align run.nc --out out.nc --exchangeable mu --cost activations         | `--cost`
align run.nc --out out.nc --exchangeable mu --cost distance            | `--cost` ~ weights
align run.nc --out out.nc --exchangeable mu --restarts 0               | `--restarts`
align run.nc --out out.nc --exchangeable mu --max-sweeps 0             | `--max-sweeps`
align run.nc --out out.nc --exchangeable mu --seed -1                  | `--seed`
compare run.nc                                  | `RUN.nc`
compare run.nc run.nc                           | `RUN.nc`
report run.nc run.nc --out page.html            | `RUN.nc`
"""
OF_TWO_RUNS = """
align run.nc --out out.nc --exchangeable mu --reference net.nc         | mu
compare run.nc other.nc --truth third.nc        | `--truth` ~ third.nc
compare run.nc other.nc --permutations 0        | `--permutations`
compare run.nc other.nc --seed -3               | `--seed`
compare run.nc other.nc --var tau               | `--var` ~ tau
compare run.nc net.nc                           | run ~ net
"""
OF_NO_RUN = """
study iris                                      | `NAME` ~ boston
study boston --engine jags                      | `--engine` ~ stan
study boston --quick --full                     | `--full`
study relu-teacher --chains 0                   | `--chains`
study relu-teacher --draws -1                   | `--draws`
study relu-teacher --warmup 0                   | `--warmup`
study relu-teacher --seed -1                    | `--seed`
study boston --splits 0                         | `--splits`
study boston --splits 1000                      | `--splits`
study relu-teacher --splits 3                   | `--splits` ~ does not apply
study boston --parametrisations sorted          | `--parametrisations` ~ free
study boston --parametrisations ''              | `--parametrisations`
study boston --problems free                    | `--problems` ~ does not apply
study label-switching --problems nothing        | `--problems`
cmdstan build --jobs 0                          | `--jobs`
"""


def test_points_that_cannot_be_predicted_at(refuse):
    x = np.zeros((3, 2))
    given = {
        "absent": ("`--points`", {}),
        "text": ("`--points`", {"p.npz": "x"}),
        "empty": ("`--points`", {"p.npz": b""}),
        "folder": ("`--points`", {"p.npz": None}),
        "without x": ("`--points`", {"p.npz": f.points(z=np.zeros(3))}),
        "pickled": ("`--points`", {"p.npz": f.points(x=np.array([{}], object))}),
        "text array": ("`x`", {"p.npz": f.points(x=np.array([["a", "b"]]))}),
        "complex": ("`x`", {"p.npz": f.points(x=np.zeros((3, 2), complex))}),
        "shape": ("(4, 3)", {"p.npz": f.points(x=np.zeros((4, 3)))}),
        "one axis": ("`x`", {"p.npz": f.points(x=np.zeros(2))}),
        "none": ("`x`", {"p.npz": f.points(x=np.zeros((0, 2)))}),
        "nan": ("`x`", {"p.npz": f.points(x=np.full((3, 2), np.nan))}),
        "short y": ("`y`", {"p.npz": f.points(x=x, y=np.zeros(2))}),
        "infinite y": ("`y`", {"p.npz": f.points(x=x, y=np.array([0, np.inf, 0]))}),
    }
    refuse(Case(name, POINTS, (says,), NETS | files) for name, (says, files) in given.items())
    refuse([Case("no network", POINTS, ("`--points`",), TWO | {"p.npz": f.points(x=x)})])


def test_folder_that_a_study_cannot_write_to(refuse):
    refuse(
        [
            Case("a file", "study boston --out file", ("`--out`", "file"), {"file": "precious"}),
            Case("below a file", "study boston --out file/run", ("file",), {"file": "precious"}),
            Case(
                "in use",
                "study relu-teacher --out run --chains 1",
                ("`--out`", "run"),
                {"run/notes.txt": "precious"},
            ),
        ]
    )


def test_output_that_cannot_be_written(refuse):
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
    refuse(
        Case(f"{writer}-{place}", words.format(name), ("`--out`",), files | also)
        for writer, (words, files) in writers.items()
        for place, (name, also) in places.items()
    )
    refuse(
        Case(f"{writer}-onto-its-input", words.format(f"{source} --force"), (source,), files)
        for writer, (words, files) in writers.items()
        for source in files
    )

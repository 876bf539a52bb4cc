"""What the driver says, and its exit code, when it is used wrongly."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from ..bad_inputs.cases import lines
from .driver_runs import DATA

pytestmark = pytest.mark.stan

UNPARSED = "Failed to parse command arguments, cannot run model."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Input files, good and bad."""
    texts = {
        "good.json": json.dumps(DATA),
        "lacking.json": json.dumps({"y": DATA["y"]}),
        "bounds.json": json.dumps({"N": -1, "y": []}),
        "malformed.json": '{"N": 10 "y": []}',
        "theta.json": '{"theta": 2}',
        "metric.json": '{"inv_metric": [1, 1]}',
        "negative.json": '{"inv_metric": [-1]}',
        "other.csv": "lp__,phi\n0,1\n",
        "not_a_mode.csv": "theta\n0.5\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def call(program, folder: Path, arguments: str, **environment: str):
    return subprocess.run(
        [str(program.exe_file), *arguments.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment or None,
    )


def refused(program, folder: Path, arguments: str, *messages: str):
    """Run what must fail with messages, as regular expressions; returns what ended."""
    done = call(program, folder, arguments)
    assert done.returncode == 1
    for message in messages:
        assert re.search(message, done.stderr), done.stderr
    return done


UNREAD = r"""
data file=good.json                             | A method must be specified!\n
sample num_samples=-1                           | -1 is not a valid value for "num_samples"\n  Valid values: .+\n
sample num_samples=many                         | many is not a valid value for "num_samples"
sample adapt delta=1                            | 1 is not a valid value for "delta"
sample save_warmup=yes                          | yes is not a valid value for "save_warmup"
sample save_warmup=yes                          | Valid values: \[0, 1, false, true\]
method=guess                                    | guess is not a valid value for "method"\n
method=guess  | Valid values: sample, optimize, variational, diagnose, generate_quantities, pathfinder, log_prob
method=guess                                    | laplace\nA method must be specified!
sample algorithm=hmc engine=euler               | Valid values: static, nuts
output file=results/                            | A method must be specified!
sample num_threads=2                            | 2 is not a valid value for "num_threads"
sample nonsense=1                               | nonsense=1 is either mistyped or misplaced.\n
sample seed=1                                   | seed=1 is either mistyped or misplaced\.\nPerhaps you meant one
sample seed=1                                   | of the following valid configurations\?\n  random seed=<
sample id=1 id=2                                | id=2 is either mistyped or misplaced.
sample sample                                   | sample is either mistyped or misplaced.
"""


@pytest.mark.parametrize(("arguments", "messages"), lines(UNREAD))
def test_arguments_that_cannot_be_read(bernoulli, folder, arguments, messages):
    done = refused(bernoulli, folder, arguments, *messages)
    assert done.stderr.endswith(UNPARSED + "\n")


FAILING = r"""
sample data file=none.json                        | Can't open specified file, "none.json"\n ~ (?m)^E[rx]
sample data file=malformed.json                   | Missing a comma or '}' ~ (?m)^E[rx]
sample data file=lacking.json                     | Exception: variable does not exist; .* name=N;
sample data file=bounds.json                      | Exception: .*N is -1, but must be greater than
sample GOOD init=none.json                        | Can't open specified file
sample GOOD init=theta.json                       | Initialization failed
sample num_warmup=0 GOOD                          | \(num_warmup\) must be greater than zero if adaptation is enabled
sample adapt engaged=0 save_metric=1 GOOD         | only be enabled when
sample num_chains=2 algorithm=hmc engine=static GOOD  | Argument 'num_chains' is unavailable for the 'static' HMC
sample algorithm=hmc metric_file=metric.json GOOD  | (?s)get inverse Euclidean metric from.*Initialization failure
sample algorithm=hmc metric_file=negative.json GOOD  | (?s)not positive definite.*Initialization failure
sample num_chains=2 init=inits.json GOOD          | Searching for  "inits_1.json"
sample GOOD output file=no/such/place.csv         | Error: cannot write output
sample output file=results/                       | Ill-formed output filename results/
log_prob GOOD                                     | exactly one of unconstrained_params
log_prob constrained_params=other.csv GOOD        | Mismatch between model
log_prob constrained_params=theta.json GOOD  | (?s)Exception.*Bad or missing parameter values, cannot unconstrain.
log_prob constrained_params=other.csv GOOD output file=other.csv  | Filename conflict
laplace GOOD                                      | Missing mode argument
laplace mode=not_a_mode.csv GOOD                  | not output from Stan optimization
generate_quantities GOOD                          | Missing fitted_params argument
generate_quantities fitted_params=x.txt GOOD      | must be a CSV file
"""


@pytest.mark.parametrize(("arguments", "messages"), lines(FAILING))
def test_runs_that_cannot_succeed(bernoulli, folder, arguments, messages):
    refused(bernoulli, folder, arguments.replace("GOOD", "data file=good.json"), *messages)


def test_initial_values_that_all_fail(compiled, folder):
    done = call(compiled("hopeless"), folder, "sample")
    assert done.returncode == 1
    assert done.stdout.count("Rejecting initial value:") == 100
    assert "Initialization between (-2, 2) failed after 100 attempts." in done.stderr


@pytest.mark.parametrize("arguments", ["help", "help-all", "info", "sample help"])
def test_questions_are_answered(bernoulli, folder, arguments):
    done = call(bernoulli, folder, arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    bare = call(bernoulli, folder, "")
    assert (bare.returncode, bare.stderr) == (1, "")
    assert bare.stdout.startswith("Usage: ")


def test_settings_are_printed_before_the_data_is_read(bernoulli, folder):
    done = call(bernoulli, folder, "id=2 sample data file=malformed.json random seed=3")
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "method = sample (Default)",
        "  sample",
        "    num_samples = 1000 (Default)",
    ]
    assert "id = 2" in lines
    assert "  seed = 3" in lines
    assert "        metric_file =  (Default)" in lines


def test_the_last_of_repeated_arguments_wins(bernoulli, folder):
    arguments = (
        "sample num_samples=10 num_samples=20 adapt delta=0.9 num_warmup=30 data file=good.json"
    )
    done = call(bernoulli, folder, arguments)
    assert done.returncode == 0
    assert {"    num_samples = 20", "    num_warmup = 30", "      delta = 0.9"} <= set(
        done.stdout.splitlines()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "variable", "message"),
    [
        ("num_threads=3", "2", "STAN_NUM_THREADS= 2 but argument num_threads= 3."),
        ("num_threads=1", "2", "STAN_NUM_THREADS= 2 but argument num_threads= 1."),
        ("", "abc", "must be a positive number or -1"),
    ],
)
def test_thread_counts_that_disagree(compiled, folder, arguments, variable, message):
    threaded = compiled("bernoulli", STAN_THREADS="TRUE")
    done = call(
        threaded, folder, f"sample data file=good.json {arguments}", STAN_NUM_THREADS=variable
    )
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    ("choice", "line"),
    [
        ("variational algorithm=meanfield", "      meanfield"),
        ("variational algorithm=fullrank", "      fullrank"),
        ("optimize algorithm=newton", "      newton"),
    ],
)
def test_choices_without_settings_have_a_line_of_their_own(bernoulli, folder, choice, line):
    """As CmdStan 2.37 lists them; kernels' metrics and fixed_param have none."""
    lines = call(bernoulli, folder, f"data file=lacking.json method={choice}").stdout.splitlines()
    name = line.strip()
    assert lines[lines.index(line) - 1].startswith(f"    algorithm = {name}")

"""What the driver says, and its exit code, when it is used wrongly."""

import json
import re
from pathlib import Path

import pytest

from ..bad_inputs.cases import lines
from .driver_runs import DATA, call

pytestmark = pytest.mark.stan


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


FAILING = r"""
sample num_samples=many                           | many is not a valid value for "num_samples"\n  Valid values
sample seed=1                                     | seed=1 is either mistyped or misplaced\.\nPerhaps you meant
sample id=1 id=2                                  | id=2 is either mistyped or misplaced.
sample data file=none.json                        | Can't open specified file, "none.json"\n ~ (?m)^E[rx]
sample data file=malformed.json                   | Missing a comma or '}' ~ (?m)^E[rx]
sample data file=lacking.json                     | Exception: variable does not exist; .* name=N;
sample data file=bounds.json                      | Exception: .*N is -1, but must be greater than
sample GOOD init=theta.json                       | Initialization failed
sample num_warmup=0 GOOD                          | \(num_warmup\) must be greater than zero if adaptation is enabled
sample algorithm=hmc metric_file=metric.json GOOD  | (?s)get inverse Euclidean metric from.*Initialization failure
sample algorithm=hmc metric_file=negative.json GOOD  | (?s)not positive definite.*Initialization failure
sample num_chains=2 init=inits.json GOOD          | Searching for  "inits_1.json"
sample GOOD output file=no/such/place.csv         | Error: cannot write output
log_prob constrained_params=other.csv GOOD        | Mismatch between model
log_prob constrained_params=other.csv GOOD output file=other.csv  | Filename conflict
laplace mode=not_a_mode.csv GOOD                  | not output from Stan optimization
generate_quantities GOOD                          | Missing fitted_params argument
"""


@pytest.mark.parametrize(("arguments", "messages"), lines(FAILING))
def test_runs_that_cannot_succeed(bernoulli, folder, arguments, messages):
    done = call(bernoulli, folder, arguments.replace("GOOD", "data file=good.json"))
    assert done.returncode == 1
    for message in messages:
        assert re.search(message, done.stderr), done.stderr


def test_initial_values_that_all_fail(compiled, folder):
    done = call(compiled("hopeless"), folder, "sample")
    assert done.returncode == 1
    assert done.stdout.count("Rejecting initial value:") == 100
    assert "Initialization between (-2, 2) failed after 100 attempts." in done.stderr

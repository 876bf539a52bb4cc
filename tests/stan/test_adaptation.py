"""What a warmup came to, as CmdStan writes it in the comments of a CSV file."""

import json

import numpy as np

from onebasin.stan.output import Adaptation, read_adaptation

from ..each import each

HEAD = ("method = sample (Default)", "Adaptation terminated", "Step size = 0.872")
DIAGONAL = (*HEAD, "Diagonal elements of inverse mass matrix:", "0.5, 1.25e-05", "")
DENSE = (*HEAD, "Elements of inverse mass matrix:", "1, 0.5", "0.5, 2", "", "Elapsed Time: 0.1")
UNIT = (*HEAD, "No free parameters for unit metric", "")


@each(
    ("comments", "metric"),
    [(DIAGONAL, [0.5, 1.25e-5]), (DENSE, [[1, 0.5], [0.5, 2]]), (UNIT, [])],
    ids=["diag", "dense", "unit"],
)
def test_a_metric_is_read_and_written(tmp_path, comments, metric):
    found = read_adaptation(comments, 0.87212345)
    assert found.step_size == 0.87212345
    np.testing.assert_array_equal(found.inverse_metric, metric)
    path = found.write(tmp_path)
    if metric:
        assert json.loads(path.read_text()) == {"inv_metric": metric}
    else:
        assert path is None


def test_a_warmup_that_has_not_ended_came_to_nothing():
    assert read_adaptation(HEAD[:1], 1.0) is None


def test_an_adaptation_of_one_parameter_has_one_axis():
    found = read_adaptation((*HEAD, "Diagonal elements of inverse mass matrix:", "0.5"), 1.0)
    assert found.inverse_metric.shape == (1,)
    assert isinstance(found, Adaptation)

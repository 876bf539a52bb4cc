"""What the study of permutation-invariant VI says of nearest copies."""

from onebasin.models import BayesianNetwork, Categorical, Network
from onebasin.models.symmetry.blocks import Exchangeable
from onebasin.studies.lab.frame import Frame
from onebasin.studies.permutation_invariant_vi.classifiers.measures import nearest_row
from onebasin.studies.permutation_invariant_vi.classifiers.nearness import CLAIMS, text
from onebasin.truth.proximity import least_useful_width, nearest, theorem_bound


def test_proximity_claims_follow_the_distances(rng):
    block = Exchangeable({"W1": 1, "b1": 0, "W2": 0})
    common, rows = {"unit_size": 6, "threshold": 2.26}, []
    for width in (4, 16):
        model = BayesianNetwork(Network(3, (width,), 2, "relu"), Categorical())
        values = {n: rng.standard_normal((10, *s)) for n, s in model.network.shapes.items()}
        rows.append(nearest_row("prior", width, nearest(values, block)))
    frames = {"classifiers": Frame.of([common]), "nearest": Frame.of(rows)}
    assert [claim.on(frames).verdict for claim in CLAIMS] == ["reproduces", "reproduces"]
    assert f"from 2^{least_useful_width(6):.0f} units on" in text(common)
    bound = theorem_bound(16, 6) * 1.01
    rows[1] |= {"distance": bound, "largest": bound}
    frames |= {"nearest": Frame.of(rows)}
    verdicts = [claim.on(frames).verdict for claim in CLAIMS]
    assert verdicts == ["does not reproduce", "does not reproduce"]

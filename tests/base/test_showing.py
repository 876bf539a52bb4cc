"""What targets and networks show of themselves: in a line, and as a card."""

import onebasin as ob

from ..cards import check_page

TANH = ob.networks.BayesianNetwork(
    ob.networks.Network(2, (10,), activation="tanh"), prior=ob.networks.NormalPrior((2.0, 0.5), 1.0)
)
NAMES = ("BayesianNetwork", "Network", "NormalPrior")


def test_a_network_shows_what_is_inferred_and_how_many_copies_a_mode_has():
    page = TANH._repr_html_()
    check_page(page)
    for part in ("2-10-1 (tanh)", "<code>W1</code>", "3.7 × 10^9"):  # 10! 2^10
        assert part in page
    assert eval(repr(TANH), {n: getattr(ob.networks, n) for n in NAMES}) == TANH


def test_a_target_of_stan_shows_the_file_and_its_data(tmp_path):
    path = tmp_path / "mix<b>.stan"
    path.write_text("parameters { vector[2] mu; }")
    many = {f"x{i}": i for i in range(20)}
    target = ob.stan_program(path, many, symmetry=(ob.Exchangeable({"mu": 0}),))
    page = target._repr_html_()
    check_page(page)
    assert "mix&lt;b&gt;.stan" in page
    assert "<code>x11</code> = 11 and 8 more" in page
    assert str(tmp_path) not in repr(target.stan_program)

"""What targets and networks show of themselves: in a line, and as a card."""

import numpy as np

import onebasin as ob
from onebasin.models.symmetry.group import copies, in_words

from ..cards import check_page
from ..each import each

TANH = ob.networks.BayesianNetwork(
    ob.networks.Network(2, (10,), activation="tanh"), prior=ob.networks.NormalPrior((2.0, 0.5), 1.0)
)
X, Y = np.zeros((5, 2)), np.zeros(5)


def test_a_network_is_shown_as_the_call_that_makes_it():
    assert repr(ob.networks.Network(2, (10,))) == "Network(2, (10,))"
    assert repr(TANH) == (
        "BayesianNetwork(Network(2, (10,), activation='tanh'), "
        "prior=NormalPrior(weight_scale=(2.0, 0.5)))"
    )
    names = {
        name: getattr(ob.networks, name) for name in ("BayesianNetwork", "Network", "NormalPrior")
    }
    assert eval(repr(TANH), names) == TANH


def test_a_network_shows_what_is_inferred_and_how_many_copies_a_mode_has():
    page = TANH._repr_html_()
    check_page(page)
    for part in (
        "2-10-1 (tanh)",
        "42: <code>W1</code>, <code>b1</code>, <code>W2</code>, <code>b2</code>, <code>sigma</code>",
        "weights normal, sd 2, 0.5",
        "permutations of W1, b1, W2 with changes of sign",
        "about 3.7 × 10^9 equal copies of every mode",  # 10! 2^10
    ):
        assert part in page


def test_a_conditioned_network_shows_its_data_and_no_numbers_of_them():
    target = TANH.condition(X, Y, name="toy")
    assert repr(target) == (
        "<NetworkTarget 'toy': network 2-10-1 (tanh), modulo permutations of W1, b1, W2 with "
        "changes of sign of W1, b1, W2>"
    )
    page = target._repr_html_()
    check_page(page)
    assert "NumPyro and Stan" in page
    assert "<code>x</code> (5, 2), <code>y</code> (5, 1)" in page
    assert page.count(">symmetry</th>") == 1


def test_a_classifier_says_its_classes():
    model = ob.networks.BayesianNetwork(ob.networks.Network(2, (3,), 4), ob.networks.Categorical())
    page = model._repr_html_()
    assert "categorical, 4 classes" in page
    assert "sigma" not in page
    assert "6 equal copies of every mode" in page  # 3!; rescaling makes none


def test_a_target_of_numpyro_shows_its_data_and_what_to_do_without_a_symmetry():
    def coins(y, n):
        pass

    target = ob.numpyro_model(coins, {"y": [1, 0, 1], "n": 3})
    assert repr(target) == "<NumpyroTarget 'coins': NumPyro model>"
    page = target._repr_html_()
    check_page(page)
    assert "<code>y</code> (3), <code>n</code> = 3" in page
    assert "none is declared; <code>ob.diagnose</code> looks for" in page


def test_a_target_of_stan_shows_the_file_and_its_data(tmp_path):
    path = tmp_path / "mix<b>.stan"
    path.write_text("parameters { vector[2] mu; }")
    many = {f"x{i}": i for i in range(20)}
    target = ob.stan_program(path, many, symmetry=(ob.Exchangeable({"mu": 0}),))
    assert repr(target) == (
        "<Target 'mix<b>': Stan program mix<b>.stan, modulo permutations of mu>"
    )
    page = target._repr_html_()
    check_page(page)
    assert "mix&lt;b&gt;.stan" in page
    assert "<code>x11</code> = 11 and 8 more" in page
    assert str(tmp_path) not in repr(target.stan_program)


@each(
    ("symmetry", "shapes", "words", "text"),
    [
        ((), {}, "", ""),
        (
            (ob.Exchangeable({"mu": 0}, flips=True),),
            {"mu": (3,)},
            "permutations of mu with changes of sign of mu",
            "48 equal copies of every mode",
        ),
        ((ob.Complement(("p",)),), {"p": ()}, "complements of p", "2 equal copies of every mode"),
        (
            (ob.Exchangeable({"mu": 0}),),
            {"mu": (12,)},
            "permutations of mu",
            "about 4.8 × 10^8 equal copies of every mode",
        ),
    ],
)
def test_a_symmetry_is_told_with_the_copies_it_makes(symmetry, shapes, words, text):
    assert in_words(symmetry) == words
    assert copies(symmetry, shapes) == text


def test_a_data_set_shows_what_it_is_of_and_no_numbers():
    data = ob.networks.load_data("relu-teacher")
    check_page(data._repr_html_())
    text = " ".join(repr(data).split())
    assert text.startswith(
        "Data set relu-teacher 100 observations for regression, in units of the data"
    )
    for part in ("`x1`, `x2`", "in `.held_out`", "`.truth(x)`", data.source[:40]):
        assert part in text
    many = ob.networks.load_data("digits")
    assert "64: " in repr(many)
    assert "and 52 more" in " ".join(repr(many).split())
    assert "array(" not in repr(many)


def test_trained_networks_show_where_they_ended():
    target = TANH.condition(X, Y)
    start = {name: np.zeros((3, *shape)) for name, shape in TANH.network.shapes.items()}
    start["sigma"] = np.ones(3)
    done = ob.networks.train(target, start, ob.networks.Train(epochs=2))
    check_page(done._repr_html_())
    text = " ".join(repr(done).split())
    assert text.startswith("3 trained networks After 2 gradient steps each; member 0 ends highest.")
    assert "`W1` (3, 2, 10)" in text

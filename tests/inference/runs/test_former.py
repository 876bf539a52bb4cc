"""Names and arguments of version 0.3, for one release: delete this file with `inference.runs.former`."""

import numpyro
import pytest
from numpyro.distributions import Normal

import onebasin as ob
from onebasin import inference
from onebasin.inference.runs import former

TARGET = ob.Target("normal", numpyro_model=lambda: numpyro.sample("x", Normal(0, 1)))


@pytest.mark.parametrize("name", former.CLASSES)
def test_a_former_name_is_the_class_of_now_and_says_so(name, caplog):
    former._say.cache_clear()
    new = former.CLASSES[name].rpartition(":")[2]
    for room in (ob, inference):
        assert getattr(room, name) is getattr(inference, new)
    shown = f"networks.{new}" if hasattr(ob.networks, new) else new
    assert caplog.messages == [f"`{name}` is now `{shown}`; the old name goes with version 0.5"]


def test_names_that_moved_to_a_module_are_found_and_say_so_once(caplog):
    ob._former.cache_clear()
    moved = {name: module for module, names in ob._MOVED.items() for name in names.split()}
    for name, module in moved.items():
        assert name not in dir(ob)
        for _ in range(2):
            assert getattr(ob, name) is getattr(getattr(ob, module), name)
    assert caplog.messages == [
        f"`{name}` is now `{module}.{name}`; the old name goes with version 0.5"
        for name, module in moved.items()
    ]


def test_settings_are_taken_as_fields_and_say_so(caplog):
    former._say.cache_clear()
    settings = ob.Advi(iterations=20, draws=3)
    old = ob.advi(TARGET, family="fullrank", settings=settings, seed=1)
    assert caplog.messages == [
        "`settings=` of `advi` goes with version 0.5: give its fields as keywords, or use `ob.infer(target, Advi(...))`"
    ]
    new = ob.infer(TARGET, "fullrank", iterations=20, draws=3, seed=1)
    assert old.attrs["method"] == new.attrs["method"] == "advi-fullrank"
    assert old["posterior"].to_dataset().identical(new["posterior"].to_dataset())


def test_calibrate_takes_settings():
    given = former.given_to_calibrate(ob.Advi(family="fullrank"), ob.Advi(draws=7))
    assert given == ob.Advi(family="fullrank", draws=7)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("other", [ob.Hmc(), {"draws": 3}, ob.Nuts])
def test_settings_of_another_method_are_refused(other):
    with pytest.raises(
        TypeError, match=r"`settings` is .*, but nuts takes Nuts; give Nuts\(\.\.\.\)"
    ):
        ob.nuts(TARGET, settings=other)


def test_no_other_name_is_found():
    with pytest.raises(AttributeError, match="no attribute `FormerSettings`"):
        _ = ob.FormerSettings

"""The log of a run: lines with times, added to what is there; files of others stay, a full disk ends nothing."""

import logging
import re

import pytest

from onebasin.base.run_log import logged_to, notice, record, story

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def lines(path):
    found = path.read_text().splitlines()
    assert all(re.match(f"{TIME} ", line) for line in found)
    return [line.split(" ", 1)[1] for line in found]


def test_a_log_tells_what_was_asked_met_and_done(tmp_path):
    path = tmp_path / "run.log"
    with logged_to(path), story("onebasin study x", versions={"jax": "0.9", "stan": "2.37"}):
        record("chain 1 begins")
        notice("a file is damaged")
    record("nobody listens")
    assert lines(path) == [
        "begins: onebasin study x",
        "versions: jax 0.9, stan 2.37",
        "chain 1 begins",
        "a file is damaged",
        "ended well",
    ]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (ValueError("`seed` is -1"), "ended by ValueError: `seed` is -1"),
    ],
)
def test_a_run_that_goes_on_adds_to_its_log(tmp_path, error, said):
    path = tmp_path / "run.log"
    with pytest.raises(type(error)), logged_to(path), story("first"):
        raise error
    with logged_to(path), story("second"):
        pass
    assert lines(path) == ["begins: first", said, "begins: second", "ended well"]


def test_a_file_of_others_is_left_alone(tmp_path, caplog):
    path = tmp_path / "run.log"
    path.write_text("my notes\n")
    with logged_to(path):
        record("chain 1 begins")
    assert path.read_text() == "my notes\n"
    assert "is not the log of a run" in caplog.text


def test_what_programs_print_is_bounded_and_what_we_say_is_not(tmp_path):
    path = tmp_path / "run.log"
    with logged_to(path):
        program = logging.getLogger("onebasin.stan")
        program.info("x" * 100_000_000)
        for _ in range(100):
            program.info("printed again")
        record("ended well")
    text = path.read_text()
    assert "omitted" in text
    assert "ended well" in text
    assert len(text) < 1000

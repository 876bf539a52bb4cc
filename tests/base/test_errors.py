import importlib
import pkgutil
import re
from pathlib import Path

import onebasin
from onebasin.base.errors import OnebasinError

ROOMS = ["base", "models", "posteriors", "inference", "stan", "analysis", "truth", "studies", "cli"]


def named_errors():
    """Every exception class that a module of the rooms defines."""
    for found in pkgutil.walk_packages(onebasin.__path__, "onebasin."):
        module = importlib.import_module(found.name)
        for value in vars(module).values():
            defined_here = getattr(value, "__module__", None) == module.__name__
            if defined_here and isinstance(value, type) and issubclass(value, BaseException):
                yield value


def test_all_named_errors_have_one_base():
    errors = list(named_errors())
    assert len(errors) > 10
    assert [error for error in errors if not issubclass(error, OnebasinError)] == []


def test_what_users_can_cause_is_raised_by_a_named_error():
    bare = re.compile(r"raise (ValueError|TypeError|Exception)\b")
    found = [
        f"{path}: {line.strip()}"
        for room in ROOMS
        for path in sorted((Path(onebasin.__file__).parent / room).rglob("*.py"))
        for line in path.read_text().splitlines()
        if bare.search(line)
    ]
    assert found == []

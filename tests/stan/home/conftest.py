"""A wheel with few headers, from which assembling a home is fast. The compiler is a stand-in."""

import shutil
from pathlib import Path

import pytest

from onebasin.stan.home.assemble import find_wheel

HEADERS = ("version.hpp", "model/model_header.hpp", "services/util/create_rng.hpp")


@pytest.fixture(scope="session")
def few_headers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for imports with the part of httpstan that a home needs."""
    place, whole = tmp_path_factory.mktemp("wheel"), find_wheel().folder
    wheel = place / "httpstan"
    for header in HEADERS:
        target = wheel / "include" / "stan" / header
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(whole / "include" / "stan" / header, target)
    (wheel / "__init__.py").touch()
    (wheel / "lib").symlink_to(whole / "lib")
    (wheel / "stanc").symlink_to(whole / "stanc")
    return place


@pytest.fixture
def whole_wheel() -> None:
    """Return the wheel as installed."""


@pytest.fixture(autouse=True)
def wheel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the small wheel, unless a test needs the whole one."""
    if "whole_wheel" not in request.fixturenames:
        monkeypatch.syspath_prepend(request.getfixturevalue("few_headers"))

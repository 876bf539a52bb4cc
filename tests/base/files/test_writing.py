"""Files appear whole or not at all; locks, seals; rejected outputs; leftovers of killed processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from onebasin.base.errors import InUse, NameTaken
from onebasin.base.files.writing import (
    Seal,
    check_output,
    claim,
    examine,
    examine_json,
    locked,
    replacing,
    seal_json,
    sealing,
    sweep,
    unfinished,
    working_folder,
)


class Refused(Exception):
    pass


@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_what_breaks_off_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(type(error)), replacing(path) as part:
        part.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_takes_the_place_of_another(tmp_path):
    for text in ("old", "new"):
        with replacing(tmp_path / "a.zarr") as part:
            part.mkdir()
            (part / "inside").write_text(text)
    assert [path.read_text() for path in tmp_path.rglob("*") if path.is_file()] == ["new"]
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_file_is_on_the_disk_before_it_takes_its_name_and_the_name_after(tmp_path, monkeypatch):
    path, done = tmp_path / "a.txt", []
    flush, rename = os.fsync, os.replace

    def flushed(descriptor):
        done.append(("flush", os.fstat(descriptor).st_ino))
        flush(descriptor)

    def renamed(old, new):
        done.append(("rename", os.stat(old).st_ino))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    with replacing(path) as part:
        part.write_text("new")
    file, folder = path.stat().st_ino, tmp_path.stat().st_ino
    assert done == [("flush", file), ("rename", file), ("flush", folder)]


def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "run.nc"
    (tmp_path / "run-1.nc").write_text("also there")
    with pytest.raises(NameTaken, match=r"run\.nc was created .* in .*run-2\.nc\."):  # noqa: SIM117
        with replacing(path, new=True) as part:
            part.write_text("result")
            path.write_text("precious")
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"run.nc": "precious", "run-1.nc": "also there", "run-2.nc": "result"}


WRITE = """
import resource, sys
from pathlib import Path
import numpy as np, xarray as xr
from onebasin.base.errors import WriteError
from onebasin.base.files.netcdf import write_tree
from onebasin.base.files.writing import replacing

def netcdf(path):
    values = xr.Dataset({"a": (("x",), np.arange(100_000.0)), "b": (("x",), np.zeros(100_000))})
    write_tree(xr.DataTree.from_dict({"posterior": values, "more": values}), path)

def npz(path):
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, a=np.arange(100_000.0), b=np.arange(100_000.0))

def text(path):
    with replacing(path) as part:
        part.write_text("x" * 100_000)

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
for kind in (netcdf, npz, text):
    try:
        kind(Path(sys.argv[1]) / kind.__name__)
    except WriteError as error:
        print(error)
"""


def test_a_full_disk_is_one_error_that_names_the_file(tmp_path):
    """Of a process that allows files of 64 KiB: no traceback, no crash."""
    paths = [tmp_path / kind for kind in ("netcdf", "npz", "text")]
    for path in paths:
        path.write_text("old")
    words = [sys.executable, "-c", WRITE, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.splitlines()
    assert [line.startswith(str(p)) for line, p in zip(told, paths, strict=True)] == [True] * 3
    assert sorted(tmp_path.iterdir()) == paths
    assert [path.read_text() for path in paths] == ["old"] * 3


def left_behind(path):
    """A name that a process has given which is no more, of a number that no process has."""
    name = unfinished(path).name
    return path.with_name(name.replace(f"-{os.getpid()}-", f"-{2**40}-"))


def test_parts_of_processes_that_ended_are_removed_and_nothing_else(tmp_path):
    file, folder = left_behind(tmp_path / "run.nc"), left_behind(tmp_path / "b\nuild")
    file.write_text("part")
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "file").write_text("part")
    ended = left_behind(tmp_path / "run.nc").name
    machine = ended.split("-")[1]
    kept = [
        unfinished(tmp_path / "run.nc"),  # our own
        tmp_path / ended.replace(machine, "0" * 8),  # another machine's
        tmp_path / ".run.nc.1234abcd",
        tmp_path / ".run.nc.onebasin-backup",
        tmp_path / ended.removeprefix("."),
        tmp_path / f"{ended}.txt",
    ]
    for path in kept:
        path.write_text("kept")
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_a_working_folder_is_private_gone_at_the_end_and_swept_before(tmp_path):
    left = left_behind(tmp_path / "run")
    left.mkdir()
    with working_folder("run", tmp_path) as folder:
        assert not left.exists()
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "file").write_text("")
    assert list(tmp_path.iterdir()) == []


def check(path, *, force=False, inputs=()):
    check_output(Path(path), force=force, error=Refused, argument="--out", inputs=inputs)


def make_link(path):
    (path.parent / "other").write_text("other")
    path.symlink_to("other")


@pytest.mark.parametrize("make", [Path.mkdir, make_link, os.mkfifo, Path.touch])
def test_what_is_no_new_file_is_refused(tmp_path, make):
    make(tmp_path / "out")
    for force in (False, make != Path.touch):
        with pytest.raises(Refused, match=r"^`--out` is .*out, which"):
            check(tmp_path / "out", force=force)
    assert os.listdir(tmp_path) and os.path.lexists(tmp_path / "out")


def test_an_input_is_never_the_output(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.nc").write_text("precious")
    os.link("in.nc", "hard.nc")
    Path("linked").symlink_to(tmp_path)
    for out in ("in.nc", "./in.nc", tmp_path / "in.nc", "hard.nc", "linked/in.nc"):
        with pytest.raises(
            Refused, match=r"which is also the input in\.nc; choose a different name"
        ):
            check(out, force=True, inputs=[Path("other.nc"), Path("in.nc")])


def test_one_claims_and_the_next_is_refused(tmp_path):
    with claim(tmp_path / "new" / "out", force=False, error=Refused) as path:
        with (
            pytest.raises(InUse, match=r"`path` is .*out, which process"),
            claim(path, force=True, error=Refused),
        ):
            pass
        path.write_text("done")
    assert os.listdir(tmp_path / "new") == ["out"]
    with pytest.raises(Refused, match="exists"), claim(path, force=False, error=Refused):
        pass


HOLDER = """
import sys, time
from pathlib import Path
from onebasin.base.files.writing import locked
with locked(Path(sys.argv[1]), argument="path"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run.nc")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_second_is_refused_at_once_and_told_who_holds_it(tmp_path, holder):
    with (
        pytest.raises(
            InUse,
            match=rf"`--out` is .*run\.nc, which process {holder.pid} \(`.*` on .*\) is writing. Wait",
        ),
        locked(tmp_path / "run.nc", argument="--out"),
    ):
        pass


def test_who_was_killed_blocks_nobody_and_leaves_nothing_for_long(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert [path.name for path in tmp_path.iterdir()] == [".run.nc.lock"]
    with locked(tmp_path / "run.nc", argument="path"):
        assert f"process {os.getpid()} (" in (tmp_path / ".run.nc.lock").read_text()
    assert list(tmp_path.iterdir()) == []


def test_many_at_once_never_hold_it_together(tmp_path):
    """Each deletes the file that the next has open: the race that a lock file without a second look loses."""
    script = """
import sys
from pathlib import Path
from onebasin.base.errors import InUse
from onebasin.base.files.writing import locked
inside, won = Path(sys.argv[1]) / "inside", 0
while won < 60:
    try:
        with locked(Path(sys.argv[1]) / "a", argument="path"):
            inside.touch(exist_ok=False)
            inside.unlink()
            won += 1
    except InUse:
        pass
"""
    words = [sys.executable, "-c", script, str(tmp_path)]
    processes = [subprocess.Popen(words) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def sealed(tmp_path):
    path = tmp_path / "file"
    with sealing(path) as part:
        part.write_bytes(b"content" * 200_000)
    return path


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_a_flipped_byte_is_seen_wherever_it_is(sealed):
    assert examine(sealed) is Seal.SEALED
    for place in (0, 1_000_000, 1_399_999, -1):
        flip(sealed, place)
        assert examine(sealed) is Seal.DAMAGED
        flip(sealed, place)


def test_json_says_whether_it_is_what_was_written():
    value = seal_json({"b": [1.5, None, 1e-300], "a": {"c": "\u00e9"}})
    assert list(value) == ["b", "a", "sha256"]
    read = json.loads(json.dumps(value, indent=2))
    assert examine_json(read) is Seal.SEALED
    assert examine_json(dict(reversed(read.items()))) is Seal.SEALED
    assert seal_json(read) == read
    assert examine_json({**read, "b": [1.5, None, 2e-300]}) is Seal.DAMAGED
    assert examine_json({"b": 1}) is Seal.UNSEALED
    assert examine_json([1]) is Seal.UNSEALED

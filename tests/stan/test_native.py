"""`calls.c` and its binaries: they are up to date, and a library's codes and messages mean what an entry says."""

import ctypes
import hashlib
import platform
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_double, c_int, c_void_p

import numpy as np
import pytest

from onebasin.base.errors import HomeBuildError
from onebasin.stan import interfaces
from onebasin.stan.interfaces import BUILT, SOURCE, SUMS, Entry

GRADIENT = CFUNCTYPE(
    *(c_int, c_void_p, c_bool, c_bool, POINTER(c_double)),
    *(POINTER(c_double), POINTER(c_double), POINTER(c_void_p)),
)
FREE = CFUNCTYPE(None, c_void_p)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_binaries_are_those_of_the_source():
    lines = dict(reversed(line.split()) for line in SUMS.read_text().splitlines())
    folder = SOURCE.parent
    assert lines == {name: digest(folder / name) for name in lines}, "run `make -C stan/native`"
    built = {path.relative_to(folder).as_posix() for path in BUILT.iterdir()}
    assert {SOURCE.name, *built} - {"built/SHA256SUMS"} == lines.keys()


class Fake:
    """A Stan library of two numbers: half their sum of squares, times the model's handle.

    It answers a point that starts with a negative number with `code` and `message`.
    """

    def __init__(self, code: int = 0, message: bytes = b"") -> None:
        self.code, self.message, self.freed = code, message, 0
        self.texts: list[ctypes.Array] = []
        self.functions = (GRADIENT(self.gradient), FREE(self.free))

    def gradient(self, model, propto, jacobian, point, value, gradient, error):
        if point[0] < 0:
            self.texts.append(ctypes.create_string_buffer(self.message))
            error[0] = ctypes.addressof(self.texts[-1])
            return self.code
        value[0] = model * (point[0] ** 2 + point[1] ** 2) / 2
        gradient[0], gradient[1] = model * point[0], model * point[1]
        return 0

    def free(self, message):
        self.freed += 1

    def entry(self, *, minus=None, lenient=False) -> Entry:
        entry = Entry(model=3, minus=minus, size=2, lenient=lenient)
        for name, function in zip(
            ("bs_log_density_gradient", "bs_free_error_msg"), self.functions, strict=True
        ):
            setattr(entry, name, ctypes.cast(function, c_void_p))
        return entry

    def call(self, name: str, points: np.ndarray, *more: np.ndarray, **flags):
        error, arrays = c_char_p(), [array.ctypes.data for array in (points, *more)]
        function = getattr(interfaces.load_calls(), f"onebasin_{name}")
        code = function(byref(self.entry(**flags)), len(points), *arrays, byref(error))
        return code, error.value


POINTS = np.array([[1.0, 2.0], [-1.0, 0.0], [-2.0, 0.0], [0.5, 0.0]])


@pytest.mark.parametrize(("code", "lenient"), [(1, False), (1, True), (-1, True)])
def test_a_rejected_point_has_no_density(code, lenient):
    fake, values, gradients = Fake(code, b"never"), np.empty(4), np.empty((4, 2))
    found = fake.call("gradients", POINTS, values, gradients, lenient=lenient)
    assert found == (2, b"never") and fake.freed == 1  # the second message; the first is ours
    np.testing.assert_array_equal(values, [7.5, -np.inf, -np.inf, 0.375])
    np.testing.assert_array_equal(gradients[1:3], np.nan)


@pytest.mark.parametrize(
    ("message", "lenient"), [(b"broken", False), (b"y[3]: index out of range", True)]
)
def test_a_failure_ends_the_call(message, lenient):
    fake = Fake(-1, message)
    found = fake.call("gradients", POINTS, np.empty(4), np.empty((4, 2)), lenient=lenient)
    assert found == (-1, message) and fake.freed == 0


def test_a_product_is_the_hessian_times_a_direction():
    calls, product = interfaces.load_calls(), np.empty((3, 2))
    points, along = POINTS[[0, 0, 1]], np.array([[2.0, -1.0], [0.0, 0.0], [1.0, 1.0]])
    calls.onebasin_products.argtypes = calls.onebasin_gradients.argtypes
    found = Fake(1, b"never").call("products", points, along, product, minus=1)
    assert found == (1, b"never")
    np.testing.assert_allclose(product[:2], 2 * along[:2], rtol=1e-9)
    assert np.isnan(product[2]).all()


@pytest.mark.cmdstan
def test_without_a_binary_the_compiler_makes_one(monkeypatch, tmp_path):
    monkeypatch.setattr(interfaces, "BUILT", tmp_path)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert (
        interfaces.load_calls.__wrapped__().onebasin_xla_major()
        == interfaces.load_calls().onebasin_xla_major()
    )
    monkeypatch.setenv("CXX", "no-such-compiler")
    words = "through the compiled file linux-riscv64.so, which is missing and cannot be built. Not found: no-such"
    with pytest.raises(HomeBuildError, match=words):
        interfaces.load_calls.__wrapped__()


@pytest.mark.cmdstan
def test_another_layout_of_xlas_interface_is_compiled(monkeypatch, tmp_path):
    place = tmp_path / "xla/ffi/api/c_api.h"
    place.parent.mkdir(parents=True)
    text = (interfaces.headers() / "xla/ffi/api/c_api.h").read_text()
    place.write_text(text.replace("#define XLA_FFI_API_MAJOR 0", "#define XLA_FFI_API_MAJOR 9"))
    monkeypatch.setattr(interfaces, "headers", lambda: tmp_path)
    assert interfaces.load_calls().onebasin_xla_major() == 0
    assert interfaces.load_for_xla.__wrapped__().onebasin_xla_major() == 9

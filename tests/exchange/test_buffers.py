"""The buffer protocol: what a request may see of memory that is not in the order asked for."""

from __future__ import annotations

import ctypes

import pytest
import wengert as wg

SIMPLE, WRITABLE, FORMAT, ND = 0, 1, 4, 8
STRIDES = 0x10 | ND
C, F, ANY = 0x20 | STRIDES, 0x40 | STRIDES, 0x80 | STRIDES
INDIRECT = 0x100 | STRIDES


class View(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


get = ctypes.pythonapi.PyObject_GetBuffer
get.argtypes = [ctypes.py_object, ctypes.POINTER(View), ctypes.c_int]
release = ctypes.pythonapi.PyBuffer_Release
release.argtypes = [ctypes.POINTER(View)]


def seen(x: wg.Tensor, flags: int) -> bool:
    """Whether a request is answered; what it shows is then checked."""
    view = View()
    try:
        get(x, ctypes.byref(view), flags)
    except BufferError:
        return False
    assert view.len == x.numel() * x.itemsize
    assert bool(view.strides) == (flags & STRIDES == STRIDES)
    assert bool(view.format) == bool(flags & FORMAT)
    if view.strides:
        assert [view.strides[i] // x.itemsize for i in range(x.ndim)] == list(x.stride())
    release(ctypes.byref(view))
    return True


ROWS = wg.zeros(2, 3)
LAYOUTS = {
    "rows": (ROWS, {SIMPLE, ND, STRIDES, C, ANY, INDIRECT}),
    "columns": (ROWS.t(), {STRIDES, F, ANY, INDIRECT}),
    "every other": (wg.zeros(6)[::2], {STRIDES, INDIRECT}),
    "a vector": (wg.zeros(4), {SIMPLE, ND, STRIDES, C, F, ANY, INDIRECT}),
    "nothing": (wg.zeros(0, 3)[:, ::2], {SIMPLE, ND, STRIDES, C, F, ANY, INDIRECT}),
    "a number": (wg.tensor(1.0), {SIMPLE, ND, STRIDES, C, F, ANY, INDIRECT}),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("more", [0, FORMAT, WRITABLE, FORMAT | WRITABLE])
def test_requests(layout: str, more: int) -> None:
    x, answered = LAYOUTS[layout]
    assert {
        flags for flags in (SIMPLE, ND, STRIDES, C, F, ANY, INDIRECT) if seen(x, flags | more)
    } == answered

"""Random strided views for the shader tests: a flat buffer, and where and how a tensor lies in it; how many
to draw."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from support import examples

#: A kernel is compiled and run for each example: few of them, so that a run is short.
few = examples(8)


@dataclass
class View:
    """A strided tensor: NumPy view `array` of the buffer `flat`; offset and strides in elements."""

    flat: np.ndarray
    array: np.ndarray
    offset: int

    @property
    def strides(self):
        """Strides in elements."""
        return [s // self.array.itemsize for s in self.array.strides]


def random_values(seed, shape, dtype):
    """Values of moderate size of any dtype."""
    g = np.random.default_rng(seed)
    if np.dtype(dtype) == np.bool_:
        return g.random(shape) < 0.5
    if np.dtype(dtype) == np.int32:
        return g.integers(-50, 50, shape, np.int32)
    return g.standard_normal(shape).astype(dtype)


def view(seed, shape, dtype=np.float32):
    """A view of `shape` that is permuted, sliced with a step and flipped, as `seed` says."""
    if not shape:
        base = random_values(seed, (3,), dtype)
        return View(base, base[1:2].reshape(()), 1)
    g = np.random.default_rng(seed)
    order = g.permutation(len(shape))
    steps = g.choice([1, 1, 2, -1], len(shape))
    full = [shape[a] * abs(steps[a]) + int(g.integers(0, 2)) for a in order]
    base = random_values(seed + 1, full, dtype)
    array = base.transpose(np.argsort(order))
    array = array[tuple(slice(None, None, int(s)) for s in steps)]
    array = array[tuple(slice(0, n) for n in shape)]
    start = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return View(base.reshape(-1), array, start // base.itemsize)


def dense(array):
    """A contiguous tensor as a view."""
    array = np.ascontiguousarray(array)
    return View(array.reshape(-1), array, 0)


def shapes(low=0, high=4, side=9):
    """Shapes of up to `high` axes."""
    return st.lists(st.integers(1, side), min_size=low, max_size=high).map(tuple)

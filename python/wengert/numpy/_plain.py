"""NumPy's own functions of the elements: what is counted, fitted, read or compared as sets.

They take tensors and return tensors, without derivatives: a tensor that requires a gradient raises.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert import _core
from wengert._core import Tensor
from wengert.tree import tree_map

from ._rows import row

__all__ = [
    "bartlett",
    "blackman",
    "frombuffer",
    "fromfile",
    "fromiter",
    "genfromtxt",
    "hamming",
    "hanning",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "intersect1d",
    "kaiser",
    "lexsort",
    "load",
    "loadtxt",
    "mask_indices",
    "packbits",
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "roots",
    "setdiff1d",
    "setxor1d",
    "spacing",
    "trim_zeros",
    "union1d",
    "unpackbits",
    "unwrap",
]


def plain(name: str) -> Callable[..., Any]:
    """NumPy's function of this name, of tensors as arrays; the arrays that it returns become tensors."""
    function = getattr(np, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: x.numpy() if isinstance(x, Tensor) else x, (args, kwargs))
        found = function(*args, **kwargs)
        return tree_map(lambda x: _core.as_tensor(x) if isinstance(x, (np.ndarray, np.generic)) else x, found)

    return row(name, run, f"Returns what NumPy's `{name}` returns, as tensors; no derivative goes through.")


bartlett, blackman, frombuffer, fromfile, fromiter = map(
    plain, ("bartlett", "blackman", "frombuffer", "fromfile", "fromiter")
)
genfromtxt, hamming, hanning, histogram, histogram2d = map(
    plain, ("genfromtxt", "hamming", "hanning", "histogram", "histogram2d")
)
histogram_bin_edges, histogramdd, intersect1d, kaiser, lexsort = map(
    plain, ("histogram_bin_edges", "histogramdd", "intersect1d", "kaiser", "lexsort")
)
load, loadtxt, mask_indices, packbits, poly = map(
    plain, ("load", "loadtxt", "mask_indices", "packbits", "poly")
)
polyadd, polyder, polydiv, polyfit, polyint = map(
    plain, ("polyadd", "polyder", "polydiv", "polyfit", "polyint")
)
polymul, polysub, roots, setdiff1d, setxor1d = map(
    plain, ("polymul", "polysub", "roots", "setdiff1d", "setxor1d")
)
spacing, trim_zeros, union1d, unpackbits, unwrap = map(
    plain, ("spacing", "trim_zeros", "union1d", "unpackbits", "unwrap")
)

"""Calls of the standard's functions with drawn arguments, to be made in `wengert.numpy` and in a reference
alike.

`CASES[name](draw)` draws arguments and returns `call(namespace, asarray)`. Numbers are small integers, also
where the dtype is a float, so sums and products are exact and comparisons meet ties; special values have a
test of their own.
"""

from array_api import creation, elements, linear, shapes
from array_api.drawing import Cases, by_name

__all__ = ["CASES", "by_name"]

SUBJECTS = (elements, shapes, creation, linear)
CASES: Cases = {name: case for subject in SUBJECTS for name, case in subject.CASES.items()}

assert len(CASES) == sum(len(subject.CASES) for subject in SUBJECTS), "a function has two cases"

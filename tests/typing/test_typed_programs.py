"""The typed programs of this folder do at run time what their types say, and the checkers read the whole
surface."""

import typing

import pytest
import wengert as wg

from .programs import accepted

PROGRAMS = [
    accepted.functions,
    accepted.methods,
    accepted.standard,
    accepted.transforms,
    accepted.control,
    accepted.training,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_typed_programs_run(program: typing.Callable[[], None]) -> None:
    program()


def test_all_is_complete() -> None:
    assert len(set(wg.__all__)) == len(wg.__all__)
    assert all(hasattr(wg, name) for name in wg.__all__)
    assert set(wg.__all__) <= set(dir(wg))


def test_nothing_private_leaks() -> None:
    leaks = {
        "Linear",
        "Node",
        "NodeValue",
        "Pullback",
        "InferenceState",
        "Script",
        "op_rows",
        "op_kinds",
        "Any",
    }
    assert not leaks & set(vars(wg))
    assert not [name for name in dir(wg) if name.startswith("_") and not name.startswith("__")]

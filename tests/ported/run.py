"""Runs a program that imports torch, jax or autograd with wengert under that name.

    python tests/ported/run.py vae gpt

prints the losses of the programs that are named, of all without a name. The programs are in `programs/`; each
defines `main() -> list[float]`. `make_losses.py` runs the same files in PyTorch, JAX and autograd.
"""

import contextlib
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
#: Libraries whose names lead to wengert.
LIBRARIES = ("torch", "jax", "autograd")


class Renamed(MetaPathFinder, Loader):
    """Finds `torch.nn` as `wengert.nn`, `jax.numpy` as `wengert.numpy`, and so on, for any depth of names."""

    @staticmethod
    def ours(name: str) -> str:
        """The module of wengert for one of a library."""
        _, dot, rest = name.partition(".")
        return f"wengert{dot}{rest}"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Takes the names of the libraries; others are left to the next finder."""
        if fullname.partition(".")[0] not in LIBRARIES:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves Python to make an empty module, which `exec_module` replaces: ours keeps its own name and
        spec."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Puts the module of wengert in the place of the empty one."""
        sys.modules[module.__name__] = importlib.import_module(self.ours(module.__name__))


def of_libraries() -> dict[str, types.ModuleType]:
    """The modules of the libraries that are imported."""
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in LIBRARIES}


@contextlib.contextmanager
def renamed() -> Iterator[None]:
    """Imports inside lead to wengert; afterwards all modules are what they were."""
    before, finder = of_libraries(), Renamed()
    for name in before:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in of_libraries():
            del sys.modules[name]
        sys.modules.update(before)


def names() -> list[str]:
    """The programs, in alphabetical order."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def execute(name: str) -> list[float]:
    """Runs a program with the libraries that its imports find, and returns its losses."""
    spec = importlib.util.spec_from_file_location(f"ported_{name}", PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    return program.main()


def losses(name: str) -> list[float]:
    """Runs a program with wengert, and returns its losses."""
    with renamed():
        return execute(name)


if __name__ == "__main__":
    for each in sys.argv[1:] or names():
        print(each, *losses(each))

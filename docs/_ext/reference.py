"""Which names the API reference documents, and the pages that it writes for them.

Nothing is listed by hand that the package can tell itself: a name added to the package appears in the
reference of the next build. This file needs no Sphinx, so the tests can ask it too. `signatures.py` finds the
parameters.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import wengert as wg

# The modules in the order of the table of contents. Others are found by themselves and stand behind these.
ORDER = """
    nn nn.functional nn.init nn.utils optim optim.lr_scheduler autograd autograd.graph autograd.anomaly
    control debugging
    utils.data utils.checkpoint distributions masked serialization safetensors amp tree memory gpu testing
    plot numpy distributed
    numpy.linalg
    """.split()
# Programs, and what has nothing to document.
LEFT_OUT = {"wengert.demo", "wengert.version"}

CREATION = set(
    """
    arange as_tensor asarray bartlett_window bernoulli blackman_window empty empty_like empty_strided eye
    from_dlpack from_numpy full full_like hamming_window hann_window kaiser_window linspace normal ones
    ones_like rand rand_like randint randint_like randn randn_like randperm scalar_tensor tensor zeros
    zeros_like
    """.split()
)

# Functions of the core, over tensors, that follow from no method.
OF_TENSORS = set(
    """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors can_cast cartesian_prod cat
    column_stack concat concatenate dstack hstack imag is_tensor meshgrid op_kinds polygamma promote_types
    real
    result_type row_stack stack tril_indices triu_indices unravel_index vstack where
    """.split()
)


@dataclass
class Page:
    """One page: where it lies, what it is called, and the full names that it documents."""

    path: str
    title: str
    intro: str
    names: list[str] = field(default_factory=list)


def public(module: ModuleType) -> list[str]:
    """The names that a module offers: its `__all__`, or what it defines itself. NumPy documents its own."""
    if hasattr(module, "__all__"):
        found = [name for name in module.__all__ if not is_numpy_s(getattr(module, name))]
        return sorted(found, key=str.lower)
    found = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
    return sorted((n for n in found if not n.startswith("_")), key=str.lower)


def is_numpy_s(value: Any) -> bool:
    """Whether a function, class or object is NumPy's own, under its name in a module of ours."""
    home = getattr(value, "__module__", None) or type(value).__module__
    return home.partition(".")[0] == "numpy"


def top_level() -> list[str]:
    """The names of `wengert` itself, without its modules."""
    names = [n for n in dir(wg) if not n.startswith("_") and n not in ("Any", "importlib")]
    return [n for n in names if not inspect.ismodule(getattr(wg, n, None)) and hasattr(wg, n)]


def kind(name: str) -> str:
    """The page of a name of `wengert` itself."""
    value = getattr(wg, name)
    if name == "Tensor":
        return "tensor"
    if name in CREATION:
        return "creation"
    if getattr(value, "__module__", "").startswith(
        ("wengert.control", "wengert.transforms", "wengert.custom")
    ):
        return "transforms"
    own = callable(value) and not inspect.isclass(value) and not isinstance(value, wg.dtype)
    return "operations" if own and (hasattr(wg.Tensor, name) or takes_tensors(value)) else "runtime"


def takes_tensors(function: Any) -> bool:
    """Whether a function is written over tensors rather than about the library's state."""
    home = getattr(function, "__module__", None) or ""
    written = home.startswith(("wengert.composed", "wengert.nn.functional"))
    return written or home in ("wengert", "wengert._einsum") or function.__name__ in OF_TENSORS


def modules() -> Iterator[ModuleType]:
    """The public modules, in order; those that cannot be imported here raise."""
    listed = [f"wengert.{name}" for name in ORDER]
    found = [m.name for m in pkgutil.walk_packages(wg.__path__, "wengert.")]
    for name in [n for n in listed if n in found] + [n for n in found if n not in listed]:
        if name not in LEFT_OUT and is_public(name):
            yield importlib.import_module(name)


def is_public(name: str) -> bool:
    """Whether a module is meant to be imported from: no underscore, and its package does not leave it out."""
    package, _, own = name.rpartition(".")
    if own.startswith("_"):
        return False
    if name.removeprefix("wengert.") in ORDER:
        return True
    return package == "wengert" or (
        is_public(package) and own in getattr(importlib.import_module(package), "__all__", [own])
    )


def intro(thing: Any) -> str:
    """What a module says of itself."""
    return inspect.cleandoc(thing.__doc__ or "")


def pages() -> list[Page]:
    """Every page of the reference."""
    found = {
        "tensor": Page(
            "tensor", "Tensor", "The one array type. Each operation is a method here and a function there."
        ),
        "creation": Page(
            "creation", "Making tensors", "Functions that make tensors from data, constants or chance."
        ),
        "operations": Page(
            "operations", "Operations", "Functions of tensors; arrays and numbers are taken as well."
        ),
        "transforms": Page("transforms", "Transforms", intro(importlib.import_module("wengert.transforms"))),
        "runtime": Page(
            "runtime",
            "dtypes, devices, modes",
            "What an operation depends on besides its inputs, and errors.",
        ),
    }
    for name in top_level():
        found[kind(name)].names.append(f"wengert.{name}")
    result = list(found.values())
    seen = {id(getattr(wg, name)) for name in top_level()}
    listed = {f"wengert.{name}" for name in ORDER}
    for module in modules():
        values = {name: getattr(module, name) for name in public(module)}
        values = {name: value for name, value in values.items() if not inspect.ismodule(value)}
        fresh = [v for v in values.values() if id(v) not in seen]
        seen.update(id(v) for v in values.values())
        if module.__name__ in listed or (fresh and hasattr(module, "__all__")):
            full = [f"{module.__name__}.{name}" for name in values]
            title = module.__name__.removeprefix("wengert.")
            result.append(Page(title.replace(".", "_"), module.__name__, intro(module), full))
    return result


def resolve(full: str) -> Any:
    """The object of a full name."""
    parts = full.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            value = getattr(value, part)
        return value
    raise LookupError(full)


def shadows(full: str) -> bool:
    """Whether a name is also one of Python's types, so that annotations would link to it by mistake."""
    return full.rpartition(".")[2] in ("bool", "float", "int")


# What constants are that no type tells; others show their value.
MEANING = {
    "__array_api_version__": "The version of the array API standard that the namespace follows",
    "e": "The base of the natural logarithm",
    "inf": "Infinity",
    "nan": "Not a number",
    "newaxis": "In an index, a new axis of length 1",
    "pi": "The ratio of a circle's circumference to its diameter",
}


def constant(full: str, value: Any) -> str:
    """What a public name is that cannot be called: a dtype, a number, or modules of functions."""
    if isinstance(value, wg.dtype):
        return f"The dtype `{value!r}`."
    if isinstance(value, tuple) and all(inspect.ismodule(part) for part in value):
        return families(value)
    said = MEANING.get(full.rpartition(".")[2], "A constant")
    return f"{said}: `{value!r}`."


def families(found: tuple[ModuleType, ...]) -> str:
    """Modules with the functions that each defines, by their names in `wengert`."""
    lines = ["The modules, and what each defines. Call the functions by their names in `wengert`.", ""]
    lines += [".. list-table::", "   :class: summary", "   :widths: 30 70", ""]
    for module in found:
        links = [f":py:obj:`~wengert.{name}`" for name in public(module) if callable(getattr(wg, name, None))]
        if links:
            lines += [f"   * - `{module.__name__.rpartition('.')[2]}`", f"     - {', '.join(links)}"]
    return "\n".join(line and f"   {line}" for line in lines).lstrip()


def hides_its_base(value: type) -> bool:
    """Whether all that a class inherits comes from private classes, which have no entry of their own."""
    return all(base is object or base.__name__.startswith("_") for base in value.__mro__[1:])


def entry(full: str, first: dict[int, str]) -> str:
    """The directive that documents one name, or points to where the same object is documented."""
    value = resolve(full)
    if not callable(value) or isinstance(value, wg.dtype):
        hidden = "   :no-index:\n" if shadows(full) else ""
        return f".. py:data:: {full}\n{hidden}\n   {constant(full, value)}\n"
    known = first.setdefault(id(value), full)
    if known != full:
        role = "class" if inspect.isclass(value) else "function"
        return f".. py:{role}:: {full}\n\n   The same as `{known}`.\n"
    if not inspect.isclass(value):
        return f".. autofunction:: {full}\n"
    if issubclass(value, BaseException):
        return f".. autoexception:: {full}\n"
    # Modules of layers inherit a hundred methods; they are told once, at nn.Module.
    inherited = "   :inherited-members:\n" if len(value.__mro__) > 2 and hides_its_base(value) else ""
    return f".. autoclass:: {full}\n   :members:\n{inherited}"


def first_sentence(value: Any) -> str:
    """What a docstring says first. A full stop in backquotes, or behind an initial, does not end it."""
    paragraph = " ".join(inspect.cleandoc(value.__doc__ or "").split("\n\n")[0].split())
    found = re.match(r"((?:`[^`]*`|[^`])*?(?<!\b[A-Z])\.)(?: (?=[A-Z`])|$)", paragraph)
    return found[1] if found else paragraph


def table(names: list[str]) -> list[str]:
    """A table of contents of a page."""
    lines = [".. list-table::", "   :class: summary", "   :widths: 30 70", ""]
    for name in names:
        value = resolve(name)
        if callable(value) and not isinstance(value, wg.dtype):
            lines += [f"   * - :py:obj:`~{name}`", f"     - {first_sentence(value)}"]
    return [*lines, ""]


def write(folder: Path) -> None:
    """Writes the pages, as reStructuredText because the directives nest docstrings."""
    folder.mkdir(exist_ok=True)
    first: dict[int, str] = {}
    found = pages()
    for page in found:
        lines = [page.title, "=" * len(page.title), "", page.intro, ""]
        if len(page.names) > 1:
            lines += table(page.names)
        lines += [entry(name, first) for name in page.names]
        update(folder / f"{page.path}.rst", "\n".join(lines))
    for old in folder.glob("*.rst"):
        if old.stem not in {"index", *(page.path for page in found)}:
            old.unlink()
    contents = "\n".join(f"   {page.path}" for page in found)
    head = "API reference\n=============\n\nGenerated from the docstrings of the package itself.\n"
    update(folder / "index.rst", f"{head}\n.. toctree::\n   :maxdepth: 1\n\n{contents}\n")


def update(path: Path, text: str) -> None:
    """Writes a file if that changes it, so that Sphinx need not read it again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")

"""Write the type stub of the extension and the list of functions; `--check` compares and writes nothing.

`_core.pyi` is the extension, `_functions.py` imports by name what `wengert` has of functions. The built
package is the only source: compiled signatures from `__text_signature__`, with types from
`tools/stub_types.py`; what Python code defines, from its annotations. Documentation is the first paragraph of
each docstring. The output depends on the package alone, so CI can compare it.
"""

import argparse
import ast
import difflib
import importlib
import inspect
import pkgutil
import sys
import textwrap
import types
import typing
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from stub_types import (  # type: ignore[import-not-found]
    ALIASES,
    BOOL,
    COMPARISONS,
    CORE_HEADER,
    EXCEPTIONS,
    FUNCTIONS_HEADER,
    INTERNAL,
    MAKERS,
    MANY,
    OF_ANY_CLASS,
    OVERLOADS,
    PARAMETERS,
    PROPERTIES,
    RETURNS,
    WRITABLE,
    Types,
)

PACKAGE = Path(__file__).parent.parent / "python" / "wengert"
STARS: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
# Slots that object defines too and that say nothing about the class.
DULL = {
    "__doc__",
    "__module__",
    "__new__",
    "__getattribute__",
    "__dict__",
    "__weakref__",
    "__text_signature__",
}
# Types that the stubs import under a name of their own.
IMPORTED = {"Along": "_Along", "Size": "_Size", "dtype": "_dtype", "device": "_device"}


def written_type(kind: object) -> str:
    """An annotation of Python code as the stubs write it; `Any` for what they do not import."""
    if kind is None or kind is type(None):
        return "None"
    if kind is Ellipsis:
        return "..."
    if isinstance(kind, list):
        return "[" + ", ".join(map(written_type, kind)) + "]"
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        kinds = importlib.import_module("wengert._types")
        for name in ("TensorLike", "Operand", "DTypeLike", "DeviceLike", "Sizes"):
            named = typing.get_args(getattr(kinds, name))
            if set(named) <= set(arguments):
                return " | ".join([name, *(written_type(part) for part in arguments if part not in named)])
        return " | ".join(dict.fromkeys(map(written_type, arguments)))
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is not None:
        outer = written_type(origin)
        return outer if outer == "Any" else f"{outer}[{', '.join(map(written_type, arguments))}]"
    if not isinstance(kind, type):
        return "Any"
    if kind.__module__ == "builtins":
        return f"builtins.{kind.__name__}"
    known = kind.__name__ in ("Tensor", *IMPORTED) or kind in (
        Callable,
        typing.get_origin(typing.Sequence[int]),
    )
    return IMPORTED.get(kind.__name__, kind.__name__) if known else "Any"


def annotated(function: object) -> Types:
    """The types that a Python function declares, by parameter; none of a compiled one."""
    if not isinstance(function, types.FunctionType):
        return {}
    return {name: written_type(kind) for name, kind in inspect.get_annotations(function).items()}


def annotation(parameter: inspect.Parameter, own: Types, known: Types) -> str:
    """The type of a parameter: as declared, or from its name and default."""
    if own.get(parameter.name, "Any") != "Any":
        return own[parameter.name]
    if parameter.kind in STARS:
        listed = known is not OF_ANY_CLASS and known and parameter.kind == parameter.VAR_POSITIONAL
        return MANY.get(parameter.name, "Any") if listed else "Any"
    found = known.get(parameter.name, "Any")
    if found == BOOL and parameter.default not in (True, False, None, parameter.empty):
        return "Any"
    optional = parameter.default is None and found != "Any" and "None" not in found and found != "_Dims"
    return f"{found} | None" if optional else found


def one_parameter(parameter: inspect.Parameter, in_method: bool, own: Types, known: Types) -> str:
    """`name: type = default`, with the stars of a variadic one."""
    stars = STARS.get(parameter.kind, "")
    if in_method and parameter.name in ("self", "cls") and not stars:
        return parameter.name
    text = f"{stars}{parameter.name}: {annotation(parameter, own, known)}"
    if parameter.default is parameter.empty:
        return text
    plain = isinstance(parameter.default, (bool, int, float, str, tuple, type(None)))
    return f"{text} = {parameter.default!r}" if plain else f"{text} = ..."


def written(given: list[inspect.Parameter], in_method: bool, own: Types, known: Types) -> list[str]:
    """Parameters with the marks between them."""
    out: list[str] = []
    for at, parameter in enumerate(given):
        before = given[at - 1].kind if at else None
        if before == parameter.POSITIONAL_ONLY != parameter.kind:
            out.append("/")
        if parameter.kind == parameter.KEYWORD_ONLY and before not in (
            parameter.KEYWORD_ONLY,
            parameter.VAR_POSITIONAL,
        ):
            out.append("*")
        out.append(one_parameter(parameter, in_method, own, known))
    if given and given[-1].kind == inspect.Parameter.POSITIONAL_ONLY:
        out.append("/")
    return out


def parameters(name: str, thing: object, in_method: bool, first: str = "", known: Types = PARAMETERS) -> str:
    """The parameter list of a callable; anything at all where it does not tell."""
    try:
        given = list(inspect.signature(thing).parameters.values())  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return ", ".join(
            filter(None, [first or ("self" if in_method else ""), "*args: Any", "**kwargs: Any"])
        )
    if in_method and isinstance(thing, types.FunctionType) and given:
        # A function that became a method: its first parameter is the object, whatever it is called.
        given[0] = given[0].replace(name="self")
    known = {**known, **EXCEPTIONS.get(name, {})} if known is PARAMETERS else known
    return ", ".join([first] * bool(first) + written(given, in_method, annotated(thing), known))


def summary(thing: object) -> str:
    """The first paragraph of a docstring as a body on one line, `...` where there is none."""
    paragraph = (getattr(thing, "__doc__", None) or "").strip().split("\n\n")[0]
    if not paragraph:
        return "..."
    line = " ".join(paragraph.split()).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{line} """' if line.endswith('"') else f'"""{line}"""'


def definition(name: str, arguments: str, result: str, body: str) -> str:
    """One function of a stub."""
    if body == "...":
        return f"def {name}({arguments}) -> {result}: ..."
    return f"def {name}({arguments}) -> {result}:\n    {body}"


def overloads(name: str, first: str, last: str, body: str) -> str:
    """A function of the table OVERLOADS, with its first parameter and what follows the others."""
    pieces = []
    for arguments, returned in OVERLOADS[name]:
        star = "*, " if last and "*" not in arguments else ""
        listed = ", ".join(
            filter(None, [first, arguments, f"{star}{last}" if last and returned == "Tensor" else ""])
        )
        pieces.append("@overload\n" + definition(name, listed, returned, body))
    return "\n".join(pieces)


def result(name: str, member: object, owner: type) -> str:
    """What a method returns."""
    declared = annotated(member).get("return", "Any")
    if declared != "Any":
        return declared
    if owner.__name__ == "Tensor":
        return RETURNS.get(name, "Tensor")
    return BOOL if name in COMPARISONS else RETURNS.get(name, "Any")


def in_place_of(name: str, owner: type) -> object:
    """The method whose in-place form this one is, so that both have the same parameters."""
    return getattr(owner, name[:-1], None) if name.endswith("_") and not name.endswith("__") else None


def method(name: str, member: object, owner: type) -> str:
    """A method, class method or static method of `owner`."""
    bound = getattr(owner, name)
    known = PARAMETERS if owner.__name__ == "Tensor" and name != "__new__" else OF_ANY_CLASS
    if isinstance(member, staticmethod):
        body = (parameters(name, bound, False, known=known), result(name, bound, owner), summary(bound))
        return "@staticmethod\n" + definition(name, *body)
    if isinstance(member, (classmethod, types.ClassMethodDescriptorType)):
        body = (parameters(name, bound, True, "cls", known), result(name, bound, owner), summary(bound))
        return "@classmethod\n" + definition(name, *body)
    body_text = "..." if name.startswith("__") else summary(member)
    if name in OVERLOADS and owner.__name__ == "Tensor":
        return overloads(name, "self", "", body_text)
    listed = parameters(name, member, True, known=known)
    plain = in_place_of(name, owner)
    if plain is not None and listed == "self, *args: Any, **kwargs: Any":
        listed = parameters(name[:-1], plain, True)
    return definition(name, listed, result(name, member, owner), body_text)


def attribute(name: str, member: object) -> str:
    """A property, with its setter if it has one."""
    kind = PROPERTIES.get(name, "Any")
    text = "@property\n" + definition(name, "self", kind, summary(member))
    if name in WRITABLE:
        text += f"\n@{name}.setter\n" + definition(name, f"self, value: {kind}", "None", "...")
    return text


def written_class(owner: type) -> str:
    """A class with everything that it defines itself."""
    bases = [base.__name__ for base in owner.__bases__ if base is not object]
    pieces = [body] if (body := summary(owner)) != "..." else []
    # Exceptions and other classes of Python's own making inherit their constructor.
    if "__new__" in vars(owner):
        pieces.append(
            definition("__new__", parameters("__new__", owner, True, "cls", OF_ANY_CLASS), "Self", "...")
        )
    for name, member in sorted(vars(owner).items()):
        if name in DULL or name == "__init__":
            continue
        if member is None and name == "__hash__":
            pieces.append("__hash__: ClassVar[None]  # type: ignore[assignment]")
        elif isinstance(member, (types.GetSetDescriptorType, types.MemberDescriptorType, property)):
            pieces.append(attribute(name, member))
        elif callable(member) or isinstance(member, (staticmethod, classmethod)):
            pieces.append(method(name, member, owner))
        elif not name.startswith("__"):
            pieces.append(f"{name}: ClassVar[{type_name(member, owner)}]")
    head = f"class {owner.__name__}({', '.join(bases)}):" if bases else f"class {owner.__name__}:"
    return head + "\n" + textwrap.indent("\n".join(pieces) or "...", "    ")


def is_function(value: object) -> bool:
    """Whether this is a function; a dtype can be called as well."""
    return callable(value) and not inspect.isclass(value) and type(value).__name__ != "dtype"


def type_name(value: object, owner: type | None = None) -> str:
    """The type of a constant."""
    kind = type(value)
    if kind is owner or kind.__module__.startswith("wengert"):
        return kind.__name__
    return f"builtins.{kind.__name__}" if kind.__module__ == "builtins" else "Any"


def generate(module: types.ModuleType) -> str:
    """The stub of the extension: constants, classes (bases first), functions, each in alphabetical order."""
    named = sorted(vars(module).items())
    members = [(n, v) for n, v in named if (n == "__version__" or n[:2] != "__") and not inspect.ismodule(v)]
    classes = sorted(
        (v for _, v in members if inspect.isclass(v)), key=lambda c: (len(c.__mro__), c.__name__)
    )
    constants = [f"{n}: {type_name(v)}" for n, v in members if not is_function(v) and not inspect.isclass(v)]
    aliases = [f"{n} = {v.__name__}" for n, v in members if inspect.isclass(v) and n != v.__name__]
    classes_written = [written_class(owner) for owner in classes]
    functions = []
    for name, member in members:
        if is_function(member):
            if member.__module__ == "wengert" and hasattr(module.Tensor, name):
                functions.append(function_of_method(name, member, module.Tensor))
                continue
            if name in OVERLOADS:
                functions.append(overloads(name, "", "", summary(member)))
                continue
            returned = MAKERS.get(name) or RETURNS.get(name, "Any")
            listed = parameters(name, member, False, known={} if name.startswith("_") else PARAMETERS)
            functions.append(definition(name, listed, returned, summary(member)))
    blocks = ["\n".join(constants), *classes_written, "\n".join(aliases), "\n".join(functions)]
    return f"{CORE_HEADER}{ALIASES}\n\n" + "\n\n".join(block for block in blocks if block) + "\n"


def function_of_method(name: str, function: object, owner: type) -> str:
    """A function that follows from a method: its first argument may be an array, and it takes `out`."""
    member = getattr(owner, name)
    in_place = name.endswith("_")
    first, last = ("input: Tensor", "") if in_place else ("input: _Input", "out: Tensor | None = None")
    if name in OVERLOADS:
        return overloads(name, first, last, summary(function))
    plain = in_place_of(name, owner)
    source = plain if plain is not None and isinstance(member, types.FunctionType) else member
    given = list(inspect.signature(source).parameters.values())[1:]  # type: ignore[arg-type]
    known = {**PARAMETERS, **EXCEPTIONS.get(name, {})}
    returned = result(name, member, owner)
    listed = [first, *written(given, False, annotated(source), known)]
    if last and returned in ("Tensor", "_Along"):
        kinds = {parameter.kind for parameter in given}
        marked = kinds & {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL}
        many = "Sequence[Tensor] | None = None"
        listed += ["*"] * (not marked) + [last if returned == "Tensor" else f"out: {many}"]
    return definition(name, ", ".join(listed), returned, summary(function))


def imports(module: str, names: list[str]) -> str:
    """An import, one name a line."""
    return f"from {module} import (\n{''.join(f'    {name},' + chr(10) for name in names)})\n"


def generate_functions(package: types.ModuleType) -> str:
    """The list of functions: builtins of the core that the package does not import itself, and what Python
    code composes of others; families are the modules of `composed`.
    """
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    elsewhere = {
        name.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "wengert._functions"
        for name in node.names
    }
    core = package._core
    listed = {name for name, value in vars(core).items() if inspect.isbuiltin(value) and name[0] != "_"}
    parts = {"wengert._core": sorted(listed - elsewhere - INTERNAL)}
    parts["wengert._tensordot"] = ["tensordot"]
    for _, name, _ in pkgutil.iter_modules([str(PACKAGE / "composed")]):
        family = importlib.import_module(f"wengert.composed.{name}")
        own = {n: getattr(family, n) for n in getattr(family, "__all__", [])}
        # A method that is no function is the method itself.
        names = [
            n for n, value in own.items() if not hasattr(core, n) and value is not vars(package.Tensor).get(n)
        ]
        if names and name[0] != "_":
            parts[family.__name__] = sorted(names)
    everything = sorted(name for names in parts.values() for name in names)
    lists = "".join(imports(module, names) for module, names in parts.items() if module != "wengert._core")
    exported = "".join(f'    "{name}",\n' for name in everything)
    return f"{FUNCTIONS_HEADER}{lists}\n__all__ = [\n{exported}]\n"


def stubs() -> dict[Path, str]:
    """Every generated file: where it lies, and its text."""
    return {
        PACKAGE / "_core.pyi": generate(importlib.import_module("wengert._core")),
        PACKAGE / "_functions.py": generate_functions(importlib.import_module("wengert")),
    }


def main() -> int:
    """Generate, then write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="compare with the committed files; exit 1 if one differs"
    )
    importlib.import_module("wengert")
    differ = 0
    if not parser.parse_args().check:
        for path, text in stubs().items():
            path.write_text(text, encoding="utf-8")
            print(f"{path}: {len(text.splitlines())} lines")
        return 0
    for path, new in stubs().items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = (old.splitlines(True), new.splitlines(True))
        sys.stdout.writelines(difflib.unified_diff(*lines, str(path), "the built module", n=1))
        differ |= old != new
    if differ:
        print("a stub is out of date: run `make stubs`")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())

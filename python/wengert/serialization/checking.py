"""What the pickle in a file may say: plain data, in proportion to its length."""

import pickle
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sized
from typing import Any, ClassVar

from wengert import _core
from wengert._core import Tensor
from wengert.serialization.allowed import allowed, is_allowed
from wengert.serialization.plain_data import CALLED, SAFE

__all__ = ["Checking", "Trusting", "check_pickle", "is_bytes", "shown"]

# Containers in containers that `load` follows; `save` itself ends at Python's limit of recursion.
_DEPTH = 1000


class Trusting(pickle.Unpickler):
    """Runs what the file says."""

    def __init__(self, file: Any, persistent_load: Callable[[Any], Any]) -> None:
        super().__init__(file)
        self.persistent_load = persistent_load  # type: ignore[method-assign]


# Python's own, whose steps can be looked at; the one in C runs them unseen.
class Checking(pickle._Unpickler):
    """Refuses names that are not plain data, calls that make more than the file holds, and keys that take
    long to hash.
    """

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, file: Any, persistent_load: Callable[[Any], Any], size: int) -> None:
        super().__init__(file)
        self.persistent_load = persistent_load  # type: ignore[method-assign, assignment]
        # How many elements and bytes calls may copy: as many as the file has bytes.
        self.left = size

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the file stands for."""
        if (module, name) in SAFE:
            return SAFE[module, name]
        if module.split(".")[0] == "wengert":
            found = getattr(_core, name, None)
            if isinstance(found, _core.dtype) or found is _core.device:
                return found
            found = getattr(sys.modules.get(module), name, None)
            if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields"):
                return found
        if (found := allowed(module, name)) is not None:
            return found
        raise pickle.UnpicklingError(
            f"load: the file names {module}.{name}, which is not plain data; allow it by "
            "wengert.serialization.safe_globals, or, if you trust whoever wrote the file, load it with "
            "weights_only=False, which runs what it says"
        )

    def call(self, function: Any, args: tuple[Any, ...]) -> Any:
        """What a call in the file returns."""
        if is_allowed(function):
            return function(*args)
        is_result = (
            isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields")
        )
        if not is_result and not any(function is known for known in (*CALLED, _core.device)):
            raise pickle.UnpicklingError(f"load: the file calls {shown(function)}, which `save` never does")
        if function is bytearray and args and not is_bytes(args):
            raise pickle.UnpicklingError(f"load: a bytearray of {shown(args[0])} is named, not of bytes")
        if function is Counter and args and not isinstance(args[0], dict):
            raise pickle.UnpicklingError("load: a Counter of what is no dictionary")
        if (
            (function is OrderedDict and args)
            or (function is defaultdict and len(args) > 1)
            or (function is deque and args and args[0])
        ):
            raise pickle.UnpicklingError("load: a container is made of its elements, which `save` never does")
        if function is not range:
            self.spend(args)
        return function(*args)

    def spend(self, parts: Iterable[Any]) -> None:
        """Counts what a call copies; raises where that is more than the file holds."""
        for x in parts:
            if isinstance(x, range):
                raise pickle.UnpicklingError("load: a range is written out, which `save` never does")
            self.left -= x.nbytes if isinstance(x, Tensor) else len(x) if isinstance(x, Sized) else 0
        if self.left < 0:
            raise pickle.UnpicklingError("load: the file copies more than it holds")

    def load_reduce(self) -> None:
        args = self.stack.pop()
        self.stack[-1] = self.call(self.stack[-1], args)

    def load_newobj(self) -> None:
        args = self.stack.pop()
        kind = self.stack[-1]
        is_class = isinstance(kind, type)
        if not is_class or not (kind in CALLED or is_allowed(kind) or issubclass(kind, tuple)):
            raise pickle.UnpicklingError(f"load: the file makes {shown(kind)}, which `save` never does")
        if not is_allowed(kind):
            self.spend(args)
        self.stack[-1] = kind.__new__(kind, *args)

    def load_build(self) -> None:
        """Sets attributes: of an OrderedDict, as of a state dict, and of what the program allows."""
        state, kind = self.stack[-1], type(self.stack[-2])
        if not is_allowed(kind) and not (kind is OrderedDict and isinstance(state, dict)):
            raise pickle.UnpicklingError(f"load: the file sets attributes of {shown(self.stack[-2])}")
        super().load_build()  # type: ignore[misc]

    def refuse(self) -> None:
        raise pickle.UnpicklingError("load: the file has a step that `save` never takes")

    def check_keys(self, keys: Iterable[Any]) -> None:
        """Raises for keys that are nested deep: each level may double what hashing them takes."""
        for key in keys:
            if not isinstance(key, (tuple, frozenset)):
                continue
            if _depth(key, _KEY_DEPTH) > _KEY_DEPTH:
                raise pickle.UnpicklingError(f"load: a key is nested more than {_KEY_DEPTH} deep")
            if _parts(key, {}) > _KEY_PARTS:
                raise pickle.UnpicklingError(f"load: a key has more than {_KEY_PARTS} parts")

    def check_dictionary(self) -> None:
        """Raises unless elements are added to a dictionary: those of a list may be slices."""
        if not isinstance(self.stack[-1], dict) and not is_allowed(type(self.stack[-1])):
            raise pickle.UnpicklingError(f"load: the file sets elements of {shown(self.stack[-1])}")

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.check_keys([key])
        self.check_dictionary()
        self.stack[-1][key] = value

    def load_setitems(self) -> None:
        items = self.pop_mark()
        self.check_keys(items[::2])
        self.check_dictionary()
        for key, value in zip(items[::2], items[1::2]):
            self.stack[-1][key] = value

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.check_keys(items[::2])
        self.append(dict(zip(items[::2], items[1::2])))

    def load_additems(self) -> None:
        items = self.pop_mark()
        self.check_keys(items)
        self.stack[-1].update(items)

    def load_frozenset(self) -> None:
        items = self.pop_mark()
        self.check_keys(items)
        self.append(frozenset(items))


for _name in ("reduce", "newobj", "build", "setitem", "setitems", "dict", "additems", "frozenset"):
    Checking.dispatch[getattr(pickle, _name.upper())[0]] = getattr(Checking, f"load_{_name}")
for _name in ("NEWOBJ_EX", "INST", "OBJ", "EXT1", "EXT2", "EXT4"):
    Checking.dispatch[getattr(pickle, _name)[0]] = Checking.refuse


# Tuples in tuples that a key may be, and how many parts it may have, those that stand in several places
# counted there.
_KEY_DEPTH = 8
_KEY_PARTS = 100_000


def is_bytes(args: tuple[Any, ...]) -> bool:
    """Whether these are bytes, or the text that early protocols of pickle write for them."""
    if len(args) == 1:
        return isinstance(args[0], bytes)
    return len(args) == 2 and isinstance(args[0], str) and args[1] in ("latin1", "latin-1")


def shown(thing: Any) -> str:
    """What a message calls a thing from a file, in few words: the text of containers may be without end."""
    if isinstance(thing, type) or (callable(thing) and hasattr(thing, "__qualname__")):
        return str(getattr(thing, "__qualname__", thing))[:80]
    if isinstance(thing, (str, bytes, int, float, bool, type(None))):
        return repr(thing)[:80]
    return f"a {type(thing).__name__}"


def _parts(key: Any, known: dict[int, int]) -> int:
    """How many parts are visited where a key is hashed."""
    if not isinstance(key, (tuple, frozenset)):
        return 1
    if id(key) not in known:
        known[id(key)] = 1 + sum(_parts(part, known) for part in key)
    return known[id(key)]


def _depth(key: Any, most: int) -> int:
    """How deep a key is nested, as far as one level more than `most`."""
    if not isinstance(key, (tuple, frozenset)):
        return 0
    parts = {
        id(part): part for part in key
    }.values()  # each once: shared parts would be walked again and again
    return 1 if most < 0 else 1 + max((_depth(part, most - 1) for part in parts), default=0)


# Steps of a pickle that add to the container below what they take from the stack.
_FILL = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}


def check_pickle(data: bytes) -> None:
    """Raises for a pickle that would take memory or depth out of all proportion to its length."""
    import pickletools

    # How deep each object on the stack, and each that is noted, goes; None is a mark.
    stack: list[int | None] = []
    notes: dict[int, int | None] = {}
    for count, (code, argument, _) in enumerate(pickletools.genops(data)):
        name = code.name
        if name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            place = len(notes) if name == "MEMOIZE" else int(argument or 0)
            if place > count:
                raise pickle.UnpicklingError(f"load: place {place} of the memo is used after {count} steps")
            notes[place] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(notes.get(int(argument or 0), 0))
        elif name == "MARK":
            stack.append(None)
        elif name == "DUP":
            stack.append(stack[-1])
        else:
            _step(stack, name, code)
            if stack and (stack[-1] or 0) > _DEPTH:
                raise pickle.UnpicklingError(f"load: containers are nested more than {_DEPTH} deep")


def _step(stack: list[int | None], name: str, code: Any) -> None:
    """Replaces what a step of a pickle takes from the stack by what it leaves there."""
    taken: list[int | None] = []
    kinds = [kind.name for kind in code.stack_before]
    if "mark" in kinds:
        while (top := stack.pop()) is not None:
            taken.append(top)
        kinds = kinds[: kinds.index("mark")]
    taken += [stack.pop() for _ in kinds]
    depths = [depth or 0 for depth in taken]
    if name in _FILL:
        deepest = max(depths[-1], max(depths[:-1], default=-1) + 1)
    else:
        deepest = max(depths, default=-1) + 1
    stack += [deepest] * len(code.stack_after)

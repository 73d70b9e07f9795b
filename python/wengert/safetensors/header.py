"""The header of a file: names, dtypes, shapes and places of tensors, and texts about them.

A file is the length of the header in 8 bytes, the header in JSON, and the elements of all tensors behind each
other, in row-major order and little-endian. The header of a file from elsewhere is read by a grammar of its
own, and compared with the length of the file, before anything is made: JSON's own parser takes any depth, and
the last of equal names.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["BITS", "NAMES", "Entry", "Header", "SafetensorError", "read_header", "write_header"]

#: What the format calls the dtypes, in the order of files: what needs the widest alignment is first.
NAMES = {
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
    "F32": "float32",
    "U32": "uint32",
    "I32": "int32",
    "BF16": "bfloat16",
    "F16": "float16",
    "U16": "uint16",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "BOOL": "bool",
}
#: Bits of an element, those of dtypes that have no counterpart here included.
BITS = {
    **{kind: 8 * max(1, int(re.sub(r"\D", "", kind) or 8) // 8) for kind in NAMES},
    **dict.fromkeys(("F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
#: The longest header that is read, the limit of the package too.
LIMIT = 100_000_000
# What stands before the names of tensors, and may not be one.
_METADATA = "__metadata__"
# The text of one tensor, which has neither names with braces in it nor more axes than these characters hold.
_ENTRY = re.compile(r"\{[^{}]{0,4000}\}")
_SPACES = " \t\n\r"
_SPACE = re.compile(f"[{_SPACES}]*+")
_JSON = json.JSONDecoder()
_PAIRS = json.JSONDecoder(object_pairs_hook=list)
_FIELDS = {"dtype", "shape", "data_offsets"}


class SafetensorError(ValueError):
    """A file is no safetensors file, or a damaged one.

    Example:
        >>> try:
        ...     wg.safetensors.load(b"{}")
        ... except wg.safetensors.SafetensorError as error:
        ...     print(error)
        safetensors: a file of 2 bytes is too short to be one
    """


class Entry(NamedTuple):
    """A tensor in a file."""

    kind: str
    shape: tuple[int, ...]
    begin: int
    end: int


class Header(NamedTuple):
    """What a file says of itself; tensors are in the order of their places."""

    entries: dict[str, Entry]
    metadata: dict[str, str] | None
    start: int


def _shown(text: str) -> str:
    """A text of a file in a message."""
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


class _Scanner:
    """Reads the text of a header from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def error(self, expected: str) -> SafetensorError:
        found = self.text[self.at : self.at + 20]
        return SafetensorError(
            f"safetensors: {expected} expected at character {self.at} of the header, got {found!r}; the file "
            f"is damaged"
        )

    def peek(self) -> str:
        """The next character that is no space."""
        found = self.text[self.at : self.at + 1]
        if found not in _SPACES or not found:
            return found
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.text[self.at : self.at + 1]

    def take(self, character: str) -> None:
        if self.peek() != character:
            raise self.error(repr(character))
        self.at += 1

    def string(self) -> str:
        if self.peek() != '"':
            raise self.error("a text")
        try:
            found, end = _JSON.raw_decode(self.text, self.at)
            found.encode()  # halves of pairs are no text
        except ValueError:
            raise self.error("a text") from None
        self.at = end
        return str(found)

    def pairs(self) -> Iterable[str]:
        """The keys of an object, each to be followed by what takes its value."""
        self.take("{")
        if self.peek() != "}":
            yield self.key()
        while self.peek() != "}":
            self.take(",")
            yield self.key()
        self.at += 1

    def key(self) -> str:
        found = self.string()
        self.take(":")
        return found

    def texts(self) -> dict[str, str]:
        """An object of texts."""
        found: dict[str, str] = {}
        for key in self.pairs():
            if key in found:
                raise SafetensorError(f"safetensors: the metadata has {_shown(key)} twice")
            found[key] = self.string()
        return found

    def entry(self, name: str) -> Entry:
        """What an object says of a tensor."""
        self.peek()
        found = _ENTRY.match(self.text, self.at)
        if found is None:
            raise self.error(f"dtype, shape and data_offsets of {_shown(name)}")
        self.at = found.end()
        try:
            pairs: Any = _PAIRS.decode(found.group())
            fields = dict(pairs)
        except (ValueError, TypeError, RecursionError):
            pairs, fields = [], {}
        whole = lambda x: isinstance(x, list) and all(type(n) is int and 0 <= n < 2**63 for n in x)
        if not (
            len(pairs) == len(_FIELDS)
            and set(fields) == _FIELDS
            and isinstance(fields["dtype"], str)
            and whole(fields["shape"])
            and whole(fields["data_offsets"])
            and len(fields["data_offsets"]) == 2
            and "-" not in found.group()  # -0
        ):
            raise SafetensorError(
                f"safetensors: {_shown(name)} is described by {_shown(found.group())}, where a dtype, a "
                "shape and two data_offsets are expected"
            )
        return Entry(fields["dtype"], tuple(fields["shape"]), *fields["data_offsets"])


def _check(name: str, entry: Entry, begin: int) -> None:
    """Raises unless a tensor begins there and is as long as its shape says."""
    kind, shape, start, end = entry
    if kind not in BITS:
        raise SafetensorError(f"safetensors: {_shown(name)} is of an unknown dtype, {_shown(kind)}")
    if start != begin or end < start:
        found = f"{_shown(name)} lies in bytes {start} to {end}"
        raise SafetensorError(
            f"safetensors: {found}, where the tensor before it ends at {begin}; tensors follow each other "
            "without holes and do not overlap"
        )
    if math.prod(n or 1 for n in shape) >= 2**60:
        raise SafetensorError(f"safetensors: {_shown(name)} has a shape beyond every memory")
    if math.prod(shape) * BITS[kind] != 8 * (end - start):
        raise SafetensorError(
            f"safetensors: {_shown(name)} has {end - start} bytes, which do not make its shape "
            f"{_shown(str(list(shape)))} of {kind}"
        )


def read_header(data: Any) -> Header:
    """What a file says that these bytes are; raises where it cannot be true.

    Raises:
        SafetensorError: the bytes are not a whole file of the format.
    """
    size = len(data)
    if size < 8:
        raise SafetensorError(f"safetensors: a file of {size} bytes is too short to be one")
    length = int.from_bytes(data[:8], "little")
    if length > min(LIMIT, size - 8):
        other = "a zip archive, as wengert.save and torch.save write; read it with wengert.load"
        raise SafetensorError(
            f"safetensors: a header of {length} bytes is announced in a file of {size}; headers have at most "
            f"{LIMIT}; the file is {other if data[:2] == b'PK' else 'another one, or is cut off'}"
        )
    first = bytes(data[8 : 8 + min(length, 1)])
    if first != b"{":
        raise SafetensorError(f"safetensors: the header begins with {first!r}, not with b'{{'")
    try:
        text = bytes(data[8 : 8 + length]).decode()
    except UnicodeDecodeError as error:
        raise SafetensorError(f"safetensors: the header is not UTF-8 ({error.reason})") from None
    scanner = _Scanner(text)
    entries: dict[str, Entry] = {}
    metadata = None
    for name in scanner.pairs():
        if name in entries or (name == _METADATA and metadata is not None):
            raise SafetensorError(f"safetensors: the header has {_shown(name)} twice")
        if name == _METADATA:
            metadata = scanner.texts()
        else:
            entries[name] = scanner.entry(name)
    if scanner.peek():
        raise scanner.error("the end")
    entries = dict(sorted(entries.items(), key=lambda item: item[1][2:]))
    place = 0
    for name, entry in entries.items():
        _check(name, entry, place)
        place = entry.end
    if place != size - 8 - length:
        raise SafetensorError(
            f"safetensors: the tensors have {place} bytes, and the file {size - 8 - length} behind its "
            "header; the file is cut off, or something is appended to it"
        )
    return Header(entries, metadata, 8 + length)


def write_header(
    tensors: Iterable[tuple[str, str, tuple[int, ...]]], metadata: dict[str, str] | None
) -> bytes:
    """The bytes before the elements of tensors, which are given by name, kind and shape and lie in this
    order."""
    header: dict[str, Any] = {} if metadata is None else {_METADATA: metadata}
    place = 0
    for name, kind, shape in tensors:
        end = place + math.prod(shape) * BITS[kind] // 8
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": (place, end)}
        place = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the elements are aligned
    if len(text) > LIMIT:
        raise ValueError(f"safetensors: names, shapes and metadata make {len(text)} bytes, more than {LIMIT}")
    return len(text).to_bytes(8, "little") + text

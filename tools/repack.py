"""Compresses wheels again, with an encoder that looks longer for short codes: python tools/repack.py dist

The format is the same (deflate), so every installer reads it. Zopfli saves 3 % of the module, which takes a
minute and a half.
"""

import pathlib
import sys
import zipfile
from typing import Any

import zopfli.zlib


class Encoder:
    """What `zipfile` asks of a compressor: the raw stream, at the end."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def compress(self, data: bytes) -> bytes:
        """Keeps the data."""
        self._parts.append(bytes(data))
        return b""

    def flush(self) -> bytes:
        """Returns the stream without the header and the checksum of zlib."""
        # As many blocks as pay: the module has more than the default of 15 a megabyte.
        settings = {"numiterations": 4, "blocksplittingmax": 0}
        return bytes(zopfli.zlib.compress(b"".join(self._parts), **settings)[2:-4])


def repack(path: pathlib.Path) -> None:
    """Writes the members of a wheel anew, in their order, with their dates and rights."""
    before, made = path.stat().st_size, path.with_suffix(".repacked")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for member in old.infolist():
            new.writestr(member, old.read(member))
    made.replace(path)
    print(f"{path.name}: {before:,} bytes, {path.stat().st_size:,} repacked")


def main() -> None:
    """Repacks all wheels of the folders given."""
    compressor: Any = lambda *_: Encoder()
    # The only place where the module takes another compressor.
    zipfile._get_compressor = compressor  # type: ignore[attr-defined]
    for folder in sys.argv[1:]:
        for path in sorted(pathlib.Path(folder).glob("wengert-*.whl")):
            repack(path)


if __name__ == "__main__":
    main()

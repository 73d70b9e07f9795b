"""Files of safetensors, byte by byte."""

import json
from pathlib import Path
from typing import Any


def written(header: Any, data: bytes = b"", padding: int = 0) -> bytes:
    """A file with this header, a text or what JSON makes of anything else."""
    text = (
        header
        if isinstance(header, bytes)
        else (header if isinstance(header, str) else json.dumps(header)).encode()
    )
    text += b" " * padding
    return len(text).to_bytes(8, "little") + text + data


def entry(kind: str, shape: Any, begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


def at(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path

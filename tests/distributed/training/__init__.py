"""Programs about training, which tests start on several ranks."""

import os
from pathlib import Path
from typing import Any

from distributed.running import run

HERE = Path(__file__).parent


def program(name: str) -> str:
    """The text of a program."""
    return (HERE / f"{name}.py").read_text(encoding="utf-8")


def paths() -> str:
    """Where programs find what they import from here."""
    return os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])


def ran(count: int, name: str, folder: Path, **environment: Any) -> list[str]:
    """What each rank of a program prints, which must end well; every call has a folder of its own."""
    own = folder / f"{name}-{count}"
    own.mkdir()
    return run(count, program(name), own, PYTHONPATH=paths(), **environment)

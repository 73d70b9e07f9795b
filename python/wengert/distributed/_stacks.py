"""The line of a process that keeps Python's lock, and so cannot answer: a signal lets `faulthandler` write it
down, into memory that other processes of the host can read.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import threading
import time
from dataclasses import dataclass

from wengert.distributed import _lines

__all__ = ["Stacks", "prepare", "read"]

# Linux alone has both of these; nobody uses a signal of this number by chance.
_SIGNAL = signal.SIGRTMIN + 11 if hasattr(signal, "SIGRTMIN") and hasattr(os, "memfd_create") else None
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


@dataclass
class Stacks:
    """Where a process writes the stacks of its threads."""

    process: int
    file: int
    main_thread: int


def prepare() -> Stacks | None:
    """Lets the signal write the stacks of this process."""
    if _SIGNAL is None or signal.getsignal(_SIGNAL) is not signal.SIG_DFL:
        return None
    file = os.memfd_create("wengert stacks")
    faulthandler.register(_SIGNAL, file=file, all_threads=True)
    return Stacks(os.getpid(), file, threading.main_thread().ident or 0)


def read(stacks: Stacks) -> str:
    """The line of the main thread of a process on this host, or nothing."""
    block = ""
    with (
        contextlib.suppress(OSError),
        open(f"/proc/{stacks.process}/fd/{stacks.file}", encoding="utf-8") as file,
    ):
        file.seek(0, os.SEEK_END)
        assert _SIGNAL is not None
        os.kill(stacks.process, _SIGNAL)
        # The main thread's stack is written whole when another's, or nothing, follows.
        deadline = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            time.sleep(0.05)
            block += file.read()
    _, _, own = block.partition(f"0x{stacks.main_thread:016x}")
    frames = [(path, int(number), name) for path, number, name in _FRAME.findall(own.partition("\n\n")[0])]
    users = [frame for frame in frames if not _lines.is_library(frame[0])]
    return _lines.format_line((users or frames)[0]) if frames else ""

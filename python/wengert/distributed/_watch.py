"""The thread of each rank that answers the others: where the rank is, and whether it failed, left or died.

A rank that waits too long asks all others where they are. A rank that fails hands its traceback to rank 0,
which writes it once and ends all. Messages go through a communicator of their own, whatever the program does;
the thread looks for them ten times a second.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import socket
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable
from typing import Any

from wengert.distributed import _lines, _mpi, _stacks
from wengert.distributed._reports import (
    Failure,
    Place,
    describe_loss,
    describe_stuck,
    format_failures,
    format_interrupts,
)

__all__ = ["Watch"]

#: Seconds between two looks, for an answer, until the tracebacks of other ranks are there, and until a rank
#: that failed ends all ranks itself, because rank 0 does not.
INTERVAL, ANSWER, COLLECT, PATIENCE = 0.1, 2.0, 0.3, 5.0


class Question:
    """Where are you: asked of all ranks at once."""

    def __init__(self, ranks: set[int], then: Callable[[dict[int, Place]], None]) -> None:
        self.waits_for = ranks
        self.then = then
        self.answers: dict[int, Place] = {}
        self.deadline = time.monotonic() + ANSWER


class Watch:
    """The watching thread of this rank.

    Args:
        communicator: of all ranks, for the messages of these threads alone.
    """

    def __init__(self, communicator: Any) -> None:
        self.rank: int = communicator.Get_rank()
        self.size: int = communicator.Get_size()
        #: The groups that this rank is in.
        self.groups: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        #: Of the ranks whose program has ended: how often each talked in each group.
        self.left: dict[int, dict[str, int]] = {}
        self.ending = False
        self._communicator = communicator
        self._main = threading.main_thread()
        self._actions: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._sends: list[Any] = []
        self._questions: dict[int, Question] = {}
        self._dead: set[int] = set()
        self._failed: list[Failure] = []
        self._failed_at = ""
        self._judged = 0.0
        self._flushed: set[int] = set()
        self._looked = 0.0
        self._stopped = False
        namespace = ""
        with contextlib.suppress(OSError):
            namespace = os.readlink("/proc/self/ns/pid")
        self._processes = communicator.allgather(
            (socket.gethostname(), namespace, os.getpid(), _stacks.prepare())
        )
        self._neighbour = self._next_here()
        self._thread = threading.Thread(target=self._work, name="wengert ranks", daemon=True)
        self._thread.start()
        _mpi.watched.append(True)
        self._hook, sys.excepthook = sys.excepthook, self._excepthook
        _mpi.on_exit(self._leave)

    # What other threads ask for.

    def places(self) -> dict[int, Place]:
        """Returns where all ranks are; those that do not answer are said to do so."""
        answered = threading.Event()
        found: dict[int, Place] = {}

        def then(answers: dict[int, Place]) -> None:
            found.update(answers)
            answered.set()

        self._post(lambda: self._ask(then))
        answered.wait(2 * ANSWER)
        return found

    def fail(self, kind: str, text: str) -> None:
        """Ends all ranks with this text, which rank 0 writes; does not return.

        Args:
            kind: failures of one kind on several ranks are written once.
            text: what happened, a traceback for instance.
        """
        self._post(lambda: self._hand_in(kind, text))
        time.sleep(PATIENCE)
        self._end_all([Failure(self.rank, kind, text)])

    # The thread.

    def _post(self, action: Callable[[], None]) -> None:
        self._actions.put(action)
        self._wake.set()

    def _work(self) -> None:
        while not self._stopped:
            # The end of a program should not take longer than it must.
            self._wake.wait(INTERVAL / 20 if self.rank in self.left else INTERVAL)
            self._wake.clear()
            while not self._actions.empty():
                self._actions.get()()
            while message := self._communicator.improbe():
                kind, sender, content = message.recv()
                getattr(self, f"_on_{kind}")(sender, content)
            self._sends = [request for request in self._sends if not request.Test()]
            self._look()

    def _send(self, rank: int, kind: str, content: Any = None) -> None:
        if rank == self.rank:
            getattr(self, f"_on_{kind}")(rank, content)
        else:
            self._sends.append(self._communicator.isend((kind, self.rank, content), rank))

    def _send_all(self, kind: str, content: Any = None) -> None:
        for rank in set(range(self.size)) - self._dead:
            self._send(rank, kind, content)

    def _look(self) -> None:
        """What no message says: answers that do not come, a dead process, a transfer that does not end."""
        now = time.monotonic()
        for number, question in list(self._questions.items()):
            if not question.waits_for or now > question.deadline:
                del self._questions[number]
                silent = {rank: self._silent(rank) for rank in question.waits_for | self._dead}
                question.then(question.answers | silent)
        if self._judged and (now > self._judged + 1 or self._flushed >= set(range(self.size)) - self._dead):
            self._end_all(self._failed)
        if now < self._looked + 1:
            return
        self._looked = now
        gone = self._neighbour
        if gone is not None and gone not in self._dead | self.left.keys() and self._is_gone(gone):
            self._dead.add(gone)
            self._ask(lambda places: self._hand_in(f"lost {gone}", describe_loss(gone, places)))
        for group in list(self.groups.values()):
            began = group.moving
            if began and now > began + group.timeout:
                group.moving = now
                what = group.inside

                def then(places: dict[int, Place], group: Any = group, what: str = what) -> None:
                    self._hand_in("stuck", describe_stuck(group, what, places))

                self._ask(then)

    # Where ranks are.

    def _ask(self, then: Callable[[dict[int, Place]], None]) -> None:
        number = len(self._questions) + 1 + max(self._questions, default=0)
        self._questions[number] = Question(set(range(self.size)) - self._dead, then)
        self._send_all("ask", number)

    def _on_ask(self, sender: int, number: int) -> None:
        talks = {
            name: (group.count, group.inside, _lines.format_line(group.line))
            for name, group in self.groups.items()
        }
        frame = sys._current_frames().get(self._main.ident or 0)
        line = self._failed_at or _lines.format_line(_lines.line_of(frame))
        self._send(sender, "place", (number, Place(line, talks, self.rank in self.left)))

    def _on_place(self, sender: int, content: tuple[int, Place]) -> None:
        number, place = content
        if question := self._questions.get(number):
            question.answers[sender] = place
            question.waits_for.discard(sender)

    def _silent(self, rank: int) -> Place:
        """Why a rank does not answer, as far as its host knows."""
        host, _, process, stacks = self._processes[rank]
        state = "Z" if rank in self._dead else self._state(rank)
        reasons = {"Z": "gone: killed, or crashed", "T": "no answer: it is stopped"}
        reason = reasons.get(state, "no answer")
        if state not in ("", *reasons) and stacks is not None and (line := _stacks.read(stacks)):
            reason = f"no answer: it keeps Python's lock, at {line}"
        return Place("", {}, False, f"{reason} (process {process} on {host})")

    def _state(self, rank: int) -> str:
        """The letter of /proc for the state of a rank's process; empty where it cannot be seen from here."""
        if self._processes[rank][:2] != self._processes[self.rank][:2]:
            return ""
        try:
            with open(f"/proc/{self._processes[rank][2]}/stat", encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "Z" if os.path.exists("/proc/self/stat") else ""
        except OSError:
            return ""

    def _is_gone(self, rank: int) -> bool:
        return self._state(rank) == "Z"

    def _next_here(self) -> int | None:
        """The next rank on this host, in a ring: each looks after one other."""
        here = [rank for rank, p in enumerate(self._processes) if p[:2] == self._processes[self.rank][:2]]
        found = here[(here.index(self.rank) + 1) % len(here)]
        return found if found != self.rank and not self._is_gone(found) else None

    # Failures.

    def _excepthook(self, kind: type[BaseException], value: BaseException, trace: Any) -> None:
        if _mpi.in_child():
            self._hook(kind, value, trace)
            return
        frames = [frame for frame, _ in traceback.walk_tb(trace)]
        self._failed_at = _lines.format_line(_lines.line_of(frames[-1] if frames else None))
        if isinstance(value, KeyboardInterrupt):
            self.fail("Ctrl-C", f"at {self._failed_at}")
        # Whichever hook was there writes, into a text.
        written = io.StringIO()
        with contextlib.redirect_stderr(written):
            self._hook(kind, value, trace)
        self.fail("".join(traceback.format_exception_only(kind, value)), written.getvalue())

    def _hand_in(self, kind: str, text: str) -> None:
        judge = min(set(range(self.size)) - self._dead)
        self._send(judge, "failed", Failure(self.rank, kind, text))

    def _on_failed(self, sender: int, failure: Failure) -> None:
        """On rank 0: others have a moment to hand in what happened to them."""
        self._failed.append(failure)
        if not self._judged:
            self._judged = time.monotonic() + COLLECT
            self._send_all("end")

    def _on_end(self, sender: int, content: None) -> None:
        self.ending = True
        _flush()
        self._send(sender, "flushed")

    def _on_flushed(self, sender: int, content: None) -> None:
        self._flushed.add(sender)

    def _end_all(self, failed: list[Failure]) -> None:
        """Writes what happened, and ends all ranks."""
        _flush()
        # A starter may interrupt the others when a rank is gone.
        for rank in range(self.size):
            if self._is_gone(rank) and f"lost {rank}" not in {failure.kind for failure in failed}:
                text = f"{format_interrupts(failed)}  rank {rank}: {self._silent(rank).silent}\n"
                failed = [*failed, Failure(rank, f"lost {rank}", text)]
        _mpi.abort(format_failures(failed, self.size))

    # The end.

    def _leave(self) -> None:
        """Tells the others that this rank's program has ended, and waits for theirs, as MPI's end does."""
        talks = {name: group.count for name, group in self.groups.items()}
        self._post(lambda: self._send_all("left", talks))
        try:
            while len(self.left) < self.size or self._sends:
                time.sleep(INTERVAL / 10)
        except KeyboardInterrupt:
            self.fail("Ctrl-C", "at the end of its program")
        self._stopped = True
        self._wake.set()
        self._thread.join()

    def _on_left(self, sender: int, talks: dict[str, int]) -> None:
        self.left[sender] = talks


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()

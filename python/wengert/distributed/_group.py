"""A group of ranks that exchange bytes: an MPI communicator behind a few methods.

Whoever wants numbers added or tensors gathered asks the operations of the core, which know dtypes and call
these methods with flat buffers. So every dtype travels, and sums have the order of the core's own kernels.

Every operation begins with one small exchange, the same whatever the operation is: each rank says a hash of
what it is about to do, so that ranks that disagree find out before anything else is sent, and the bytes
themselves where they are few. It has a deadline, and Ctrl-C and errors of other ranks interrupt it; a
transfer, once all are there, is left to MPI. Ranks of one host say it in memory that they share, where sums
of few bytes need no Python at all (`src/py/group.rs`), unless somebody has to wait.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from wengert import _core
from wengert.distributed import _lines, _mpi, _signatures
from wengert.distributed._frames import Frames, MessageFrames, SharedFrames
from wengert.distributed._mpi import TIMEOUT, mpi
from wengert.distributed._reports import describe_exit, describe_timeout
from wengert.distributed._watch import Watch
from wengert.distributed._window import share_memory
from wengert.distributed.traffic import record_exchange

__all__ = ["TIMEOUT", "Group", "mpi", "world"]

# In this operation of a group its ranks try to share memory: many groups have fewer, and need none.
_OFTEN = 8
# Of so many groups made from one, ranks look which are still held.
_MANY = 64

_pause = getattr(os, "sched_yield", lambda: time.sleep(0))

# Operations that a rank gave up, with their groups; MPI may still write into their buffers.
_GIVEN_UP: list[Any] = []
_WATCH: list[Watch] = []
_NUMBERS = itertools.count(1)


@dataclass
class CurrentWorld:
    """The ranks that are there now; `costs` puts others in their place for a while."""

    #: All of them, once somebody asked, and those of `init_process_group`.
    everyone: Group | None = None
    default: Group | None = None


_CURRENT: list[CurrentWorld] = [CurrentWorld()]

_mpi.guard()


@dataclass
class OwnedCommunicator:
    """A communicator that a split made; freed when nobody holds its group any more, nor a part of it."""

    communicator: Any
    group: weakref.ref[Group]
    parts: list[OwnedCommunicator]

    def is_idle(self) -> bool:
        return self.group() is None and all(part.is_idle() for part in self.parts)

    def free(self) -> None:
        for part in self.parts:
            part.free()
        self.communicator.Free()


class Group:
    """The ranks of an MPI communicator; every method is called by all of them, in the same order.

    Args:
        communicator: of mpi4py; the group owns it.
        name: the same on all ranks, and no other group's.
        timeout: seconds that a rank waits for others; it may be changed later.

    `what` describes the operation in messages, with its shape and dtype; ranks whose descriptions differ
    disagree.
    """

    # See `wengert.jit`.
    _refused_by_programs = (
        "a group of ranks, such as DataParallel has: its messages are no part of a program; collectives of "
        "distributed.axis are"
    )

    def __init__(self, communicator: Any, name: str = "world", timeout: float = TIMEOUT) -> None:
        MPI = mpi()
        ranks = MPI.Group.Translate_ranks(communicator.Get_group(), None, MPI.COMM_WORLD.Get_group())
        self._begin(communicator.Get_rank(), list(ranks), name, timeout)
        self._communicator = communicator
        self._frames: Frames = MessageFrames(communicator)
        self._watch: Watch | None = _WATCH[0] if _WATCH else None
        if self._watch is not None:
            self._watch.groups[name] = self

    def _begin(self, rank: int, ranks: list[int], name: str, timeout: float) -> None:
        self.rank, self.size = rank, len(ranks)
        #: The ranks of the world that are in it.
        self.ranks = ranks
        self.name = name
        self.timeout = timeout
        #: No other group of this process has it, or had it.
        self.number = next(_NUMBERS)
        #: The axes that `mesh` made of it, by their lengths.
        self.meshes: dict[Any, Any] = {}
        # What splits made, and of how many the ranks ask each other which are still held.
        self._parts: list[OwnedCommunicator] = []
        self._many = _MANY
        #: The operation at work and the line that called it, if any; since when bytes move.
        self.inside, self.line, self.moving = "", _lines.NOWHERE, 0.0
        #: In how many operations ranks try to share memory.
        self._count, self._often = 0, _OFTEN
        self._window = _core._Window(rank, self.size)
        self._broken = ""
        self._watch = None

    @property
    def count(self) -> int:
        """How many operations have begun."""
        return self._count + self._window.count

    @property
    def members(self) -> Any:
        """Returns the ranks as the core's operations know them."""
        # Not kept: the group would hold itself, and never go.
        return _core._Ranks(self, self._window)

    def all_gather(self, sent: Any, received: Any, what: str = "") -> None:
        """Fills `received` with the `sent` bytes of all ranks, one after the other."""
        size = memoryview(received).nbytes
        if memoryview(sent).nbytes * self.size != size:
            raise ValueError(
                f"all_gather: {memoryview(sent).nbytes} bytes of {self.size} ranks do not make {size}"
            )
        self._run(what or f"all_gather of {size} bytes", "allgather", size, sent, received)

    def all_to_all(self, sent: Any, received: Any, what: str = "") -> None:
        """Sends part `i` of `sent` to rank `i`, gets part `i` of `received` from it. Parts are equal."""
        size = memoryview(received).nbytes
        if memoryview(sent).nbytes != size or size % self.size:
            raise ValueError(
                f"all_to_all: {memoryview(sent).nbytes} bytes sent and {size} received are no {self.size} "
                "equal parts each"
            )
        self._run(what or f"all_to_all of {size} bytes", "alltoall", size, sent, received)

    def exchange(self, sent: Any, to: int, received: Any, source: int, what: str = "") -> None:
        """Sends `sent` to the rank `to` and fills `received` from the rank `source`; -1 is no rank."""
        size = max(memoryview(received).nbytes, memoryview(sent).nbytes)
        null = mpi().PROC_NULL
        ends = (null if to < 0 else to, null if source < 0 else source)
        self._run(
            what or f"exchange of {size} bytes",
            "sendrecv",
            size,
            sent,
            ends[0],
            0,
            received,
            ends[1],
            0,
            partners=(to, source),
        )

    def broadcast(self, buffer: Any, root: int, what: str = "") -> None:
        """Fills `buffer` with that of the rank `root`."""
        size = memoryview(buffer).nbytes
        self._run(f"{what or f'broadcast of {size} bytes'} from rank {root}", "bcast", size, buffer, root)

    def barrier(self, what: str = "") -> None:
        """Returns when all ranks have called it."""
        self._run(what or "barrier", "barrier", 0)

    def split(self, color: int, key: int, what: str = "") -> Group:
        """Returns the group of the ranks with the same `color`, in the order of `key`."""
        communicator = self._run(what or "split", "Split", 0, color, key)
        made = Group(communicator, f"{self.name}/{self.count}.{color}", self.timeout)
        self._parts.append(OwnedCommunicator(communicator, weakref.ref(made), made._parts))
        if len(self._parts) >= self._many:
            self._free_idle()
        return made

    def _free_idle(self) -> None:
        """Frees communicators that no rank needs any more, in the same order on all; MPI has some 2000."""
        gc.collect()
        own = bytes(part.is_idle() for part in self._parts)
        everyone = bytearray(len(own) * self.size)
        self.all_gather(own, everyone, "groups that nobody holds")
        held = []
        for i, part in enumerate(self._parts):
            if all(everyone[i :: len(own)]):
                part.free()
            else:
                held.append(part)
        self._parts[:] = held
        self._many = 2 * len(held) + _MANY

    def subgroup(self, ranks: Sequence[int], what: str = "") -> Group:
        """Returns the group of these ranks of this one, in their order; each rank names those of its part."""
        return self.split(ranks[0], ranks.index(self.rank), what)

    @functools.cached_property
    def twin(self) -> Group:
        """Returns a second group of the same ranks, for what runs in the background; all ask at once."""
        return self.subgroup(range(self.size))

    def check_current(self, what: str) -> None:
        """Raises while `cost` simulates other ranks than these."""
        now = started_world()
        if now is not None and type(now) is not type(self):
            raise RuntimeError(
                f"{what}: its group was made outside of the function that cost() runs, and knows nothing of "
                "the simulated ranks; make models, optimisers, meshes and groups inside of that function"
            )

    def _run(
        self, what: str, name: str, size: int, *args: Any, partners: tuple[int, int] | None = None
    ) -> Any:
        """Runs one operation of MPI after all ranks have met, inside of MPI, without Python's lock."""
        _mpi.check_process(what)
        self.check_current(what)
        if self._broken:
            raise RuntimeError(
                f"{what}: an operation of this group was given up ({self._broken}), so its ranks no longer "
                "agree; end the program, or go on without this group"
            )
        if not self._window.acquire():
            raise RuntimeError(
                f"{what}: another thread is in {self.inside or 'an operation'} of the same group; the order "
                "would be a matter of luck. Give each thread a group of its own: group.split(0, group.rank)"
            )
        self._count += 1
        record_exchange(what, name, size, self.size)
        self.inside = what
        try:
            self.line = _lines.caller_line()
            if self._rendezvous(what, name, size, args, partners):
                return None
            self.moving = time.monotonic()
            return getattr(self._communicator, name[0].upper() + name[1:])(*args)
        except mpi().Exception as error:
            self._give_up(str(error), self)
            advice = "; make groups once, and use them again" if "communicators" in str(error) else ""
            raise RuntimeError(f"{what}: MPI says: {error}{advice}") from error
        finally:
            self.inside, self.line = "", _lines.NOWHERE
            self.moving = 0.0
            self._window.release()

    def _rendezvous(
        self, what: str, name: str, size: int, args: Any, partners: tuple[int, int] | None
    ) -> bool:
        """Waits for all ranks, and compares what they are about to do; true if nothing is left to do."""
        if self.size == 1:
            return name == "barrier"
        # A rank that neither sends nor gets anything has no buffer.
        size = -1 if partners else size
        frames = self._frames
        frames.enter(what, name, size, partners, args)
        self._wait(frames, what)
        if not frames.agree():
            self._compare(what, size, partners)
        self._often -= 1
        if self._often == 0:
            self._share_memory()
        return frames.take(name, args)

    def _share_memory(self) -> None:
        """Lets ranks of one host meet in memory from the next operation on."""
        # The ranks are all here; what they say to each other now is left to MPI, as a transfer.
        self.moving = time.monotonic()
        if memory := share_memory(self._communicator):
            self._window.open(memory)
            self._frames = SharedFrames(self._window, self.rank, self.size)
            self._window.allow_direct(True)

    def _compare(self, what: str, size: int, partners: tuple[int, int] | None = None) -> None:
        """Raises if the ranks, whose hashes differ, are about to do different things."""
        with self._waiting_in(what):
            own = _signatures.encode_signature(what, size, self.line, partners)
            everyone = bytearray(_signatures.SIZE * self.size)
            self._wait(self._communicator.Iallgather(own, everyone), what)
        if wrong := _signatures.describe_disagreement(bytes(everyone), self.ranks, self.count):
            raise RuntimeError(wrong)

    @contextlib.contextmanager
    def _waiting_in(self, what: str) -> Iterator[None]:
        """For reports, while it lasts: the operation at work and its line, if Python did not know them."""
        before = self.inside, self.line
        if not self.inside:
            self.inside, self.line = what, _lines.caller_line()
        try:
            yield
        finally:
            self.inside, self.line = before

    def _wait_on(self, what: str) -> None:
        """Waits for the other ranks in an operation that went without Python so far."""
        with self._waiting_in(what):
            self._wait(self._frames, what)

    def _wait(self, request: Any, what: str) -> None:
        """Returns when the request is done: at once after a short wait, without haste after a long one."""
        began = 0.0
        try:
            while not request.Test():
                began = began or time.monotonic()
                waited = time.monotonic() - began
                if waited < 0.002:
                    _pause()
                else:
                    time.sleep(min(waited / 64, 0.001))
                    self._look(waited, what)
        except BaseException as error:
            self._give_up(f"{type(error).__name__} in {what}", (self, request))
            raise

    def _give_up(self, why: str, held: Any) -> None:
        """Lets no operation begin any more; others may still write to what is held."""
        self._broken = why
        self._window.allow_direct(False)
        _GIVEN_UP.append(held)

    def _look(self, waited: float, what: str) -> None:
        """Raises where waiting is in vain."""
        watch = self._watch
        if watch is None:
            if waited > self.timeout:
                raise TimeoutError(f"{what}: not all ranks came within {self.timeout:g} s")
            return
        while watch.ending:
            time.sleep(1)
        if watch.left and (
            ended := [
                r for r in self.ranks if r in watch.left and watch.left[r].get(self.name, 0) < self.count
            ]
        ):
            raise RuntimeError(describe_exit(self, what, ended))
        if waited > self.timeout:
            raise TimeoutError(describe_timeout(self, what, self.timeout, watch.places()))


def world() -> Group:
    """Returns the group of all ranks that `mpirun` started; one rank where a program runs by itself.

    Raises:
        ImportError: without mpi4py.

    Example:
        >>> wg.distributed.world().size
        1
    """
    now = _CURRENT[0]
    if now.everyone is None:
        everyone = mpi().COMM_WORLD
        if everyone.Get_size() > 1:
            _wait_for_all(everyone)
        _mpi.unname_memory()
        if everyone.Get_size() > 1 and mpi().Query_thread() == mpi().THREAD_MULTIPLE:
            _WATCH.append(Watch(everyone.Dup()))
        now.everyone = Group(everyone.Dup())
    return now.everyone


def started_world() -> Group | None:
    """The group of all ranks, if the program has asked for it."""
    return _CURRENT[0].everyone


def resolve_group(function: str, group: Any) -> Group:
    """The group that an argument means: all ranks if None."""
    if group is None:
        return world()
    if not isinstance(group, Group):
        found = f"{group}, which is no group" if "NON_GROUP" in str(group) else type(group).__name__
        raise TypeError(f"{function}: process_group= is a group of ranks that this one is in, got {found}")
    return group


def _wait_for_all(everyone: Any) -> None:
    """Waits for all ranks; there is no thread yet that could ask where they are."""
    request, began = everyone.Ibarrier(), time.monotonic()
    while not request.Test():
        if time.monotonic() > began + TIMEOUT:
            _mpi.abort(
                f"wengert.distributed: not all {everyone.Get_size()} ranks asked for each other within "
                f"{TIMEOUT:g} s; "
                f"rank {everyone.Get_rank()} did, at {_lines.format_line(_lines.caller_line())}\n"
            )
        time.sleep(0.001)

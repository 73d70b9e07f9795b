"""The stopwatch: the same work in several libraries, interleaved, so that noise hits all of them alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Work = Callable[[], object]
ROUNDS = 15
SAMPLE_SECONDS = 0.01
# A library's threads go on looking for work after a call (OpenMP's for 0.2 s) and take the core of whoever
# comes next.
REST_SECONDS = 0.25


@dataclass(frozen=True)
class Target:
    """What to reach: at most `us` microseconds, or `ratio` times the time of `of` ("best": of every peer)."""

    us: float | None = None
    ratio: float | None = None
    of: str = "best"

    def __str__(self) -> str:
        if self.us is not None:
            return f"{self.us:g} us"
        return f"{self.ratio:.3g} x {self.of}" if self.ratio is not None else ""


@dataclass(frozen=True)
class Row:
    """One line of a table. `makers` maps a library to a function that prepares the work and returns it."""

    name: str
    target: Target
    makers: dict[str, Callable[[], Work]]
    per_call: int = 1  # operations in one call of the work; times are given per operation
    # What keeps wengert from the target, said where the target is missed; a function measures it first.
    limit: str | Callable[[], str] = ""


@dataclass
class Result:
    """Seconds per operation of each library in each round, and why a library is not there."""

    row: Row
    seconds: dict[str, list[float]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)  # seconds of the first call

    def median_us(self, library: str) -> float:
        """Median time per operation in microseconds."""
        return 1e6 * statistics.median(self.seconds[library])

    def ratio(self, peer: str) -> float:
        """wengert's time divided by the peer's: the median over rounds of ratios taken within one round."""
        pairs = zip(self.seconds["wengert"], self.seconds[peer], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)

    def met(self) -> str:
        """Whether the target is reached; empty where that cannot be said."""
        target, peers = self.row.target, [name for name in self.seconds if name != "wengert"]
        if "wengert" not in self.seconds:
            return ""
        if target.us is not None:
            return "yes" if self.median_us("wengert") <= target.us else "no"
        if target.of != "best":
            peers = [name for name in peers if name.split()[0] == target.of]
        if target.ratio is None or not peers:
            return ""
        return "yes" if max(self.ratio(peer) for peer in peers) <= target.ratio else "no"


def repetitions(work: Work) -> int:
    """How many calls make a sample long enough for the clock."""
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            work()
        took = time.perf_counter() - start
        if took >= SAMPLE_SECONDS / 2:
            return max(1, round(calls * SAMPLE_SECONDS / took))
        calls *= 4


def measure(row: Row, rounds: int = ROUNDS, rest: float = 0.0) -> Result:
    """Prepare and warm every library, then time them in turn, starting each round with another one.

    `rest` is how long to wait, in seconds, before a library's turn; calls that are not timed then wake its
    threads.
    """
    result, ready = Result(row), {}
    for library, maker in row.makers.items():
        try:
            work = maker()
            start = time.perf_counter()
            work()
            result.first[library] = time.perf_counter() - start
            ready[library] = (work, repetitions(work))
        except Exception as error:  # a library that lacks the work is a line of the report, not the end of it
            reason = str(error).partition("\n")[0]
            result.absent[library] = f"{type(error).__name__}: {reason}"
    result.seconds = {library: [] for library in ready}
    names = list(ready)
    for turn in range(rounds):
        for place in range(len(names)):
            library = names[(place + turn) % len(names)]
            work, calls = ready[library]
            if rest:
                time.sleep(rest)
                for _ in range(2 * calls):
                    work()
            start = time.perf_counter()
            for _ in range(calls):
                work()
            result.seconds[library].append((time.perf_counter() - start) / calls / row.per_call)
    return result

"""The profiler as programs for PyTorch call it today: `wengert.autograd.profiler` with steps and activities.

`print(prof.key_averages().table(sort_by="cpu_time_total"))` shows operations by their time on the host. The
kernels of a GPU are timed by `wengert.gpu.profile`, by its own clock.
"""

import enum
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from wengert.autograd.profiler import profile as _profile, record_function

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What a profile may watch; the CPU is always watched, and nothing else is."""

    CPU = "cpu"
    CUDA = "cuda"
    XPU = "xpu"


class ProfilerAction(enum.Enum):
    """What a profile does in a step: nothing, or timing."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Returns what a profile does in each step, given the number of the step.

    Args:
        wait: steps in which nothing is timed.
        warmup: further such steps.
        active: steps that are timed; `on_trace_ready` is called behind the last.
        repeat: how often this goes round; without end where 0.
        skip_first: steps before it all in which nothing is timed.

    Raises:
        ValueError: for negative numbers, or no active step.

    Example:
        >>> steps = wg.profiler.schedule(wait=1, warmup=0, active=2, repeat=1)
        >>> [steps(i).name for i in range(4)]
        ['NONE', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError("schedule: numbers of steps, at least one of them active, expected")
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        turn, place = divmod(step - skip_first, length)
        if step < skip_first or (repeat and turn >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Raises NotImplementedError: a profile keeps sums, not the single runs that such a file holds.

    Example:
        >>> try:
        ...     wg.profiler.tensorboard_trace_handler("runs")
        ... except NotImplementedError as error:
        ...     print(str(error)[:25])
        tensorboard_trace_handler
    """
    raise NotImplementedError(
        "tensorboard_trace_handler: a profile keeps sums by operation and no single runs; print "
        "prof.key_averages().table() in on_trace_ready"
    )


class profile(_profile):
    """Times what runs inside, on this thread: a context, as `wengert.autograd.profiler.profile`.

    Args:
        activities: kinds of `ProfilerActivity`; times are those of the host whatever is given.
        schedule: what to do in each step, as `schedule` returns it; all is timed without.
        on_trace_ready: called with the profile at its end, or at the end of each round of the schedule.
        record_shapes, profile_memory, with_stack, with_flops, with_modules: accepted; of these, floating
            point operations are always counted and nothing else is kept.

    Example:
        >>> from wengert.profiler import ProfilerActivity, profile
        >>> x = wg.ones(2)
        >>> with profile(activities=[ProfilerActivity.CPU]) as prof:
        ...     y = x.exp().sum()
        >>> sorted(row.key for row in prof.key_averages())
        ['exp', 'sum']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[["profile"], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        **_: Any,
    ) -> None:
        """Nothing is timed before `with`, `start()`, or the first active step."""
        super().__init__()
        for activity in activities or ():
            if not isinstance(activity, ProfilerActivity):
                raise TypeError(f"profile: kinds of ProfilerActivity expected, got {activity!r}")
        self._schedule, self._ready = schedule, on_trace_ready
        self.step_num = 0
        self._is_timing = False

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self._schedule is None else self._schedule(self.step_num)

    def _follow(self) -> None:
        """Begins or ends to time, as the step wants it."""
        wants = self._action() in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if wants and not self._is_timing:
            if self._schedule is not None:
                super().__init__()
            super().__enter__()
        elif self._is_timing and not wants:
            super().__exit__()
        self._is_timing = wants

    def __enter__(self) -> "profile":
        """Begins, if the first step is to be timed."""
        self._follow()
        return self

    def __exit__(self, *exc: Any) -> None:
        """Ends; `on_trace_ready` is called if something was being timed."""
        if self._is_timing:
            super().__exit__(*exc)
            self._is_timing = False
            self._tell()

    def _tell(self) -> None:
        if self._ready is not None:
            self._ready(self)

    def start(self) -> None:
        """Begins, as `with` does."""
        self.__enter__()

    def stop(self) -> None:
        """Ends, as `with` does."""
        self.__exit__()

    def step(self) -> None:
        """Says that the next step begins."""
        ends = self._schedule is not None and self._action() is ProfilerAction.RECORD_AND_SAVE
        self.step_num += 1
        if ends and self._is_timing:
            super().__exit__()
            self._is_timing = False
            self._tell()
        self._follow()


def __dir__() -> list[str]:
    """What is public."""
    return __all__

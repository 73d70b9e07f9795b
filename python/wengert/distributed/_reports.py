"""What is said about ranks that wait for each other, and about those that failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wengert.distributed._signatures import format_ranks, group_by_rank

__all__ = [
    "Failure",
    "Place",
    "format_failures",
    "describe_exit",
    "format_interrupts",
    "describe_timeout",
    "describe_loss",
    "describe_stuck",
]


@dataclass
class Place:
    """Where a rank is."""

    #: The line of its program.
    line: str
    #: Per group: how often it talked, in what it is now, and where that was called.
    talks: dict[str, tuple[int, str, str]]
    #: Whether its program has ended.
    left: bool
    #: Instead of all that, where it does not answer.
    silent: str = ""


@dataclass
class Failure:
    """What a rank hands in."""

    rank: int
    kind: str
    text: str


def describe_timeout(group: Any, what: str, seconds: float, places: dict[int, Place]) -> str:
    """A collective operation that did not begin everywhere in time."""
    missing = [rank for rank in group.ranks if _is_missing(places.get(rank), group.name, group.count)]
    whom = f"{format_ranks(missing)} did not come" if missing else "the ranks do not meet"
    return f"{what}: {whom} within {seconds:g} s. The ranks of the group:\n{_where(group, places)}"


def describe_exit(group: Any, what: str, ranks: list[int]) -> str:
    """Ranks that end before they take part."""
    has = "has" if len(ranks) == 1 else "have"
    return (
        f"{what}: {format_ranks(ranks)} {has} come to the end of the program before collective operation "
        f"{group.count} of this group; all ranks of a group must call it"
    )


def describe_stuck(group: Any, what: str, places: dict[int, Place]) -> str:
    """A transfer that began and does not end."""
    return f"{what} began and did not end within {group.timeout:g} s. The ranks:\n{_where(group, places)}\n"


def describe_loss(rank: int, places: dict[int, Place]) -> str:
    """A process that is no more."""
    return f"{_places(list(places), places, None)}\n"


def _is_missing(place: Place | None, name: str, count: int) -> bool:
    return place is None or bool(place.silent) or place.talks.get(name, (0, "", ""))[0] < count


def _where(group: Any, places: dict[int, Place]) -> str:
    return _places(group.ranks, places, group.name)


def _places(ranks: list[int], places: dict[int, Place], name: str | None) -> str:
    ranks = sorted(ranks)
    return group_by_rank([_said(places.get(rank), name) for rank in ranks], ranks)


def _said(place: Place | None, name: str | None) -> str:
    if place is None:
        return "not asked"
    if place.silent:
        return place.silent
    count, what, line = place.talks.get(name or "", (0, "", ""))
    if what:
        return f"waiting in {what}, operation {count} of this group, at {line}"
    busy = [(what, line) for _, what, line in place.talks.values() if what]
    doing = f"waiting in {busy[0][0]}, at {busy[0][1]}" if busy else f"at {place.line}"
    if place.left:
        doing = "at the end of its program"
    return doing if name is None else f"{doing}, after {count} operation{'s' * (count != 1)} of this group"


def format_failures(failed: list[Failure], size: int) -> str:
    """What is written when all ranks end: each kind once, with the ranks that it came to."""
    kinds: dict[str, list[Failure]] = {}
    for failure in sorted(failed, key=lambda f: f.rank):
        kinds.setdefault(failure.kind, []).append(failure)
    interrupted = kinds.pop("Ctrl-C", [])
    if not kinds:
        return f"\nCtrl-C: all {size} ranks end.\n{format_interrupts(interrupted)}"
    parts = []
    for same in kinds.values():
        ranks = sorted({f.rank for f in same})
        if same[0].kind.startswith("lost "):
            title = f"rank {same[0].kind[5:]} of {size} is gone; all ranks end:"
        else:
            title = f"{format_ranks(ranks)} of {size} failed; all ranks end:"
        parts.append(f"\n{title}\n{same[0].text}")
    return "".join(parts)


def format_interrupts(failed: list[Failure]) -> str:
    """Where ranks were when they were interrupted."""
    found = sorted((f.rank, f.text) for f in failed if f.kind == "Ctrl-C")
    return group_by_rank([text for _, text in found], [rank for rank, _ in found]) + "\n" if found else ""

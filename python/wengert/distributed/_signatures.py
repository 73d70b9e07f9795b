"""What each rank is about to do, in words: exchanged where the hashes of `_frames` differ."""

from __future__ import annotations

from hashlib import blake2b

from wengert.distributed import _lines

__all__ = ["SIZE", "describe_disagreement", "encode_signature"]

#: Bytes of one signature; all have the same length, so that ranks that disagree can still compare.
SIZE = 512
# Characters of a description that are shown.
_SHOWN = 120


def encode_signature(
    what: str, size: int, line: _lines.Line, partners: tuple[int, int] | None = None
) -> bytes:
    """What this rank is about to do, and at which line. `partners`: to whom it sends, from whom it gets."""
    who = "" if partners is None else f"{partners[0]} {partners[1]}"
    what = what.replace("\n", " ")
    if len(what) > _SHOWN:
        what = f"{what[:_SHOWN]}... ({blake2b(what.encode(), digest_size=4).hexdigest()})"
    text = f"{what}\n{size}\n{who}\n"
    # A long path loses its beginning.
    place, room = _lines.format_line(line).encode(), SIZE - len(text.encode())
    place = place if len(place) <= room else b"..." + place[len(place) - max(room - 3, 0) :]
    return (text.encode() + place)[:SIZE].ljust(SIZE, b"\0")


def describe_disagreement(everyone: bytes, ranks: list[int], count: int) -> str | None:
    """What is wrong between the signatures of all ranks; None if they agree."""
    if everyone == everyone[:SIZE] * len(ranks):
        return None
    parts = [everyone[i : i + SIZE].rstrip(b"\0") for i in range(0, len(everyone), SIZE)]
    fields = (part.decode(errors="replace").split("\n", 3) for part in parts)
    whats, sizes, whos, lines = zip(*fields, strict=True)
    if len(set(whats)) == 1 and len(set(sizes)) > 1:
        whats = tuple(f"{what}, {size} bytes" for what, size in zip(whats, sizes, strict=True))
    said = [f"{what}, at {line}" for what, line in zip(whats, lines, strict=True)]
    if len(set(whats)) > 1:
        return f"the ranks disagree about their collective operation {count}:\n{group_by_rank(said, ranks)}"
    if not whos[0]:
        return None
    pairs = [tuple(map(int, who.split())) for who in whos]
    for i, (to, source) in enumerate(pairs):
        if to >= 0 and pairs[to][1] != i:
            wrong = f"rank {ranks[i]} sends to rank {ranks[to]}, which does not expect it"
            return f"{wrong}:\n{group_by_rank(said, ranks)}"
        if source >= 0 and pairs[source][0] != i:
            return (
                f"rank {ranks[i]} expects something of rank {ranks[source]}, which sends it nothing:\n"
                f"{group_by_rank(said, ranks)}"
            )
    return None


def group_by_rank(said: list[str], ranks: list[int]) -> str:
    """Lines that name the ranks that say each thing."""
    speakers: dict[str, list[int]] = {}
    for rank, words in zip(ranks, said, strict=True):
        speakers.setdefault(words, []).append(rank)
    return "\n".join(f"  {format_ranks(who)}: {words}" for words, who in speakers.items())


def format_ranks(ranks: list[int]) -> str:
    """The ranks in words: "rank 3", "ranks 0, 2-5"."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    parts = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in runs]
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(parts)}"

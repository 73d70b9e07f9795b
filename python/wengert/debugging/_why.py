"""`why`: why a gradient is missing, zero, partly zero or not finite, and which uses of a tensor it came
from."""

from dataclasses import dataclass, field

import numpy as np

from wengert import _core
from wengert._core import Node, Tensor
from wengert.autograd.anomaly import Location
from wengert.autograd.graph import GradientEdge
from wengert.debugging._numbers import array
from wengert.debugging._reasons import Reason, consumers, missing, not_finite, partial, zero
from wengert.debugging._session import Pull, Value, Walk, current, watch

__all__ = ["Use", "Why", "why"]

# Uses that a printed report lists.
SHOWN = 10
VIEWS = ("permute", "reshape", "expand", "contiguous", "cast")


@dataclass(frozen=True)
class Use:
    """An operation that read the tensor, and the gradient that came back from it."""

    op: str
    location: Location | None
    norm: float
    share: float

    def __str__(self) -> str:
        """One line."""
        where = f" at {self.location}" if self.location else ""
        return f"{self.op}{where}: norm {self.norm:.4g}, {self.share:.0%}"


@dataclass(frozen=True)
class Why:
    """What `why` found; `print` it, or read the fields.

    `status` is "no gradient", "zero", "partly zero", "not finite" or "complete"; `norm` the norm of the
    gradient and `zeros` its share of zeros (None without a gradient); `reasons` say why; `uses` split the
    gradient by consumer.
    """

    subject: str
    status: str
    norm: float | None = None
    zeros: float | None = None
    reasons: list[Reason] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)

    def __str__(self) -> str:
        """The report."""
        head = {
            "no gradient": "has no gradient",
            "zero": "has a gradient of zero",
            "partly zero": f"has a gradient that is zero in {self.zeros or 0:.0%} of its elements",
            "not finite": "has a gradient that is not finite",
            "complete": "has a gradient without zeros",
        }[self.status]
        norm = "" if self.norm is None or self.status == "zero" else f", norm {self.norm:.4g}"
        lines = [f"{self.subject} {head}{norm}"]
        lines += [
            f"  because {reason}" if not i else f"  and     {reason}" for i, reason in enumerate(self.reasons)
        ]
        if self.uses:
            lines.append("  it came from")
            lines += [f"    {use}" for use in sorted(self.uses, key=lambda use: -use.norm)[:SHOWN]]
        if len(self.uses) > SHOWN:
            lines.append(f"    and {len(self.uses) - SHOWN} more uses, with less each")
        return "\n".join(lines)


def why(tensor: Tensor, loss: Tensor | None = None) -> Why:
    """Explains the gradient of `tensor`: why it is missing, zero, partly zero or not finite, and where it
    came from.

    Inside a `wengert.debug()` region, or after it, the report reads what the region noted: values that left
    the tape (`detach()`, `.data`, `item()`, `no_grad`, operations without derivative) with their lines, and
    how much of the cotangent came through each operation of the last backward: dead ReLU units, masks,
    saturated sigmoids, a softmax whose sum is taken. Without a region, pass the `loss` before `backward()`:
    its graph is walked once more, nothing is freed or accumulated; lines and what left the tape are not known
    then.

    Args:
        tensor: the leaf or result in question.
        loss: where backward begins; needed outside of a region, and to choose among several walks.

    Raises:
        RuntimeError: if nothing is known: no region, and no loss or one whose graph was freed.

    Example:
        >>> x = wg.tensor([[1.0, -2.0], [3.0, -4.0]], requires_grad=True)
        >>> print(wg.why(x, x.relu().sum()))
        the leaf of shape (2, 2) has a gradient that is zero in 50% of its elements, norm 1.414
          because relu passes nothing for 1 of 2 units (they are not positive for every example) and 50% of the elements
          it came from
            relu: norm 1.414, 100%
    """
    found = _core._gradient_edge(tensor)
    subject = _subject(tensor, found)
    if found is None:
        reason = Reason(
            "requires_grad", "it does not require a gradient; call requires_grad_() on it before use"
        )
        return Why(subject, "no gradient", reasons=[reason])
    edge = GradientEdge(*found)
    value = (edge.node.sequence_nr, edge.output_nr)
    walk, gradient, nodes = _walk(tensor, edge, loss)
    pulls = [p for p in walk.pulls if any(v == value for v, _ in p.passages)] if walk else []
    if walk is None or (not pulls and value not in walk.roots):
        return Why(subject, "no gradient", reasons=missing(value, walk, current(), nodes, loss is not None))
    return _explain(subject, value, walk, gradient)


def _subject(tensor: Tensor, edge: tuple[Node, int] | None) -> str:
    kind = "tensor" if edge is None else "leaf" if edge[0].is_leaf else f"result of {edge[0].op}"
    return f"the {kind} of shape {tuple(tensor.shape)}"


def _walk(
    tensor: Tensor, edge: GradientEdge, loss: Tensor | None
) -> tuple[Walk | None, Tensor | None, dict[int, Node]]:
    """The walk to read, the gradient it led to if that is known, and the graph of the loss by position."""
    region = current()
    walks = region.walks if region else []
    if loss is None:
        if region is None:
            raise RuntimeError(
                "why: nothing is known of this tensor's gradient; pass the loss before its backward(), or "
                "run the step inside `with wengert.debug():`"
            )
        return (walks[-1] if walks else None), _accumulated(tensor), {}
    root = _core._gradient_edge(loss)
    if root is None:
        return None, None, {}
    start = (root[0].sequence_nr, root[1])
    for walk in reversed(walks):
        if start in walk.roots:
            return walk, _accumulated(tensor), {}
    nodes = graph(root[0])
    if any(node.is_freed for node in nodes.values()):
        raise RuntimeError(
            "why: the graph of this loss was freed by its backward(); ask before, pass retain_graph=True to "
            "it, or run the step inside `with wengert.debug():`"
        )
    with watch() as region:
        (gradient,) = _core._grad([loss], [tensor], [_core.ones_like(loss.detach())], True, False)
    return region.walks[-1], gradient, nodes


def _reader(pull: Pull, above: dict[int, list[Pull]]) -> tuple[str, Location | None]:
    """The operation behind views that read the tensor: `matmul`, say, through the transpose of a weight."""
    through = []
    while pull.op in VIEWS:
        readers = above.get(pull.entry, [])
        if len(readers) != 1:
            break
        through.append(pull.op)
        pull = readers[0]
    return pull.op + (f" through {', '.join(through)}" if through else ""), pull.location


def _accumulated(tensor: Tensor) -> Tensor | None:
    return tensor.grad if tensor.is_leaf or tensor.retains_grad else None


def graph(root: Node) -> dict[int, Node]:
    """The entries that can be reached from `root`, by position in the order of recording."""
    nodes: dict[int, Node] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        if node.sequence_nr not in nodes:
            nodes[node.sequence_nr] = node
            stack.extend(to for to, _ in node.next_functions if to is not None)
    return nodes


def _explain(subject: str, value: Value, walk: Walk, gradient: Tensor | None) -> Why:
    found = [(p, through) for p in walk.pulls for v, through in p.passages if v == value]
    total = sum(through.sent_norm for _, through in found) or 1.0
    norm: float | None
    above = consumers(walk)
    uses = [Use(*_reader(p, above), t.sent_norm, t.sent_norm / total) for p, t in found]
    if gradient is not None:
        values = array(gradient)
        finite = bool(np.isfinite(values).all())
        norm = float(np.sqrt((values * values).sum()))
        zeros = float((values == 0).mean()) if values.size else 0.0
    else:
        finite = all(t.sent_finite for _, t in found)
        # Of several uses only the sum has a norm, and nobody kept it.
        norm = found[0][1].sent_norm if len(found) == 1 else None
        zeros = min((t.sent_zeros / t.sent for _, t in found if t.sent), default=0.0)
    if not finite:
        return Why(subject, "not finite", norm, zeros, not_finite(value, walk), uses)
    if found and all(t.is_zero for _, t in found):
        return Why(subject, "zero", norm, zeros, zero(value, walk), uses)
    if norm == 0.0 and found:
        text = "the contributions of its uses cancel, or a hook or a later write made it zero"
        return Why(subject, "zero", norm, zeros, [Reason("cancelled", text)], uses)
    status = "partly zero" if zeros > 0 else "complete"
    return Why(subject, status, norm, zeros, partial(value, walk), uses)

"""`record`: watches real backwards pass through a graph, so that a drawing can show the gradients they had
there."""

from pathlib import Path
from typing import Any

from . import tape
from .draw import Drawing, make

__all__ = ["record"]


class record:
    """Notes the norm of every gradient in the graph behind `outputs` while backwards run; a context.

    Unlike `draw(..., backward=True)` it sees what really happens: the cotangents given, what hooks change,
    what `inputs=` leaves out. The graph is read on entry, so bytes are those kept before backward frees them.
    Norms are those of the last backward that passed; they are read at once, which on a GPU waits for it.

    Args:
        outputs, params, constants: as for `draw`.

    Attributes:
        graph: the boxes and links, with norms once a backward has passed.

    Example:
        >>> w = wg.ones(3, requires_grad=True)
        >>> loss = (w * w).sum()
        >>> with wg.graph.record(loss, params={"w": w}) as recording:
        ...     loss.backward()
        >>> "|gradient| 3.46" in recording.draw().svg
        True
    """

    def __init__(self, outputs: Any, params: Any = None, *, constants: bool = True) -> None:
        """Reads the graph; raises as `draw` does."""
        self.graph, self._index = tape.read(outputs, params, constants)
        self._handles: list[Any] = []

    def __enter__(self) -> "record":
        """Begins to watch."""
        self._handles = [node.register_prehook(self._hook(box)) for node, box in self._index.items()]
        return self

    def __exit__(self, *_: Any) -> None:
        """Takes the hooks away."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _hook(self, box: int) -> Any:
        def hook(gradients: tuple[Any, ...]) -> None:
            self.graph.boxes[box].norms = [None if g is None else tape.norm(g) for g in gradients]

        return hook

    def draw(
        self,
        path: str | Path | None = None,
        format: str | None = None,
        *,
        collapse: bool | None = None,
        max_nodes: int | None = None,
        title: str | None = None,
    ) -> Drawing:
        """Returns the drawing of what was noted; arguments are those of `draw`."""
        return make(self.graph, path, format, collapse, max_nodes, title)

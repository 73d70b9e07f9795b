"""From requests to batches: what every worker does, and a `DataLoader` without workers too.

A request is what a sampler gives: the indices of a batch or, without batches, one index. An `IterableDataset`
only looks at how many there are.
"""

import enum
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .collating import default_collate
from .dataset import IterableDataset, rows_of, samples_of

__all__ = ["END", "Job", "Signal"]


class Signal(enum.Enum):
    """What is answered in place of a batch."""

    #: A request came after the last sample of an `IterableDataset`.
    END = "end"


END = Signal.END


@dataclass(frozen=True)
class Job:
    """How requests are answered: the settings of a `DataLoader` that its workers need."""

    dataset: Any
    collate_fn: Callable[[Any], Any]
    #: Whether a request is a list of indices.
    batched: bool
    drop_last: bool
    init_fn: Callable[[int], Any] | None
    num_workers: int

    def fetcher(self) -> Callable[[Any], Any]:
        """The function from requests to batches, for one epoch."""
        return self._iterable() if isinstance(self.dataset, IterableDataset) else self._by_index

    def _by_index(self, request: Any) -> Any:
        if not self.batched:
            return self.collate_fn(self.dataset[request])
        if self.collate_fn is default_collate:
            rows = rows_of(self.dataset, request)
            if rows is not None:
                return rows
        return self.collate_fn(samples_of(self.dataset, request))

    def _iterable(self) -> Callable[[Any], Any]:
        samples = None
        is_over = False

        def fetch(request: Any) -> Any:
            nonlocal samples, is_over
            if is_over:
                return END
            if samples is None:
                samples = iter(self.dataset)
            expected = len(request) if self.batched else 1
            batch = list(itertools.islice(samples, expected))
            is_over = len(batch) < expected
            if not batch or (is_over and self.drop_last):
                return END
            return self.collate_fn(batch if self.batched else batch[0])

        return fetch

"""Datasets, the order in which they are read, and batches of their samples: PyTorch's `torch.utils.data`.

A `Dataset` gives samples by index, an `IterableDataset` one after another. A `Sampler` says which indices
come next, a collating function makes a batch of samples, and a `DataLoader` runs all of it, in worker
processes if asked to.

Reading order: `dataset.py`, `sampler.py`, `collating.py`, `dataloader.py`, then `fetching.py` (samples to
batches), `workers.py` (processes and threads) and `channel.py` (what they send each other).

Example:
    >>> from wengert.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(wg.arange(5), wg.arange(5) ** 2)
    >>> for x, y in DataLoader(data, batch_size=2):
    ...     print(x, y)
    tensor([0, 1]) tensor([0, 1])
    tensor([2, 3]) tensor([4, 9])
    tensor([4]) tensor([16])
"""

from . import collating, dataset, sampler
from .collating import *
from .dataloader import DataLoader
from .dataset import *
from .sampler import *
from .workers import get_worker_info

__all__ = [
    "DataLoader",
    "get_worker_info",
]
__all__ += collating.__all__
__all__ += dataset.__all__
__all__ += sampler.__all__
__dir__ = __all__.copy

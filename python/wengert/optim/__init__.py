"""Optimisers and learning-rate schedules under PyTorch's names and defaults.

Reading order: `optimizer.py`, `sgd.py`, `adam.py`, `lr_scheduler.py`.
"""

from . import lr_scheduler
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Optimizer", "SGD", "Adam", "AdamW", "lr_scheduler"]

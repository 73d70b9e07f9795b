"""Optimisers and learning-rate schedules under PyTorch's names and defaults.

Reading order: `optimizer.py`, `sgd.py`, `adam.py` (one fused pass over all parameters), `stepwise.py` and the files of
those written in tensor operations (`adaptive.py`, `classic.py`, `factored.py`), `lbfgs.py`, `lr_scheduler.py`,
`swa_utils.py`.
"""

from . import lr_scheduler, swa_utils
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop
from .classic import ASGD, Rprop
from .factored import Adafactor, Muon
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "Optimizer",
    "SGD",
    "Adam",
    "AdamW",
    "Adagrad",
    "Adadelta",
    "RMSprop",
    "Adamax",
    "NAdam",
    "RAdam",
    "Rprop",
    "ASGD",
    "LBFGS",
    "Adafactor",
    "Muon",
    "lr_scheduler",
    "swa_utils",
]


def __dir__() -> list[str]:
    """What is public."""
    return __all__

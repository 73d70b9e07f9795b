"""Optimisers and learning-rate schedules under PyTorch's names and defaults.

- `SGD`, with momentum, and `Adam` or `AdamW` are what most models are trained with.
- Other adaptive rates: `Adagrad`, `Adadelta`, `RMSprop`, `Adamax`, `NAdam`, `RAdam`; with less memory
  `Adafactor`; for matrices `Muon`.
- For whole batches: `LBFGS`, `Rprop`; with averages of the parameters `ASGD`.
- `Optimizer` is the base class, for one's own: groups of parameters, hooks, state dicts.
- `optim.lr_scheduler` changes the rate while training, `optim.swa_utils` averages weights.

A step: `optimizer.zero_grad()`, `loss.backward()`, `optimizer.step()`.
"""

# Reading order: `optimizer.py`, `sgd.py`, `adam.py` (one fused pass over all parameters), `stepwise.py` and
# the files of rules per element or in tensor operations (`adaptive.py`, `classic.py`, `factored.py`),
# `lbfgs.py`, `lr_scheduler/`, `swa_utils.py`.

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
__dir__ = __all__.copy

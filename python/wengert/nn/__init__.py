"""Neural networks under PyTorch's names: layers, losses, initialisation, and modules as pure functions.

- Base: `Module`, of which every layer and model is a subclass, and `Parameter`, a tensor that a module
  registers.
- Containers: `Sequential`, `ModuleList`, `ModuleDict`, `ParameterList`, `ParameterDict`.
- Affine maps and tables: `Linear`, `Bilinear`, `Identity`, `Embedding`, `EmbeddingBag`, `Flatten`,
  `Unflatten`.
- Images and signals: `Conv1d` to `Conv3d`, `ConvTranspose1d`, ..., pooling (`MaxPool2d`, `AvgPool2d`,
  `AdaptiveAvgPool2d`, ...), padding (`ZeroPad2d`, ...), `Upsample`, `PixelShuffle`, `Unfold`, `Fold`.
- Normalisation and dropout: `LayerNorm`, `RMSNorm`, `GroupNorm`, `BatchNorm1d` to `BatchNorm3d`,
  `InstanceNorm1d`, ..., `Dropout`, ...
- Sequences: `RNN`, `LSTM`, `GRU`, their cells, `MultiheadAttention`, `Transformer` and its parts.
- Activations: `ReLU`, `GELU`, `SiLU`, `Softmax`, ...
- Losses: `CrossEntropyLoss`, `MSELoss`, `BCEWithLogitsLoss`, ...
- `LazyLinear` and the other lazy layers take their first size from the first input.
- `functional_call` and `stack_module_state` make a module a pure function of its parameters, for `grad` and
  `vmap`.
- `nn.parallel.DistributedDataParallel` and `SyncBatchNorm` work over processes (`wengert.distributed`);
  `DataParallel` and `nn.attention` are there for programs that name them, on one device.
- `nn.functional` has the same as functions, `nn.init` initial values, `nn.utils` gradient clipping, packed
  sequences and parametrizations.

Layers with parameters take `device` (None: the default, the CPU) and `dtype` (None: the default, float32), by
which these are made. A batch comes first in shapes unless a layer says otherwise.
"""

# Reading order: `parameter.py`, `module.py`, `state.py`, `hooks.py`, `functional/`, `modules/`,
# `functional_call.py`.

from . import attention, functional, init, parallel, utils
from .functional_call import functional_call, stack_module_state
from .hooks import (
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from .module import Module
from .modules import (
    activation as _activation,
    adaptive as _adaptive,
    affine as _affine,
    attention as _attention,
    batch as _batch,
    cells as _cells,
    container as _container,
    convolution as _convolution,
    dropout as _dropout,
    extremes as _extremes,
    lazy as _lazy,
    loss as _loss,
    normalization as _normalization,
    options as _options,
    padding as _padding,
    parameters as _parameters,
    pooling as _pooling,
    recurrent as _recurrent,
    transformer as _transformer,
    vision as _vision,
)
from .modules.activation import *
from .modules.adaptive import *
from .modules.affine import *
from .modules.attention import *
from .modules.batch import *
from .modules.cells import *
from .modules.container import *
from .modules.convolution import *
from .modules.dropout import *
from .modules.extremes import *
from .modules.lazy import *
from .modules.loss import *
from .modules.normalization import *
from .modules.options import *
from .modules.padding import *
from .modules.parameters import *
from .modules.pooling import *
from .modules.recurrent import *
from .modules.transformer import *
from .modules.vision import *
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Parameter",
    "Module",
    "functional",
    "init",
    "utils",
    "functional_call",
    "stack_module_state",
    "Buffer",
    "UninitializedBuffer",
    "UninitializedParameter",
    "DataParallel",
    "attention",
    "parallel",
]
__all__ += _activation.__all__
__all__ += _adaptive.__all__
__all__ += _affine.__all__
__all__ += _attention.__all__
__all__ += _batch.__all__
__all__ += _cells.__all__
__all__ += _container.__all__
__all__ += _convolution.__all__
__all__ += _dropout.__all__
__all__ += _extremes.__all__
__all__ += _lazy.__all__
__all__ += _loss.__all__
__all__ += _normalization.__all__
__all__ += _options.__all__
__all__ += _padding.__all__
__all__ += _parameters.__all__
__all__ += _pooling.__all__
__all__ += _recurrent.__all__
__all__ += _transformer.__all__
__all__ += _vision.__all__
__dir__ = __all__.copy

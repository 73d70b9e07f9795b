"""Single steps of the recurrent layers."""

import math
from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert._precision import lowered

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from .recurrent import GATES, STEPS, State, cell_of, check_settings

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """One step of a recurrent layer: what `RNNCell`, `LSTMCell` and `GRUCell` share, to be asked for by
    `isinstance`.

    Example:
        >>> isinstance(wg.nn.GRUCell(2, 3), wg.nn.RNNCellBase)
        True
    """

    kind = ""
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`, uniform in `±1 / sqrt(hidden_size)`."""
        super().__init__()
        sizes = {"input_size": input_size, "hidden_size": hidden_size}
        check_settings(type(self).__name__, sizes, {"bias": bias})
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self._cell = cell_of(self.kind, "tanh")
        rows = GATES[self.kind] * hidden_size
        make = lambda *shape: Parameter(wg.empty(shape, device=device, dtype=dtype))
        self.weight_ih, self.weight_hh = make(rows, input_size), make(rows, hidden_size)
        self.register_parameter("bias_ih", make(rows) if bias else None)
        self.register_parameter("bias_hh", make(rows) if bias else None)
        bound = 1.0 / math.sqrt(hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Returns the next state from `input` `(batch, input_size)` or `(input_size,)` and a state `hx`
        `(batch, hidden_size)`, zero by default; of an LSTM a pair.
        """
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise wg.ShapeError(
                f"{type(self).__name__}: input of shape {tuple(input.shape)}, expected 1 or 2 axes, the "
                f"last of length input_size = {self.input_size}"
            )
        state = self._state(hx, input)
        gates = F.linear(input, self.weight_ih, self.bias_ih)
        state = tuple(lowered(part) for part in state)
        state = STEPS[self._cell](gates, state, self.weight_hh, self.bias_hh)
        return state if self.kind == "LSTM" else state[0]

    def _state(self, given: Any, input: Tensor) -> State:
        """The given state, checked, or one of zeros."""
        name, count = type(self).__name__, 2 if self.kind == "LSTM" else 1
        shape = (*input.shape[:-1], self.hidden_size)
        if given is None:
            return (wg.zeros(shape, dtype=input.dtype, device=input.device),) * count
        state = tuple(given) if count == 2 else (given,)
        if len(state) != count or not all(isinstance(part, Tensor) for part in state):
            raise TypeError(
                f"{name}: a state {'(h, c)' if count == 2 else 'h'} of tensors expected, got {given!r}"
            )
        for part in state:
            if tuple(part.shape) != shape:
                raise wg.ShapeError(
                    f"{name}: a state of shape {tuple(part.shape)} beside an input of shape "
                    f"{tuple(input.shape)}, expected {shape}"
                )
        return state

    def extra_repr(self) -> str:
        """Sizes, and options that are not the default."""
        text = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"


class RNNCell(RNNCellBase):
    """One step of `RNN`: the next state from an input `(batch, input_size)` and a state
    `(batch, hidden_size)`.

    The batch may be missing; the state is zero by default. The parameters are `weight_ih`
    `(hidden_size, input_size)`, `weight_hh` `(hidden_size, hidden_size)`, and with `bias` `bias_ih` and
    `bias_hh` `(hidden_size,)`, uniform in `±1 / sqrt(hidden_size)`. `nonlinearity` is "tanh" or "relu".

    Example:
        >>> wg.nn.RNNCell(4, 8)(wg.randn(2, 4)).shape
        (2, 8)
    """

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes the parameters."""
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity, self._cell = nonlinearity, cell_of(self.kind, nonlinearity)


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: the next `(h, c)` from an input `(batch, input_size)` and a pair `(h, c)`, zero by
    default.

    h and c are `(batch, hidden_size)`. The parameters are those of `RNNCell` with four times the rows, gates
    in the order of `LSTM`; `input_size`, `hidden_size` and `bias` as there.

    Example:
        >>> state, cell = wg.nn.LSTMCell(4, 8)(wg.randn(2, 4))
        >>> state.shape, cell.shape
        ((2, 8), (2, 8))
    """

    kind = "LSTM"


class GRUCell(RNNCellBase):
    """One step of `GRU`: the next state from an input `(batch, input_size)` and a state
    `(batch, hidden_size)`.

    The parameters are those of `RNNCell` with three times the rows, gates in the order of `GRU`;
    `input_size`, `hidden_size` and `bias` as there.

    Example:
        >>> wg.nn.GRUCell(4, 8)(wg.randn(2, 4), wg.zeros(2, 8)).shape
        (2, 8)
    """

    kind = "GRU"

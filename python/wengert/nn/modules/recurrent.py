"""Recurrent layers: RNN, LSTM (Hochreiter & Schmidhuber 1997) and GRU (Cho et al. 2014).
Read next: `cells.py`.

A layer multiplies its whole input sequence by its input weights at once, and all its steps in one direction
are one operation. Only where sequences end at different times, and where hidden states are projected, it goes
step by step in Python.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import wengert as wg
from wengert import _core
from wengert._core import Tensor
from wengert._numbers import check_integers
from wengert._precision import lowered

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .container import check_layers

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

State = tuple[Tensor, ...]
# From the gates of the input, the state, and recurrent weight and bias: the next state.
Step = Callable[[Tensor, State, Tensor, Tensor | None], State]


class Layout(NamedTuple):
    """How the elements of all times lie in one tensor: into one tensor per time, and back."""

    split: Callable[[Tensor], Any]
    join: Callable[[Any], Tensor]


# Time is the first axis of the tensor.
IN_TIME = Layout(lambda x: x.unbind(0), lambda parts: wg.stack(parts, 0))


def _tanh_step(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """`h' = tanh(x W + b + h U + c)`."""
    return ((gates + F.linear(state[0], weight, bias)).tanh(),)


def _relu_step(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """`h' = relu(x W + b + h U + c)`."""
    return ((gates + F.linear(state[0], weight, bias)).relu(),)


def _lstm_step(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """`c' = f c + i g`, `h' = o tanh(c')`; the gates are stored in the order i, f, g, o."""
    hidden, cell = state
    return _core._lstm_cell(gates, hidden, cell, weight, bias)


def _gru_step(gates: Tensor, state: State, weight: Tensor, bias: Tensor | None) -> State:
    """`n = tanh(x_n + r h_n)`, `h' = (1 - z) n + z h`; the gates are stored in the order r, z, n."""
    return (_core._gru_cell(gates, state[0], weight, bias),)


STEPS: dict[str, Step] = {"LSTM": _lstm_step, "GRU": _gru_step, "tanh": _tanh_step, "relu": _relu_step}


def cell_of(kind: str, nonlinearity: str) -> str:
    """The name of a layer's cell: a key of `STEPS`."""
    if kind == "RNN" and nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"RNN: nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
    return nonlinearity if kind == "RNN" else kind


def check_settings(name: str, sizes: dict[str, Any], switches: dict[str, Any]) -> None:
    """Raises for sizes that are no positive integers, and for switches that are neither True nor False."""
    for what, value in switches.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name}: {what} is True or False, got {value!r}")
    check_integers(name, **sizes)
    for what, value in sizes.items():
        if value < 1:
            raise ValueError(f"{name}: {what} must be positive, got {value}")


GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


class RNNBase(Module):
    """What `RNN`, `LSTM` and `GRU` share: parameters under PyTorch's names, layers, directions, the loop over
    time.

    It is there to be asked for by `isinstance`.

    Example:
        >>> isinstance(wg.nn.LSTM(2, 3), wg.nn.RNNBase)
        True
    """

    kind = ""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes the parameters `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, … uniform in
        `±1 / sqrt(hidden_size)`."""
        super().__init__()
        name = type(self).__name__
        check_settings(
            name,
            {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers},
            {"bias": bias, "batch_first": batch_first, "bidirectional": bidirectional},
        )
        check_layers(name, "num_layers", num_layers)
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout is a probability, got {dropout}")
        if proj_size and self.kind != "LSTM":
            raise ValueError(f"{name}: proj_size is an option of LSTM, got {proj_size}; leave it out")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"{name}: proj_size must be less than hidden_size = {hidden_size}, got {proj_size}"
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._cell = cell_of(self.kind, "tanh")
        out, rows = proj_size or hidden_size, GATES[self.kind] * hidden_size
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            width = input_size if layer == 0 else out * directions
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for part, shape in shapes.items():
                    values = wg.empty(shape, device=device, dtype=dtype)
                    self.register_parameter(f"{part}_{suffix}", Parameter(values))
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"] if self.bidirectional else [f"l{layer}"]

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        places = [suffix for layer in range(self.num_layers) for suffix in self._suffixes(layer)]
        named = [[f"{kind}_{suffix}" for kind in kinds] for suffix in places]
        return [[self.__dict__[name] for name in names if name in self._parameter_names] for names in named]

    def flatten_parameters(self) -> None:
        """Does nothing; accepted for programs written for PyTorch."""

    def _run(self, x: Tensor, layout: Layout, start: State, suffix: str) -> tuple[Tensor, State]:
        """One layer in one direction: its outputs in the layout of `x`, and the last state.

        Packed sequences end at different times: the states of those that have ended are set aside, backwards
        the initial states of those that begin come in.
        """
        part: Callable[[str], Any] = lambda name: getattr(self, f"{name}_{suffix}", None)
        product = F.linear(x, part("weight_ih"), part("bias_ih"))
        weight, bias, project = part("weight_hh"), part("bias_hh"), part("weight_hr")
        backwards = suffix.endswith("_reverse")
        if layout is IN_TIME and project is None:
            return _core._recurrent(self._cell, product, start, weight, bias, backwards)
        gates = layout.split(product)[::-1] if backwards else layout.split(product)
        first, outputs, ended = gates[0].shape[0], [], []
        state = start if first == start[0].shape[0] else tuple(s[:first] for s in start)
        for gate in gates:
            now, before = gate.shape[0], state[0].shape[0]
            if now < before:
                ended.append(tuple(s[now:] for s in state))
                state = tuple(s[:now] for s in state)
            elif now > before:
                state = tuple(wg.cat([s, new[before:now]], 0) for s, new in zip(state, start))
            state = STEPS[self._cell](gate, state, weight, bias)
            if project is not None:
                state = (F.linear(state[0], project), *state[1:])
            outputs.append(state[0])
        if ended:
            state = tuple(wg.cat(parts, 0) for parts in zip(state, *ended[::-1]))
        return layout.join(outputs[::-1] if backwards else outputs), state

    def _initial(self, given: Any, batch: int, like: Tensor) -> list[Tensor]:
        """The states of all layers and directions, one tensor each for hidden (and cell) state."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        widths = [self.proj_size or self.hidden_size] + ([self.hidden_size] if self.kind == "LSTM" else [])
        if given is None:
            return [wg.zeros(count, batch, w, dtype=like.dtype, device=like.device) for w in widths]
        states = list(given) if isinstance(given, (tuple, list)) else [given]
        name = type(self).__name__
        if len(states) != len(widths):
            raise TypeError(
                f"{name}: {len(widths)} initial states expected, (h, c) for an LSTM, got {len(states)}"
            )
        for state, width in zip(states, widths):
            if tuple(state.shape) != (count, batch, width):
                raise wg.ShapeError(
                    f"{name}: an initial state of shape {tuple(state.shape)}, expected "
                    f"{(count, batch, width)}: layers times directions, batch, width"
                )
        return states

    def _layers(self, x: Tensor, layout: Layout, states: list[Tensor]) -> tuple[Tensor, State]:
        """All layers: the outputs of the last, and the last states of all."""
        states = [lowered(state) for state in states]
        last: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in self._suffixes(layer):
                start = tuple(state[len(last)] for state in states)
                out, final = self._run(x, layout, start, suffix)
                outputs.append(out)
                last.append(final)
            x = outputs[0] if len(outputs) == 1 else wg.cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, True)
        return x, tuple(wg.stack(part, 0) for part in zip(*last))

    def _packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """`forward` of a packed sequence; states are in the order in which the sequences were packed."""
        data, sizes = input.data, input.batch_sizes.tolist()
        if data.ndim != 2 or data.shape[-1] != self.input_size:
            raise wg.ShapeError(
                f"{type(self).__name__}: packed data of shape {tuple(data.shape)}, expected 2 axes, the last "
                f"of length input_size = {self.input_size}"
            )
        states = self._initial(hx, sizes[0], data)
        if hx is not None and input.sorted_indices is not None:
            states = [state.index_select(1, input.sorted_indices) for state in states]
        if sizes[-1] == sizes[0]:
            data, finals = self._layers(data.unflatten(0, (len(sizes), sizes[0])), IN_TIME, states)
            data = data.flatten(0, 1)
        else:
            layout = Layout(lambda x: x.split(sizes, 0), lambda parts: wg.cat(parts, 0))
            data, finals = self._layers(data, layout, states)
        if input.unsorted_indices is not None:
            finals = tuple(f.index_select(1, input.unsorted_indices) for f in finals)
        return input._replace(data=data), finals if self.kind == "LSTM" else finals[0]

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Returns the outputs of the last layer at all times, and the last states of all layers.

        Args:
            input: `(time, batch, input_size)`, with `batch_first` `(batch, time, input_size)`, without a
                batch `(time, input_size)`, or a `PackedSequence`, which gives another one.
            hx: initial states `(layers * directions, batch, hidden)`, zero by default; a pair of them for an
                LSTM.

        Raises:
            ShapeError: the input has another width or number of axes, or the states do not fit.
        """
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        name = type(self).__name__
        time = 1 if self.batch_first and input.ndim == 3 else 0
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size or not input.shape[time]:
            raise wg.ShapeError(
                f"{name}: input of shape {tuple(input.shape)}, expected 2 or 3 axes, at least one step in "
                f"time, and a last axis of length input_size = {self.input_size}"
            )
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        x = x.transpose(0, 1) if batched and self.batch_first else x
        if not batched and hx is not None:
            hx = tuple(h.unsqueeze(1) for h in hx) if isinstance(hx, (tuple, list)) else hx.unsqueeze(1)
        x, finals = self._layers(x, IN_TIME, self._initial(hx, x.shape[1], x))
        if not batched:
            x, finals = x.squeeze(1), tuple(f.squeeze(1) for f in finals)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, finals if self.kind == "LSTM" else finals[0]

    def extra_repr(self) -> str:
        """Sizes, and options that are not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        defaults = {
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        for name, default in {**defaults, "proj_size": 0}.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """Recurrent layer, `h' = tanh(W x + b + U h + c)`: outputs at all times and the last state.

    Called with sequences `(time, batch, input_size)` (or of another layout, see `forward`) and an initial
    state `(num_layers * directions, batch, hidden_size)`, zeros by default, it returns
    `(time, batch, directions * hidden_size)` and the last state, shaped as the initial one; directions are 1
    or 2.

    W, U, b and c of the first layer are `weight_ih_l0` `(hidden_size, input_size)`, `weight_hh_l0`
    `(hidden_size, hidden_size)`, `bias_ih_l0` and `bias_hh_l0` `(hidden_size,)`; those of layer k end in
    `_lk`, of the second direction in `_reverse`. All start uniform in `±1 / sqrt(hidden_size)`.

    Args:
        input_size: the features of the input at each time.
        hidden_size: the features of the state.
        num_layers: how many layers, of which each reads the outputs of the one below.
        nonlinearity: "tanh", or "relu" in its place.
        bias: whether there are b and c.
        batch_first: whether sequences in and out are `(batch, time, features)`; states stay as they are.
        dropout: the probability of zero in the outputs of all layers but the last, in training.
        bidirectional: a second direction reads from the end; the outputs of both stand beside each other.

    Example:
        >>> outputs, state = wg.nn.RNN(4, 8)(wg.randn(5, 2, 4))
        >>> outputs.shape, state.shape
        ((5, 2, 8), (1, 2, 8))
    """

    kind = "RNN"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes the parameters."""
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            device=device, dtype=dtype,
        )  # fmt: skip
        self.nonlinearity, self._cell = nonlinearity, cell_of(self.kind, nonlinearity)


class LSTM(RNNBase):
    """Long short-term memory: outputs at all times and the last states `(h, c)`.

    With `W x + b + U h + b'` in four equal parts i, f, g, o: `c' = sigmoid(f) c + sigmoid(i) tanh(g)` and
    `h' = sigmoid(o) tanh(c')`. The rows of `weight_ih_l0` (W) `(4 * hidden_size, input_size)`, `weight_hh_l0`
    (U) `(4 * hidden_size, hidden_size)` and of both biases come in that order: input, forget, cell and output
    gate.

    Arguments as of `RNN`: `input_size`, `hidden_size`, `num_layers`, `bias`, `batch_first`, `dropout`,
    `bidirectional`; and `proj_size`: if positive, h is multiplied by `weight_hr_l0`
    `(proj_size, hidden_size)` (Sak et al. 2014), so it and the outputs have that width, c has `hidden_size`.
    Shapes are those of `RNN`; initial states are a pair as well.

    Example:
        >>> outputs, (state, cell) = wg.nn.LSTM(4, 8)(wg.randn(5, 2, 4))
        >>> outputs.shape, state.shape, cell.shape
        ((5, 2, 8), (1, 2, 8), (1, 2, 8))
    """

    kind = "LSTM"


class GRU(RNNBase):
    """Gated recurrent units: outputs at all times and the last state. The reset gate acts after the product.

    With `W x + b` in three equal parts x_r, x_z, x_n, and `U h + c` in h_r, h_z, h_n:
    `r = sigmoid(x_r + h_r)`, `z = sigmoid(x_z + h_z)`, `n = tanh(x_n + r h_n)` and `h' = (1 - z) n + z h`.
    The rows of `weight_ih_l0` (W) `(3 * hidden_size, input_size)`, `weight_hh_l0` (U) and both biases come in
    that order: reset, update, new.

    Arguments and shapes as of `RNN`: `input_size`, `hidden_size`, `num_layers`, `bias`, `batch_first`,
    `dropout`, `bidirectional`. It has no `proj_size`, which is an option of LSTM.

    Example:
        >>> outputs, state = wg.nn.GRU(4, 8)(wg.randn(5, 2, 4))
        >>> outputs.shape, state.shape
        ((5, 2, 8), (1, 2, 8))
    """

    kind = "GRU"

"""The transformer of Vaswani et al. 2017: layers of encoder and decoder, stacks of them, and both together.

With `norm_first` each part sees its input normalised, and what it returns is added to the input itself (Xiong
et al. 2020); without it the sum is normalised.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import wengert as wg
from wengert._core import Tensor

from .. import functional as F, init
from ..module import Module
from .affine import Dropout, Linear
from .attention import MultiheadAttention
from .container import ModuleList, check_layers
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


class _Layer(Module):
    """What the layers of both stacks share: attention to the sequence itself, two affine maps, the order of
    norms."""

    #: Whether there is attention to another sequence, too.
    _crosses = False

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes `self_attn`, `linear1`, `linear2`, `norm1` and `norm2`; for decoders `multihead_attn` and
        `norm3`."""
        super().__init__()
        place = {"device": device, "dtype": dtype}
        if isinstance(activation, str):
            if activation not in ACTIVATIONS:
                raise ValueError(
                    f"{type(self).__name__}: activation must be a function, 'relu' or 'gelu', got "
                    f"{activation!r}"
                )
            activation = ACTIVATIONS[activation]
        attention = lambda: MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **place
        )
        self.self_attn = attention()
        if self._crosses:
            self.multihead_attn = attention()
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        parts = range(1, 4 if self._crosses else 3)
        for part in parts:
            setattr(self, f"norm{part}", LayerNorm(d_model, layer_norm_eps, bias=bias, **place))
        for part in parts:
            setattr(self, f"dropout{part}", Dropout(dropout))
        self.activation = activation

    def _attended(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        """Attention of a sequence to itself."""
        return self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0]

    def _fed(self, x: Tensor) -> Tensor:
        """The two affine maps."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _around(self, x: Tensor, parts: list[Callable[[Tensor], Tensor]]) -> Tensor:
        """The parts one after another, each with its norm, its dropout and the sum with what it was given."""
        for i, part in enumerate(parts, 1):
            norm, drop = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
            x = x + drop(part(norm(x))) if self.norm_first else norm(x + drop(part(x)))
        return x


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two affine maps with an activation between them.

    Args:
        d_model: the features of the sequence.
        nhead: the number of heads, which divides them.
        dim_feedforward: the features between the affine maps.
        dropout: its probability, in the attention and after each part.
        activation: "relu", "gelu", or a function.
        layer_norm_eps: what the norms add to variances.
        batch_first: whether sequences are `(N, L, E)` rather than `(L, N, E)`.
        norm_first: normalise what each part is given rather than the sum after it.
        bias: whether affine maps and norms have biases.

    Example:
        >>> layer = wg.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
        >>> tuple(layer(wg.ones(3, 5, 8), is_causal=True).shape)
        (3, 5, 8)
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Returns the sequence `src` after the layer; masks as `MultiheadAttention` takes them."""
        attend = lambda x: self._attended(x, src_mask, src_key_padding_mask, is_causal)
        return self._around(src, [attend, self._fed])


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, then to the encoder's result, then two affine maps.

    Arguments as of `TransformerEncoderLayer`: `d_model`, `nhead`, `dim_feedforward`, `dropout`, `activation`,
    `layer_norm_eps`, `batch_first`, `norm_first` and `bias`.

    Example:
        >>> layer = wg.nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True)
        >>> tuple(layer(wg.ones(3, 5, 8), wg.ones(3, 7, 8), tgt_is_causal=True).shape)
        (3, 5, 8)
    """

    _crosses = True

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the sequence `tgt` after the layer, `memory` being the encoder's result; masks as of
        `Transformer.forward`.
        """

        def cross(x: Tensor) -> Tensor:
            attend = self.multihead_attn
            found = attend(
                x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal
            )
            return found[0]

        attend = lambda x: self._attended(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        return self._around(tgt, [attend, cross, self._fed])


def _copies(name: str, layer: Module, count: int) -> ModuleList:
    if not isinstance(layer, Module):
        raise TypeError(f"{name}: a layer to copy expected, got {type(layer).__name__}")
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"{name}: one layer or more expected, got {count!r}")
    check_layers(name, "the number of layers", count)
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class TransformerEncoder(Module):
    """`num_layers` copies of `encoder_layer`, one after another, and the module `norm`, if given, at the end.

    `enable_nested_tensor` and `mask_check` are accepted and change nothing.

    Example:
        >>> layer = wg.nn.TransformerEncoderLayer(8, 2, batch_first=True)
        >>> wg.nn.TransformerEncoder(layer, 2)(wg.randn(1, 5, 8)).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        """Copies `encoder_layer`, values and all."""
        super().__init__()
        self.layers = _copies("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Returns the sequence `src` after all layers; masks as `MultiheadAttention` takes them."""
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, is_causal=bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """`num_layers` copies of `decoder_layer`, one after another, and the module `norm`, if given, at the end.

    Example:
        >>> layer = wg.nn.TransformerDecoderLayer(8, 2, batch_first=True)
        >>> wg.nn.TransformerDecoder(layer, 2)(wg.randn(1, 3, 8), wg.randn(1, 5, 8)).shape
        (1, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        """Copies `decoder_layer`, values and all."""
        super().__init__()
        self.layers = _copies("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the sequence `tgt` after all layers; masks as of `Transformer.forward`."""
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                bool(tgt_is_causal),
                memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder, and a decoder that attends to its result; weight matrices start by `xavier_uniform_`.

    `num_encoder_layers` and `num_decoder_layers` are the numbers of layers, `custom_encoder` and
    `custom_decoder` stacks to use in their place. `d_model`, `nhead`, `dim_feedforward`, `dropout`,
    `activation`, `layer_norm_eps`, `batch_first`, `norm_first` and `bias` as of `TransformerEncoderLayer`.

    Example:
        >>> model = wg.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
        >>> mask = model.generate_square_subsequent_mask(4)
        >>> tuple(model(wg.ones(3, 5, 8), wg.ones(3, 4, 8), tgt_mask=mask).shape)
        (3, 4, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes both stacks."""
        super().__init__()
        settings = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
            bias, device, dtype,
        )  # fmt: skip
        norm = lambda: LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)
        if custom_encoder is None:
            custom_encoder = TransformerEncoder(
                TransformerEncoderLayer(*settings), num_encoder_layers, norm()
            )
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(
                TransformerDecoderLayer(*settings), num_decoder_layers, norm()
            )
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values of everything with more than one axis."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the decoder's result for `tgt` `(T, N, d_model)`, shaped as that; `src` `(S, N, d_model)`
        goes through the encoder.

        With `batch_first` N comes first; it may be missing. `src_mask` `(S, S)`, `tgt_mask` `(T, T)`,
        `memory_mask` `(T, S)`, `src_key_padding_mask` and `memory_key_padding_mask` `(N, S)`, and
        `tgt_key_padding_mask` `(N, T)` are bool (True is left out) or added to scores; `src_is_causal` and
        the like stand for a causal mask where there is none.
        """
        if src.ndim != tgt.ndim or src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise wg.ShapeError(
                f"Transformer: sequences of shapes {tuple(src.shape)} and {tuple(tgt.shape)}; both need as "
                f"many axes, the last of length d_model = {self.d_model}"
            )
        memory = self.encoder(src, src_mask, src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Returns what is added to scores `(sz, sz)` so that position i sees positions up to i: minus
        infinity above the diagonal.
        """
        blocked = wg.ones(sz, sz, dtype=wg.bool, device=device).triu(1)
        return wg.zeros(sz, sz, dtype=dtype, device=device).masked_fill(blocked, -math.inf)

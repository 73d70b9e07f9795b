"""Attention of several heads as a layer. Read next: `transformer.py`, the layers made of it."""

from typing import Any

import wengert as wg
from wengert._core import Tensor
from wengert._numbers import check_integers

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter
from .affine import Linear

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of several heads between projections (Vaswani et al. 2017).

    Called with `query`, `key`, `value` and masks; `forward` has their shapes. Projections start by
    `xavier_uniform_`, biases as zeros. Parameters have PyTorch's names: `in_proj_weight` (queries, keys and
    values below each other) or, where keys or values have widths of their own, `q_proj_weight`,
    `k_proj_weight` and `v_proj_weight`; `in_proj_bias`, `out_proj`, and `bias_k` and `bias_v`.

    Args:
        embed_dim: the features of queries and results, all heads together.
        num_heads: the number of heads, which divides them.
        dropout: the probability that a weight is dropped in training.
        bias: whether the projections have biases.
        add_bias_kv: a learnt key and value behind all others.
        add_zero_attn: a key and value of zeros behind all others.
        kdim: the features of keys, `embed_dim` by default.
        vdim: the features of values, `embed_dim` by default.
        batch_first: whether sequences are `(N, L, E)` rather than `(L, N, E)`.

    Raises:
        ValueError: sizes that are not positive, or heads that do not divide the features.

    Example:
        >>> layer = wg.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> out, weights = layer(wg.ones(3, 5, 8), wg.ones(3, 4, 8), wg.ones(3, 4, 8))
        >>> tuple(out.shape), tuple(weights.shape)
        ((3, 5, 8), (3, 5, 4))
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None
    out_proj: Linear

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        """Makes the projections."""
        super().__init__()
        check_integers("MultiheadAttention", embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim < 1 or num_heads < 1 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: {embed_dim} features do not divide into {num_heads} heads; both are "
                "positive, and embed_dim is a multiple of num_heads"
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        packed = self.kdim == self.vdim == embed_dim
        shapes = {
            "q_proj_weight": None if packed else (embed_dim, embed_dim),
            "k_proj_weight": None if packed else (embed_dim, self.kdim),
            "v_proj_weight": None if packed else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if packed else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            made = None if shape is None else Parameter(wg.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, made)
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new initial values."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        self.out_proj.reset_parameters()
        for zero in (self.in_proj_bias, self.out_proj.bias):
            if zero is not None:
                init.zeros_(zero)
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the result, shaped as the query, and the weights if they are wanted.

        Args:
            query: `(L, N, embed_dim)`, with `batch_first` `(N, L, embed_dim)`, or without a batch
                `(L, embed_dim)`.
            key: `(S, N, kdim)`, and so on.
            value: `(S, N, vdim)`, and so on.
            key_padding_mask: `(N, S)` or `(S,)`: bool (True is left out), or added to the scores.
            need_weights: return the weights too. Without them nothing of the size of the scores is held.
            attn_mask: `(L, S)` or `(N * num_heads, L, S)`, of the same kinds.
            average_attn_weights: the weights are `(N, L, S)`, the mean of the heads, rather than
                `(N, num_heads, L, S)`.
            is_causal: position i sees positions up to i. Where there is an `attn_mask` that decides.
        """
        return F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            self.in_proj_weight is None,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            batch_first=self.batch_first,
        )

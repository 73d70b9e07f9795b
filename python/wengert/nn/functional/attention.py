"""Attention of several heads: projections, masks and heads around `scaled_dot_product_attention`.

The axes of a sequence and of its heads are views, so that the fused operation reads and writes them where
they lie. Only where the weights themselves are asked for are the scores held. The layer is
`modules/attention.py`.
"""

import math

import wengert as wg
from wengert import _core
from wengert._arguments import of_tensors
from wengert._core import Tensor

from .layers import dropout, linear, pad, scaled_dot_product_attention

__all__ = ["multi_head_attention_forward"]

NAME = "multi_head_attention_forward"


def _check_sequences(query: Tensor, key: Tensor, value: Tensor, width: int, heads: int) -> None:
    """Raises unless the three are sequences that go together."""
    axes = {query.ndim, key.ndim, value.ndim}
    if len(axes) > 1 or query.ndim not in (2, 3):
        raise _core.ShapeError(
            f"{NAME}: query, key and value of shapes {tuple(query.shape)}, {tuple(key.shape)} and "
            f"{tuple(value.shape)}; all need 3 axes (batch, sequence, features), or 2 without a batch"
        )
    if query.shape[-1] != width:
        raise _core.ShapeError(
            f"{NAME}: query of shape {tuple(query.shape)}, expected {width} features (the last axis)"
        )
    if heads < 1 or width % heads:
        raise ValueError(f"{NAME}: {width} features do not divide into {heads} heads")
    if tuple(key.shape)[:-1] != tuple(value.shape)[:-1] or tuple(key.shape)[:-2] != tuple(query.shape)[:-2]:
        raise _core.ShapeError(
            f"{NAME}: query, key and value of shapes {tuple(query.shape)}, {tuple(key.shape)} and "
            f"{tuple(value.shape)} (batch first); expected equal batches, and as many keys as values"
        )


def _projected(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weight: Tensor | None,
    weights: tuple[Tensor | None, Tensor | None, Tensor | None],
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values from one weight of all three or from one each; one product for what is the
    same."""
    if weight is None:
        biases = (None, None, None) if bias is None else bias.chunk(3)
        q, k, v = (linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))  # type: ignore[arg-type]
        return q, k, v
    if query is key and key is value:
        q, k, v = linear(query, weight, bias).chunk(3, -1)
        return q, k, v
    width = weight.shape[0] // 3
    first, rest = weight.split([width, 2 * width])
    b_first, b_rest = (None, None) if bias is None else bias.split([width, 2 * width])
    q = linear(query, first, b_first)
    if key is value:
        k, v = linear(key, rest, b_rest).chunk(2, -1)
        return q, k, v
    pairs = zip((key, value), rest.chunk(2), (None, None) if b_rest is None else b_rest.chunk(2))
    k, v = (linear(x, w, b) for x, w, b in pairs)
    return q, k, v


def _mask(name: str, mask: Tensor, expected: list[tuple[int, ...]]) -> Tensor:
    """A mask, checked."""
    if tuple(mask.shape) not in expected:
        shapes = " or ".join(str(shape) for shape in expected)
        raise _core.ShapeError(f"{NAME}: {name} of shape {tuple(mask.shape)}, expected {shapes}")
    if mask.dtype != wg.bool and not mask.is_floating_point():
        raise TypeError(
            f"{NAME}: {name} is bool (True is left out) or floating point (added to the scores), got "
            f"{mask.dtype}"
        )
    return mask


def _as_scores(mask: Tensor, like: Tensor) -> Tensor:
    """A mask as numbers that are added to scores."""
    if mask.dtype != wg.bool:
        return mask.to(like.dtype)
    return _core.zeros(tuple(mask.shape), dtype=like.dtype, device=like.device).masked_fill(mask, -math.inf)


def _merged(masks: list[Tensor], like: Tensor) -> Tensor | None:
    """One mask of all: True where left out, or numbers if one of them has numbers."""
    if not masks:
        return None
    if all(mask.dtype == wg.bool for mask in masks):
        out = masks[0]
        for mask in masks[1:]:
            out = out.logical_or(mask)
        return out
    total = _as_scores(masks[0], like)
    for mask in masks[1:]:
        total = total + _as_scores(mask, like)
    return total


def _masks(
    q: Tensor, sources: int, padding: Tensor | None, mask: Tensor | None, is_causal: bool, extra: int
) -> list[Tensor]:
    """All masks as they broadcast to the scores `(batch, heads, targets, sources)`, the `extra` last sources
    open."""
    *batch, heads, targets, _ = q.shape
    found = []
    if padding is not None:
        padding = _mask("key_padding_mask", padding, [(*batch, sources)])
        found.append(padding.unsqueeze(-2).unsqueeze(-2))
    if mask is not None:
        whole = (math.prod(batch) * heads, targets, sources)
        mask = _mask("attn_mask", mask, [(targets, sources), whole])
        found.append(mask if mask.ndim == 2 else mask.reshape(*batch, heads, targets, sources))
    elif is_causal:
        order = [_core.arange(0, n, dtype=_core.int32, device=q.device) for n in (targets, sources)]
        found.append(order[0].unsqueeze(1) < order[1])
    if extra:
        found = [
            wg.cat([m, _core.zeros((*m.shape[:-1], extra), dtype=m.dtype, device=m.device)], -1)
            for m in found
        ]
    return found


def _weighted(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float
) -> tuple[Tensor, Tensor]:
    """Attention with its weights: rows that see nothing have weights of zero, as in the fused operation."""
    scores = (q * (1.0 / math.sqrt(max(q.shape[-1], 1)))) @ k.mT
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf) if mask.dtype == wg.bool else scores + mask
    blind = scores.detach() == -math.inf
    empty = blind.all(-1, keepdim=True)
    # A row of zeros has a softmax with a finite gradient, and what comes of it is not used.
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    weights = dropout(weights, dropout_p)
    return weights @ v, weights


@of_tensors
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    *,
    batch_first: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Computes attention of several heads between projections (Vaswani et al. 2017); `nn.MultiheadAttention`
    holds the weights.

    Args:
        query: `(L, N, E)`, with `batch_first` `(N, L, E)`, or without a batch `(L, E)`.
        key: `(S, N, K)`, and so on.
        value: `(S, N, V)`, and so on.
        embed_dim_to_check: the features `E` of the query.
        num_heads: into how many heads they divide.
        in_proj_weight: the projections of all three, `(3 E, E)`; unused with `use_separate_proj_weight`.
        in_proj_bias: `(3 E,)` or None.
        bias_k: a key `(1, 1, E)` that stands behind all others, after the projection, and is never masked.
        bias_v: its value.
        add_zero_attn: one more key and value of zeros.
        dropout_p: dropout on the attention weights in training.
        out_proj_weight: `(E, E)`, applied to the heads' results beside each other.
        out_proj_bias: `(E,)` or None.
        training: whether there is dropout.
        key_padding_mask: `(N, S)` or `(S,)`: bool (True is left out), or added to the scores.
        need_weights: also return the weights, for which the scores must be held.
        attn_mask: `(L, S)` or `(N * num_heads, L, S)`, of the same kinds.
        use_separate_proj_weight: project with the three weights that follow.
        q_proj_weight: `(E, E)`.
        k_proj_weight: `(E, K)`.
        v_proj_weight: `(E, V)`.
        static_k: keys in place of the projected ones, `(N * num_heads, S, E / num_heads)`.
        static_v: values likewise.
        average_attn_weights: return the mean of the heads' weights rather than all of them.
        is_causal: position i sees positions up to i. Where there is an `attn_mask` that decides.
        batch_first: where the axis of the batch is.

    Returns:
        The result, shaped as the query, and the weights `(N, L, S)` or `(N, num_heads, L, S)`, or None. A row
        that sees nothing has weights of zero.

    Raises:
        ShapeError: for shapes that do not fit.
        ValueError: if the features do not divide into the heads.
        TypeError: for masks of another kind.

    Example:
        >>> x = wg.randn(5, 1, 4)
        >>> into, out = (wg.randn(12, 4), wg.zeros(12)), (wg.eye(4), wg.zeros(4))
        >>> y, weights = wg.nn.functional.multi_head_attention_forward(
        ...     x, x, x, 4, 2, *into, None, None, False, 0.0, *out
        ... )
        >>> y.shape, weights.shape
        ((5, 1, 4), (1, 5, 5))
    """
    if query.ndim == 3 and not batch_first:
        same, pair = query is key, key is value
        query = query.transpose(0, 1)
        key = query if same else key.transpose(0, 1)
        value = key if pair else value.transpose(0, 1)
    _check_sequences(query, key, value, embed_dim_to_check, num_heads)
    together = None if use_separate_proj_weight else in_proj_weight
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    if together is None and any(weight is None for weight in separate):
        raise ValueError(f"{NAME}: give in_proj_weight, or use_separate_proj_weight and three weights")
    q, k, v = _projected(query, key, value, together, separate, in_proj_bias)
    if (bias_k is None) != (bias_v is None):
        raise ValueError(f"{NAME}: bias_k and bias_v are given together or not at all")
    sources, width = key.shape[-2], embed_dim_to_check // num_heads
    if bias_k is not None and bias_v is not None:
        row = (*k.shape[:-2], 1, k.shape[-1])
        k, v = (wg.cat([x, b.reshape(-1).to(x.dtype).expand(row)], -2) for x, b in ((k, bias_k), (v, bias_v)))
    apart = lambda x: x.reshape(*x.shape[:-1], num_heads, width).transpose(-2, -3)
    q, k, v = apart(q), apart(k), apart(v)
    k = k if static_k is None else static_k.reshape(*q.shape[:-2], -1, width)
    v = v if static_v is None else static_v.reshape(*q.shape[:-2], -1, width)
    if static_k is not None:
        sources = k.shape[-2]
    if add_zero_attn:
        k, v = pad(k, (0, 0, 0, 1)), pad(v, (0, 0, 0, 1))
    causal = is_causal and attn_mask is None
    extra = k.shape[-2] - sources
    plain = causal and key_padding_mask is None and not extra and not need_weights
    found = [] if plain else _masks(q, sources, key_padding_mask, attn_mask, causal, extra)
    mask = _merged(found, q)
    p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        out, weights = _weighted(q, k, v, mask, p)
    else:
        allowed = mask.logical_not() if mask is not None and mask.dtype == wg.bool else mask
        out = scaled_dot_product_attention(q, k, v, allowed, p, plain)
    out = out.transpose(-2, -3)
    out = linear(out.reshape(*out.shape[:-2], embed_dim_to_check), out_proj_weight, out_proj_bias)
    if out.ndim == 3 and not batch_first:
        out = out.transpose(0, 1)
    if weights is not None and average_attn_weights:
        weights = weights.mean(-3)
    return out, weights

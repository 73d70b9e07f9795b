"""Of layers: attention, pools, pads, dropout, adaptive softmax."""

from typing import Any

import wengert as wg
from messages import Situations
from wengert import nn
from wengert.nn import functional as F

from situations.operands import i, ones


def attend(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], **more: Any) -> Any:
    """Attention of two heads over four features."""
    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    return lambda: layer(ones(*q), ones(*k), ones(*v), **more)


LAYERS: Situations = {
    "size_Linear": (lambda: nn.Linear(2.5, 1), TypeError, "Linear: in_features is an integer, got 2.5"),
    "size_Linear_out": (lambda: nn.Linear(2, "a"), TypeError, "Linear: out_features is an integer, got 'a'"),
    "size_Bilinear": (
        lambda: nn.Bilinear(1, 2, 2.5),
        TypeError,
        "Bilinear: out_features is an integer, got 2.5",
    ),
    "size_Embedding": (
        lambda: nn.Embedding(2.5, 3),
        TypeError,
        "Embedding: num_embeddings is an integer, got 2.5",
    ),
    "size_Embedding_padding": (
        lambda: nn.Embedding(2, 3, 0.5),
        TypeError,
        "Embedding: padding_idx is an integer, got 0.5",
    ),
    "size_EmbeddingBag": (
        lambda: nn.EmbeddingBag(2, None),
        TypeError,
        "EmbeddingBag: embedding_dim is an integer, got None",
    ),
    "size_EmbeddingBag_padding": (
        lambda: nn.EmbeddingBag(2, 3, padding_idx="a"),
        TypeError,
        "EmbeddingBag: padding_idx is an integer, got 'a'",
    ),
    "size_Dropout": (lambda: nn.Dropout("a"), TypeError, "Dropout: p is a number between 0 and 1, got 'a'"),
    "size_Dropout2d": (
        lambda: nn.Dropout2d(2),
        ValueError,
        "Dropout2d: p is a probability between 0 and 1, got 2",
    ),
    "size_dropout": (
        lambda: F.dropout(ones(2), [0.5]),
        TypeError,
        "dropout: p must be a number, got list",
    ),
    "size_dropout1d": (
        lambda: F.dropout1d(ones(2, 3), None),
        TypeError,
        "dropout1d: p must be a number, got NoneType",
    ),
    "size_Conv2d_channels": (
        lambda: nn.Conv2d(1, 2.5, 3),
        TypeError,
        "Conv2d: out_channels is an integer, got 2.5",
    ),
    "size_Conv2d_text": (
        lambda: nn.Conv2d("a", 2, 3),
        TypeError,
        "Conv2d: in_channels is an integer, got 'a'",
    ),
    "size_Conv2d_kernel": (
        lambda: nn.Conv2d(1, 2, 3.5),
        TypeError,
        "Conv2d: kernel_size is an integer, or one for each of 2 axes, got 3.5",
    ),
    "size_Conv2d_stride": (
        lambda: nn.Conv2d(1, 2, 3, stride="bb"),
        TypeError,
        "Conv2d: stride is an integer, or one for each of 2 axes, got 'bb'",
    ),
    "size_Conv1d_padding": (
        lambda: nn.Conv1d(1, 2, 3, padding=(0.5,)),
        TypeError,
        "Conv1d: padding is an integer, or one for each of 1 axes, got (0.5,)",
    ),
    "size_ConvTranspose3d_groups": (
        lambda: nn.ConvTranspose3d(1, 2, 3, groups=1.5),
        TypeError,
        "ConvTranspose3d: groups is an integer, got 1.5",
    ),
    "size_BatchNorm1d": (
        lambda: nn.BatchNorm1d(2.5),
        TypeError,
        "BatchNorm1d: num_features is an integer, got 2.5",
    ),
    "size_InstanceNorm2d": (
        lambda: nn.InstanceNorm2d("a"),
        TypeError,
        "InstanceNorm2d: num_features is an integer, got 'a'",
    ),
    "size_LayerNorm": (
        lambda: nn.LayerNorm(2.5),
        TypeError,
        "LayerNorm: normalized_shape is an integer or a sequence of integers, got 2.5",
    ),
    "size_RMSNorm": (
        lambda: nn.RMSNorm([2, "a"]),
        TypeError,
        "RMSNorm: normalized_shape is an integer or a sequence of integers, got [2, 'a']",
    ),
    "size_GroupNorm": (
        lambda: nn.GroupNorm(2.5, 4),
        TypeError,
        "GroupNorm: num_groups is an integer, got 2.5",
    ),
    "size_MultiheadAttention": (
        lambda: nn.MultiheadAttention(4, 2.5),
        TypeError,
        "MultiheadAttention: num_heads is an integer, got 2.5",
    ),
    "size_call_of_no_module": (
        lambda: nn.functional_call(len, {}, ones(2)),
        TypeError,
        "functional_call: module is a module, got builtin_function_or_method",
    ),
    "size_call_of_a_list": (
        lambda: nn.functional_call(nn.ReLU(), [ones(2)], ones(2)),
        TypeError,
        "functional_call: parameters is a dictionary of names and tensors, or a tuple of them, got ['Tensor']",
    ),
    "size_call_with_another_name": (
        lambda: nn.functional_call(nn.Linear(3, 1), {"a": ones(1)}, ones(3)),
        KeyError,
        "\"functional_call: Linear has no 'a'; it has: weight, bias\"",
    ),
    "size_call_without_a_value": (
        lambda: nn.functional_call(nn.Linear(3, 1), {"weight": ones(1, 3)}, ones(3), strict=True),
        KeyError,
        "'functional_call: no value for bias of Linear; strict=True demands one for every parameter and buffer'",
    ),
    "heads_divide": (
        lambda: nn.MultiheadAttention(6, 4),
        ValueError,
        (
            "MultiheadAttention: 6 features do not divide into 4 heads; both are positive, and embed_dim is "
            "a multiple of num_heads"
        ),
    ),
    "heads_axes": (
        attend((2, 3, 4), (3, 4), (3, 4)),
        wg.ShapeError,
        (
            "multi_head_attention_forward: query, key and value of shapes (2, 3, 4), (3, 4) and (3, 4); all "
            "need 3 axes (batch, sequence, features), or 2 without a batch"
        ),
    ),
    "heads_features": (
        attend((2, 3, 5), (2, 3, 4), (2, 3, 4)),
        wg.ShapeError,
        "multi_head_attention_forward: query of shape (2, 3, 5), expected 4 features (the last axis)",
    ),
    "heads_batches": (
        attend((2, 3, 4), (1, 3, 4), (1, 3, 4)),
        wg.ShapeError,
        (
            "multi_head_attention_forward: query, key and value of shapes (2, 3, 4), (1, 3, 4) and (1, 3, 4) "
            "(batch first); expected equal batches, and as many keys as values"
        ),
    ),
    "heads_mask_shape": (
        attend((2, 3, 4), (2, 5, 4), (2, 5, 4), attn_mask=ones(3, 3)),
        wg.ShapeError,
        "multi_head_attention_forward: attn_mask of shape (3, 3), expected (3, 5) or (4, 3, 5)",
    ),
    "heads_padding_shape": (
        attend((2, 3, 4), (2, 5, 4), (2, 5, 4), key_padding_mask=ones(5, 2)),
        wg.ShapeError,
        "multi_head_attention_forward: key_padding_mask of shape (5, 2), expected (2, 5)",
    ),
    "heads_mask_dtype": (
        attend((3, 4), (3, 4), (3, 4), attn_mask=wg.ones(3, 3, dtype=wg.int64)),
        TypeError,
        (
            "multi_head_attention_forward: attn_mask is bool (True is left out) or floating point (added to "
            "the scores), got wengert.int64"
        ),
    ),
    "transformer_activation": (
        lambda: nn.TransformerEncoderLayer(4, 2, activation="softmax"),
        ValueError,
        "TransformerEncoderLayer: activation must be a function, 'relu' or 'gelu', got 'softmax'",
    ),
    "transformer_layer": (
        lambda: nn.TransformerDecoder(ones(2), 2),  # type: ignore[arg-type]
        TypeError,
        "TransformerDecoder: a layer to copy expected, got Tensor",
    ),
    "transformer_widths": (
        lambda: nn.Transformer(4, 2, 1, 1, 4)(ones(2, 3, 4), ones(2, 3, 6)),
        wg.ShapeError,
        (
            "Transformer: sequences of shapes (2, 3, 4) and (2, 3, 6); both need as many axes, the last of "
            "length d_model = 4"
        ),
    ),
    "padding_widths": (
        lambda: nn.ReflectionPad2d((1, 2)),
        ValueError,
        "ReflectionPad2d: one number or 4 expected, (before, after) for each axis, got (1, 2)",
    ),
    "padding_axes": (
        lambda: nn.ZeroPad1d(1)(ones(2)),
        wg.ShapeError,
        "ZeroPad1d: 3 axes, or 2 of one image, expected, got shape (2,)",
    ),
    "dropout_axes": (
        lambda: F.dropout3d(ones(2)),
        wg.ShapeError,
        "dropout3d: input of shape (N, C, ...) expected, got (2,)",
    ),
    "alpha_dropout_probability": (
        lambda: F.alpha_dropout(ones(2, 3), 1.5),
        ValueError,
        "alpha_dropout: p is a probability between 0 and 1, got 1.5",
    ),
    "instance_norm_axes": (
        lambda: nn.InstanceNorm2d(3)(ones(2, 3)),
        wg.ShapeError,
        "InstanceNorm2d: input with 3 or 4 axes expected, got shape (2, 3)",
    ),
    "instance_norm_one_value": (
        lambda: F.instance_norm(ones(2, 3, 1)),
        ValueError,
        ("instance_norm: more than one value per channel of an image expected, got input of shape (2, 3, 1)"),
    ),
    "response_norm_size": (
        lambda: F.local_response_norm(ones(2, 3, 1), 0),
        ValueError,
        "local_response_norm: size must be 1 or more, got 0",
    ),
    "adaptive_max_size": (
        lambda: F.adaptive_max_pool1d(ones(2, 4), 0),
        ValueError,
        "adaptive_max_pool1d: output_size must be 1 or more, got 0",
    ),
    "adaptive_max_axes": (
        lambda: F.adaptive_max_pool2d(ones(2, 4), 1),
        wg.ShapeError,
        (
            "adaptive_max_pool2d: input of shape (2, 4); expected 4 axes (images, channels and 2 spatial "
            "axes, none of them empty) or 3 (one image)"
        ),
    ),
    "fractional_size": (
        lambda: F.fractional_max_pool2d(ones(1, 4, 4), 2, 4),
        ValueError,
        "fractional_max_pool2d: 4 windows of 2 do not fit an axis of 4; from 1 to 3 of them do",
    ),
    "fractional_sizes": (
        lambda: F.fractional_max_pool2d(ones(1, 4, 4), 2),
        ValueError,
        "fractional_max_pool2d: give either output_size or output_ratio",
    ),
    "unpool_indices": (
        lambda: F.max_unpool1d(ones(1, 2), i(0, 1), 2),
        wg.ShapeError,
        "max_unpool1d: indices of shape (2,), expected (1, 2) as the input",
    ),
    "unpool_size": (
        lambda: F.max_unpool1d(ones(1, 2), i(0, 1).reshape(1, 2), 2, output_size=(9,)),
        ValueError,
        (
            "max_unpool1d: output_size (9,) cannot come from input of shape (1, 2); each length is less than "
            "one stride from (4,)"
        ),
    ),
    "norm_of_windows": (
        lambda: F.lp_pool1d(ones(1, 2), 0, 2),
        ValueError,
        "lp_pool1d: norm_type must be positive, got 0.0",
    ),
    "temperature": (
        lambda: F.gumbel_softmax(ones(2), 0.0),
        ValueError,
        "gumbel_softmax: tau must be positive, got 0.0",
    ),
    "shrinking": (
        lambda: F.softshrink(ones(2), -1.0),
        ValueError,
        "softshrink: lambd must not be negative, got -1.0",
    ),
    "cutoffs": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 5]),
        ValueError,
        (
            "AdaptiveLogSoftmaxWithLoss: increasing cutoffs between 1 and n_classes - 1 = 9 expected, got "
            "[5, 5]"
        ),
    ),
    "adaptive_softmax_class": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5])(ones(2, 4), i(3, 10)),
        IndexError,
        "AdaptiveLogSoftmaxWithLoss: targets from 3 to 10, expected 0 to 9",
    ),
}

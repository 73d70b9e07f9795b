"""Attention of several heads and the transformer's layers: against NumPy, in every transform, and their
parameters."""

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest
import wengert as wg
from references.nn_reference import array, close
from scipy.special import softmax
from support import assert_near
from wengert import nn
from wengert.nn import functional as F

F64 = wg.float64


def numpy(x: wg.Tensor) -> np.ndarray:
    return np.asarray(x.detach().tolist()).reshape(tuple(x.shape))


def reference(layer: nn.MultiheadAttention, q: Any, k: Any, v: Any, added: Any) -> tuple[Any, Any]:
    """One sequence `(L, E)` through the layer, one head after another; `added` is added to the scores
    `(H, L, S)`."""
    get = lambda name: None if getattr(layer, name) is None else numpy(getattr(layer, name))
    packed = get("in_proj_weight")
    names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
    weights = np.split(packed, 3) if packed is not None else [get(name) for name in names]
    biases = [0, 0, 0] if layer.in_proj_bias is None else np.split(get("in_proj_bias"), 3)
    q, k, v = (x @ w.T + b for x, w, b in zip((q, k, v), weights, biases))
    if layer.bias_k is not None:
        k, v = np.concatenate([k, get("bias_k")[0]]), np.concatenate([v, get("bias_v")[0]])
    if layer.add_zero_attn:
        k, v = (np.concatenate([x, np.zeros((1, x.shape[1]))]) for x in (k, v))
    d, out, weights = layer.head_dim, [], []
    for h in range(layer.num_heads):
        part = slice(h * d, (h + 1) * d)
        scores = q[:, part] @ k[:, part].T / math.sqrt(d)
        scores[:, : added.shape[-1]] += added[h]
        weights.append(softmax(scores, -1))
        out.append(weights[-1] @ v[:, part])
    bias = 0 if layer.out_proj.bias is None else numpy(layer.out_proj.bias)
    return np.concatenate(out, -1) @ numpy(layer.out_proj.weight).T + bias, np.stack(weights)


KINDS = list(itertools.product([False, True], [False, True], [None, 5], [True, False]))


@pytest.mark.parametrize(("more", "zero", "kdim", "bias"), KINDS)
def test_attention_against_numpy(more: bool, zero: bool, kdim: int | None, bias: bool) -> None:
    wg.manual_seed(0)
    options = dict(add_bias_kv=more, add_zero_attn=zero, kdim=kdim, vdim=kdim and 6, bias=bias, dtype=F64)
    layer = nn.MultiheadAttention(8, 2, **options)
    batch_first = nn.MultiheadAttention(8, 2, batch_first=True, **options)
    batch_first.load_state_dict(layer.state_dict())
    n, lengths, sources = 3, 4, 5
    q, k, v = array(n, lengths, 8), array(n, sources, kdim or 8), array(n, sources, 6 if kdim else 8)
    blocked = np.zeros((lengths, sources), bool)
    blocked[0, 1:] = blocked[2, 3] = True
    each = array(n * 2, lengths, sources)
    padding = np.zeros((n, sources), bool)
    padding[1, 3:] = padding[2, 4] = True
    tensors = [wg.tensor(x) for x in (q, k, v)]
    for mask, padded in itertools.product([None, blocked, each], [None, padding]):
        added = np.zeros((n, 2, lengths, sources))
        if mask is blocked:
            added = np.where(blocked, -np.inf, added)
        elif mask is not None:
            added = added + each.reshape(added.shape)
        if padded is not None:
            added = np.where(padding[:, None, None], -np.inf, added)
        rows = [reference(layer, *x) for x in zip(q, k, v, added)]
        want, weights = (np.stack(part) for part in zip(*rows))
        given = {
            "attn_mask": None if mask is None else wg.tensor(mask),
            "key_padding_mask": None if padded is None else wg.tensor(padded),
        }
        out, averaged = batch_first(*tensors, **given)
        close(out, want, 1e-11)
        close(averaged, weights.mean(1), 1e-11)
        turned = [x.transpose(0, 1) for x in tensors]
        out, all_of_them = layer(*turned, **given, average_attn_weights=False)
        close(out.transpose(0, 1), want, 1e-11)
        close(all_of_them, weights, 1e-11)
        out, none = layer(*turned, **given, need_weights=False)
        close(out.transpose(0, 1), want, 1e-11)
        assert none is None
        # One sequence without a batch.
        one = {
            "attn_mask": wg.tensor(each[:2]) if mask is each else given["attn_mask"],
            "key_padding_mask": None if padded is None else wg.tensor(padded[0]),
        }
        out, found = layer(*(x[0] for x in tensors), **one)
        close(out, want[0], 1e-11)
        close(found, weights[0].mean(0), 1e-11)


def test_causal_attention() -> None:
    layer = nn.MultiheadAttention(4, 2, batch_first=True, dtype=F64)
    more = nn.MultiheadAttention(4, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True, dtype=F64)
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=F64)
    assert mask.tolist() == np.triu(np.full((5, 5), -np.inf), 1).tolist()
    x, padding = wg.tensor(array(2, 5, 4)), wg.tensor([[False] * 5, [False] * 3 + [True] * 2])
    for m, need, p in itertools.product((layer, more), (False, True), (None, padding)):
        got = m(x, x, x, p, need, is_causal=True)[0]
        close(got, m(x, x, x, p, need, mask)[0].tolist(), 1e-12)


def test_rows_that_see_nothing() -> None:
    layer = nn.MultiheadAttention(4, 2, batch_first=True, dtype=F64)
    layer.out_proj.bias.data = wg.tensor(array(4))
    x = wg.tensor(array(1, 3, 4), requires_grad=True)
    for mask in (wg.ones(3, 3, dtype=wg.bool), wg.full((3, 3), -math.inf, dtype=F64)):
        for need in (True, False):
            out, weights = layer(x, x, x, attn_mask=mask, need_weights=need)
            close(out[0], [layer.out_proj.bias.tolist()] * 3)
            assert weights is None or weights.abs().sum().item() == 0
            out.sum().backward()
            assert np.isfinite(x.grad.tolist()).all()


def test_names_and_shapes_are_pytorchs() -> None:
    names = lambda layer: {name: tuple(p.shape) for name, p in layer.state_dict().items()}
    packed = nn.MultiheadAttention(4, 2, add_bias_kv=True)
    assert names(packed) == {
        "in_proj_weight": (12, 4),
        "in_proj_bias": (12,),
        "bias_k": (1, 1, 4),
        "bias_v": (1, 1, 4),
        "out_proj.weight": (4, 4),
        "out_proj.bias": (4,),
    }
    assert packed.in_proj_bias.abs().sum().item() == packed.out_proj.bias.abs().sum().item() == 0
    bound = math.sqrt(6 / 16)
    assert 0.5 * bound < packed.in_proj_weight.abs().max().item() <= bound
    apart = nn.MultiheadAttention(4, 2, bias=False, kdim=3, vdim=5)
    assert names(apart) == {
        "q_proj_weight": (4, 4),
        "k_proj_weight": (4, 3),
        "v_proj_weight": (4, 5),
        "out_proj.weight": (4, 4),
    }
    encoder, decoder = nn.TransformerEncoderLayer(4, 2, 6), nn.TransformerDecoderLayer(4, 2, 6)
    parts = ["self_attn", "linear1", "linear2", "norm1", "norm2"]
    assert [name for name in dict(encoder.named_children()) if "drop" not in name] == parts
    assert [name for name in dict(decoder.named_children()) if "drop" not in name] == [
        "self_attn", "multihead_attn", "linear1", "linear2", "norm1", "norm2", "norm3"
    ]  # fmt: skip
    model = nn.Transformer(4, 2, 2, 1, 6)
    assert {name.rsplit(".", 2)[0] for name in model.state_dict() if "norm." in name} == {
        "encoder",
        "decoder",
    }
    assert len(model.state_dict()) == 2 * 12 + 18 + 4


def normed(x: Any, layer: nn.LayerNorm) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + layer.eps) * numpy(layer.weight) + numpy(
        layer.bias
    )


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", F.silu])
def test_layers_against_numpy(norm_first: bool, activation: Any) -> None:
    wg.manual_seed(1)
    settings = dict(activation=activation, norm_first=norm_first, batch_first=True, dtype=F64)
    encoder = nn.TransformerEncoderLayer(4, 2, 6, 0.0, **settings)
    decoder = nn.TransformerDecoderLayer(4, 2, 6, 0.0, **settings)
    for p in itertools.chain(encoder.parameters(), decoder.parameters()):
        p.data = wg.tensor(np.random.default_rng(p.numel()).standard_normal(tuple(p.shape)))
    x, memory = array(3, 4), array(5, 4)
    act = {"relu": F.relu, "gelu": F.gelu}.get(activation, activation)
    causal = np.stack([np.triu(np.full((3, 3), -np.inf), 1)] * 2)

    def fed(layer: Any, x: Any) -> Any:
        inner = x @ numpy(layer.linear1.weight).T + numpy(layer.linear1.bias)
        return numpy(act(wg.tensor(inner))) @ numpy(layer.linear2.weight).T + numpy(layer.linear2.bias)

    def through(layer: Any, x: Any, parts: list[Any]) -> Any:
        for i, part in enumerate(parts, 1):
            norm = getattr(layer, f"norm{i}")
            x = x + part(normed(x, norm)) if norm_first else normed(x + part(x), norm)
        return x

    attend = lambda m: lambda x: reference(m, x, x, x, causal)[0]
    cross = lambda x: reference(decoder.multihead_attn, x, memory, memory, np.zeros((2, 3, 5)))[0]
    want = through(encoder, x, [attend(encoder.self_attn), lambda x: fed(encoder, x)])
    close(encoder(wg.tensor(x), is_causal=True), want, 1e-10)
    want = through(decoder, x, [attend(decoder.self_attn), cross, lambda x: fed(decoder, x)])
    close(decoder(wg.tensor(x), wg.tensor(memory), tgt_is_causal=True), want, 1e-10)


def test_stacks_are_their_layers_one_after_another() -> None:
    wg.manual_seed(2)
    model = nn.Transformer(8, 2, 2, 2, 12, 0.0, batch_first=True, dtype=F64)
    src, tgt = wg.tensor(array(3, 5, 8)), wg.tensor(array(3, 4, 8))
    mask = model.generate_square_subsequent_mask(4)
    padding = wg.tensor([[False] * 5, [False] * 4 + [True], [False] * 3 + [True] * 2])
    memory = src
    for layer in model.encoder.layers:
        memory = layer(memory, None, padding)
    memory = model.encoder.norm(memory)
    x = tgt
    for layer in model.decoder.layers:
        x = layer(x, memory, mask, None, None, padding)
    want = model.decoder.norm(x)
    options = dict(src_key_padding_mask=padding, memory_key_padding_mask=padding)
    close(model(src, tgt, tgt_mask=mask, **options), want.tolist(), 1e-12)
    close(model(src, tgt, tgt_is_causal=True, **options), want.tolist(), 1e-12)
    # What is behind padding and behind the position itself changes nothing.
    other = src.clone()
    other[2, 3:] = 7.0
    later = tgt.clone()
    later[:, 3] = 5.0
    moved = model(other, later, tgt_mask=mask, **options)
    close(moved[:, :3], want[:, :3].tolist(), 1e-12)
    # Layers of a stack start equal, and are layers of their own.
    first, second = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6), 2).layers
    assert first.linear1.weight.tolist() == second.linear1.weight.tolist()
    assert first.linear1.weight is not second.linear1.weight
    assert copy.deepcopy(model)(src, tgt).tolist() == model(src, tgt).tolist()


def test_dropout_in_training_alone() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True)
    x = wg.randn(2, 5, 8)
    wg.manual_seed(3)
    first = layer(x)
    assert first.tolist() != layer(x).tolist()
    wg.manual_seed(3)
    assert first.tolist() == layer(x).tolist()
    layer.eval()
    assert layer(x).tolist() == layer(x).tolist()


# ---- transforms ----------------------------------------------------------------------------------


def encoder(dropout: float = 0.0) -> nn.TransformerEncoderLayer:
    wg.manual_seed(4)
    return nn.TransformerEncoderLayer(4, 2, 6, dropout, "gelu", batch_first=True, norm_first=True, dtype=F64)


def test_gradients_by_differences() -> None:
    layer, decoder = encoder(), nn.TransformerDecoderLayer(4, 2, 6, 0.0, "gelu", batch_first=True, dtype=F64)
    x, memory = (wg.tensor(array(2, n, 4), requires_grad=True) for n in (3, 2))
    assert wg.autograd.gradcheck(lambda x: layer(x, is_causal=True), (x,))
    assert wg.autograd.gradgradcheck(lambda x: layer(x, is_causal=True), (x,))
    assert wg.autograd.gradcheck(lambda x, m: decoder(x, m, tgt_is_causal=True), (x, memory))
    attention = nn.MultiheadAttention(4, 2, batch_first=True, dtype=F64)
    assert wg.autograd.gradgradcheck(lambda x, m: attention(x, m, m), (x, memory))


def test_gradients_of_each_example() -> None:
    layer = encoder()
    weights = {name: p.detach() for name, p in layer.named_parameters()}
    x, y = wg.tensor(array(5, 3, 4)), wg.tensor(array(5, 1, 4))

    def loss(weights: Any, x: wg.Tensor, y: wg.Tensor) -> wg.Tensor:
        return (nn.functional_call(layer, weights, (x,)) - y).square().mean()

    found = wg.vmap(wg.grad(loss), in_axes=(None, 0, 0))(weights, x, y)
    chunked = wg.vmap(wg.grad(loss), in_axes=(None, 0, 0), chunk_size=2)(weights, x, y)
    for i in range(5):
        layer.zero_grad()
        (layer(x[i]) - y[i]).square().mean().backward()
        for name, p in layer.named_parameters():
            assert_near(found[name][i], numpy(p.grad), 1e-12)
            assert_near(chunked[name][i], numpy(p.grad), 1e-12)
    # Under dropout each example draws numbers of its own, or all the same ones.
    layer = encoder(0.3)
    for randomness in ("different", "same"):
        found = wg.vmap(wg.grad(loss), in_axes=(None, 0, 0), randomness=randomness)(
            weights, x[:1].expand(5, 3, 4), y[:1].expand(5, 1, 4)
        )
        rows = {str(row.tolist()) for row in found["linear1.weight"]}
        assert len(rows) == (5 if randomness == "different" else 1)


def test_curvature_of_a_layer() -> None:
    layer = encoder()
    x, t = wg.tensor(array(2, 4)), wg.tensor(np.cos(array(2, 4)))
    f = lambda x: layer(x).pow(3).sum()
    hessian = wg.hessian(f)(x)
    assert_near(hessian, numpy(wg.jacrev(wg.grad(f))(x)), 1e-10)
    assert_near(wg.hvp(f, (x,), (t,))[1], numpy((hessian * t).sum((2, 3))), 1e-10)
    h = 1e-5
    difference = (numpy(layer(x + h * t)) - numpy(layer(x - h * t))) / (2 * h)
    assert_near(wg.jvp(layer, (x,), (t,))[1], difference, 1e-8)


def test_an_ensemble_of_layers() -> None:
    layers = [nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=True, dtype=F64) for _ in range(3)]
    weights, buffers = nn.stack_module_state(layers)
    x = wg.tensor(array(2, 3, 4))
    call = lambda weights, buffers: nn.functional_call(layers[0], {**weights, **buffers}, (x,))
    found = wg.vmap(call)(weights, buffers)
    for i, layer in enumerate(layers):
        assert_near(found[i], numpy(layer(x)), 1e-12)


def test_low_precision_and_checkpoints() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    x = wg.randn(2, 5, 8, requires_grad=True)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    full = layer(x, mask)
    with wg.autocast("cpu", dtype=wg.bfloat16):
        half = layer(x, mask)
        half.float().sum().backward()
    np.testing.assert_allclose(numpy(half.float()), numpy(full), atol=0.1)
    assert x.grad.dtype == wg.float32
    again = wg.utils.checkpoint.checkpoint(layer, x, mask)
    x.grad = None
    again.square().sum().backward()
    first = x.grad.tolist()
    x.grad = None
    full.square().sum().backward()
    assert x.grad.tolist() == first


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    model = nn.Transformer(8, 2, 1, 1, 12, 0.0, batch_first=True)
    src, tgt = wg.randn(2, 3, 8), wg.randn(2, 4, 8)
    mask = model.generate_square_subsequent_mask(4)
    want = model(src, tgt, tgt_mask=mask)
    want.square().sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model.gpu()
    for options in ({"tgt_mask": mask.gpu()}, {"tgt_is_causal": True}):
        found = model(src.gpu(), tgt.gpu(), **options)
        np.testing.assert_allclose(numpy(found.cpu()), numpy(want), atol=1e-5)
        found.square().sum().backward()
        for p, g in zip(model.parameters(), gradients):
            np.testing.assert_allclose(numpy(p.grad.cpu()), numpy(g), atol=1e-4)
        model.zero_grad()

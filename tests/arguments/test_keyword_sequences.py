"""Keywords of attention, transformers and recurrent layers: against their formulas in NumPy."""

import copy
from typing import Any

import numpy as np
import pytest
import wengert as wg
from scipy import special
from wengert import nn
from wengert.nn import functional as F

from arguments.rows import Array, check, differ, near, numbers, run

E, HEADS = 6, 2
QUERY, MEMORY = numbers(4, 3, E), numbers(5, 3, E, seed=1)
CAUSAL = np.triu(np.ones((4, 4), bool), 1)


def heads(x: Array) -> Array:
    """`(L, N, E)` as `(N, heads, L, E / heads)`."""
    return x.reshape(len(x), x.shape[1], HEADS, -1).transpose(1, 2, 0, 3)


def attended(q: Array, k: Array, v: Array, hidden: Any = False) -> tuple[Array, Array]:
    """Attention of heads that are given; what is hidden has no weight."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    weights = special.softmax(np.where(hidden, -np.inf, scores), -1)
    return (weights @ v).transpose(2, 0, 1, 3).reshape(q.shape[2], q.shape[0], -1), weights


def attention(x: Array, memory: Array, p: dict[str, Array], name: str, hidden: Any = False) -> Array:
    """Attention between the projections of a layer."""
    biases = p.get(f"{name}.in_proj_bias", np.zeros(3 * E)).reshape(3, E)
    parts = zip((x, memory, memory), p[f"{name}.in_proj_weight"].reshape(3, E, E), biases)
    out = attended(*(heads(y @ w.T + b) for y, w, b in parts), hidden)[0]
    return out @ p[f"{name}.out_proj.weight"].T + p.get(f"{name}.out_proj.bias", 0.0)


def norm(x: Array, p: dict[str, Array], name: str, eps: float) -> Array:
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return y * p[f"{name}.weight"] + p.get(f"{name}.bias", 0.0)


def layer(
    x: Array, p: dict[str, Array], prefix: str = "", memory: Any = None, hidden: Any = False,
    far: Any = False,
    norm_first: bool = False, eps: float = 1e-5, gelu: bool = False,
) -> Array:  # fmt: skip
    """A layer of the encoder, or with a memory of the decoder."""
    p = {k.removeprefix(prefix): v for k, v in p.items() if k.startswith(prefix)}
    kink = (lambda h: h * special.ndtr(h)) if gelu else (lambda h: np.maximum(h, 0))
    w1, w2 = p["linear1.weight"], p["linear2.weight"]
    maps = lambda h: kink(h @ w1.T + p.get("linear1.bias", 0.0)) @ w2.T + p.get("linear2.bias", 0.0)
    parts = [lambda h: attention(h, h, p, "self_attn", hidden), maps]
    if memory is not None:
        parts.insert(1, lambda h: attention(h, memory, p, "multihead_attn", far))
    for k, part in enumerate(parts, 1):
        x = x + part(norm(x, p, f"norm{k}", eps)) if norm_first else norm(x + part(x), p, f"norm{k}", eps)
    return x


def made(module: nn.Module, *args: Any, **settings: Any) -> tuple[Any, dict[str, Array]]:
    """A result outside of training, and the parameters; biases and norms are moved from where they begin."""
    with wg.no_grad():
        for p in module.parameters():
            p.add_(wg.rand_like(p) * 0.5)
    state = {k: v.detach().numpy() for k, v in module.state_dict().items()}
    return module.eval()(*args, **settings), state


LAYERS = [
    (nn.TransformerEncoderLayer, dict(activation="gelu", layer_norm_eps=0.3, norm_first=True, bias=False)),
    (nn.TransformerDecoderLayer, dict(activation="gelu", layer_norm_eps=0.3, norm_first=True, bias=False)),
]
KNOWN = dict(norm_first=True, eps=0.3, gelu=True)


@pytest.mark.parametrize(("kind", "settings"), LAYERS)
def test_layers_of_transformers(kind: Any, settings: dict[str, Any]) -> None:
    more = [QUERY, MEMORY] if kind is nn.TransformerDecoderLayer else [QUERY]
    memory = MEMORY if len(more) == 2 else None

    def call(*args: Any, **settings: Any) -> Any:
        return made(kind(E, HEADS, 7, dtype=wg.float64, **settings), *args)

    _, state = run(call, more, settings)
    check(lambda *a, **k: call(*a, **k)[0], more, settings, layer(QUERY, state, memory=memory, **KNOWN))


PADDED = np.array([[False] * 4, [False, True, False, True], [False, False, False, True]])
FAR = np.array([[False] * 5, [False, True, False, True, False], [False, False, False, False, True]])
MASKS: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("forward", dict(tgt_is_causal=True), CAUSAL, False),
    ("forward", dict(memory_is_causal=True), False, np.triu(np.ones((4, 5), bool), 1)),
    ("forward", dict(tgt_key_padding_mask=PADDED), PADDED[:, None, None], False),
    ("forward", dict(memory_key_padding_mask=FAR), False, FAR[:, None, None]),
    ("forward", dict(tgt_mask=CAUSAL), CAUSAL, False),
    ("forward", dict(memory_mask=FAR[:1].repeat(4, 0) | (np.arange(5) == 2)), False, np.arange(5) == 2),
]


@pytest.mark.parametrize(
    ("name", "masks", "hidden", "far"), MASKS, ids=lambda x: "-".join(x) if isinstance(x, dict) else ""
)
def test_masks_of_decoders(name: str, masks: dict[str, Any], hidden: Any, far: Any) -> None:
    """The layer, a stack of one layer with a norm, and the whole transformer pass them on."""

    def single(x: wg.Tensor, memory: wg.Tensor, **masks: Any) -> Any:
        return made(nn.TransformerDecoderLayer(E, HEADS, 7, dtype=wg.float64), x, memory, **masks)

    _, state = run(single, (QUERY, MEMORY), {})
    expected = layer(QUERY, state, memory=MEMORY, hidden=hidden, far=far)
    check(lambda *a, **k: single(*a, **k)[0], (QUERY, MEMORY), masks, expected)

    def stack(x: wg.Tensor, memory: wg.Tensor, **masks: Any) -> Any:
        inner = nn.TransformerDecoderLayer(E, HEADS, 7, dtype=wg.float64)
        decoder = nn.TransformerDecoder(inner, 2, norm=nn.LayerNorm(E, dtype=wg.float64))
        return made(decoder, x, memory, **masks)

    _, state = run(stack, (QUERY, MEMORY), {})
    expected = QUERY
    for k in range(2):
        expected = layer(expected, state, f"layers.{k}.", memory=MEMORY, hidden=hidden, far=far)
    expected = norm(expected, state, "norm", 1e-5)
    check(lambda *a, **k: stack(*a, **k)[0], (QUERY, MEMORY), masks, expected)


def transformer(src: wg.Tensor, tgt: wg.Tensor, masks: Any = None, **settings: Any) -> Any:
    model = nn.Transformer(E, HEADS, 1, 1, 7, dtype=wg.float64, **settings)
    return made(model, src, tgt, **(masks or {}))


def by_hand(state: dict[str, Array], src_hidden: Any = False, eps: float = 1e-5, **how: Any) -> Array:
    memory = layer(MEMORY, state, "encoder.layers.0.", hidden=src_hidden, eps=eps, **how)
    memory = norm(memory, state, "encoder.norm", eps)
    out = layer(QUERY, state, "decoder.layers.0.", memory=memory, eps=eps, **how)
    return norm(out, state, "decoder.norm", eps)


def test_transformer() -> None:
    settings = dict(activation="gelu", layer_norm_eps=0.3, norm_first=True, bias=False)
    _, state = run(transformer, (MEMORY, QUERY), settings)
    check(lambda *a, **k: transformer(*a, **k)[0], (MEMORY, QUERY), settings, by_hand(state, **KNOWN))


SOURCES: list[tuple[str, dict[str, Any], Any]] = [
    ("forward", dict(src_is_causal=True), np.triu(np.ones((5, 5), bool), 1)),
    # The padding of the source alone: the decoder sees all of the memory.
    ("forward", dict(src_key_padding_mask=FAR), FAR[:, None, None]),
]


@pytest.mark.parametrize(("name", "masks", "hidden"), SOURCES)
def test_masks_of_sources(name: str, masks: dict[str, Any], hidden: Any) -> None:
    _, state = run(transformer, (MEMORY, QUERY), {})
    masked = lambda *a, **masks: transformer(*a, masks=masks)[0]
    check(masked, (MEMORY, QUERY), masks, by_hand(state, hidden))


class Constant(nn.Module):
    """Returns its first input times a number."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: wg.Tensor, *args: Any, **kwargs: Any) -> wg.Tensor:
        return x * self.factor


def test_stacks_of_ones_own() -> None:
    model = nn.Transformer(
        E, HEADS, custom_encoder=Constant(2.0), custom_decoder=Constant(3.0), dtype=wg.float64
    )
    near(model(wg.tensor(MEMORY), wg.tensor(QUERY)), 3 * QUERY)
    near(model.encoder(wg.tensor(MEMORY)), 2 * MEMORY)


def test_norm_of_the_encoder() -> None:
    def stack(x: wg.Tensor, norm: Any = None, **settings: Any) -> Any:
        inner = nn.TransformerEncoderLayer(E, HEADS, 7, dtype=wg.float64)
        norm = nn.LayerNorm(E, dtype=wg.float64) if norm else None
        return made(nn.TransformerEncoder(inner, 1, norm=norm, **settings), x)

    _, state = run(stack, (QUERY,), dict(norm=True))
    expected = norm(layer(QUERY, state, "layers.0."), state, "norm", 1e-5)
    check(lambda x, **k: stack(x, **k)[0], (QUERY,), dict(norm=True), expected)
    # Settings of faster ways that change no result.
    for more in (dict(enable_nested_tensor=False), dict(mask_check=False)):
        near(run(stack, (QUERY,), dict(norm=True, **more))[0], expected)


W = {k: numbers(E, E, seed=i + 5) for i, k in enumerate("qkvo")}
BIASES = numbers(3 * E, seed=11)


def test_attention_forward() -> None:
    """Projections apart from each other, keys and values in their place, the weights of each head."""
    together = np.concatenate([W[k] for k in "qkv"])
    projected = [
        heads(x @ W[k].T + b) for x, k, b in zip((QUERY, MEMORY, MEMORY), "qkv", BIASES.reshape(3, E))
    ]
    f = lambda *args, **k: F.multi_head_attention_forward(
        *args[:3], E, HEADS, args[3], wg.tensor(BIASES), None, None, False, 0.0, wg.tensor(W["o"]), None, **k
    )
    out, weights = attended(*projected)
    args = (QUERY, MEMORY, MEMORY, together)
    check(f, args, dict(average_attn_weights=False), (out @ W["o"].T, weights))
    near(run(f, args, {}), (out @ W["o"].T, weights.mean(1)))
    apart = dict(
        use_separate_proj_weight=True, q_proj_weight=W["q"], k_proj_weight=W["k"], v_proj_weight=W["v"]
    )
    other = (QUERY, MEMORY, MEMORY, np.ones((3 * E, E)))
    check(f, other, apart, (out @ W["o"].T, weights.mean(1)))
    k, v = numbers(3 * HEADS, 7, 3), numbers(3 * HEADS, 7, 3, seed=1)
    out, weights = attended(projected[0], k.reshape(3, HEADS, 7, 3), v.reshape(3, HEADS, 7, 3))
    check(f, args, dict(static_k=k, static_v=v), (out @ W["o"].T, weights.mean(1)))
    out, weights = attended(*projected, np.triu(np.ones((4, 5), bool), 1))
    check(f, args, dict(is_causal=True), (out @ W["o"].T, weights.mean(1)))
    assert F.multi_head_attention_forward.__name__ == "multi_head_attention_forward"


FORWARD: list[tuple[str, dict[str, Any], Any]] = [
    ("forward", dict(need_weights=False), False),
    ("forward", dict(average_attn_weights=False), False),
    ("forward", dict(attn_mask=np.arange(5) == [[1]] * 4, need_weights=False), np.arange(5) == 1),
    ("forward", dict(key_padding_mask=FAR, need_weights=False), FAR[:, None, None]),
]


@pytest.mark.parametrize(("name", "settings", "hidden"), FORWARD)
def test_attention_layer(name: str, settings: dict[str, Any], hidden: Any) -> None:
    def call(q: wg.Tensor, k: wg.Tensor, **settings: Any) -> Any:
        (out, weights), state = made(nn.MultiheadAttention(E, HEADS, dtype=wg.float64), q, k, k, **settings)
        return ([out] if weights is None else [out, weights]), state

    _, state = run(call, (QUERY, MEMORY), settings)
    expected = [attention(QUERY, MEMORY, {f"a.{k}": v for k, v in state.items()}, "a", hidden)]
    if settings.get("need_weights", True):
        biases = state["in_proj_bias"].reshape(3, E)
        parts = zip((QUERY, MEMORY, MEMORY), state["in_proj_weight"].reshape(3, E, E), biases)
        expected.append(attended(*(heads(x @ w.T + b) for x, w, b in parts))[1])
    check(lambda *a, **k: call(*a, **k)[0], (QUERY, MEMORY), settings, expected)


def test_dropout_of_weights() -> None:
    x = wg.tensor(numbers(1, 1, 20, 8))
    weights = F.scaled_dot_product_attention(x, x, wg.eye(20, dtype=wg.float64)[None, None]).numpy()
    dropped = F.scaled_dot_product_attention(
        x, x, wg.eye(20, dtype=wg.float64)[None, None], dropout_p=0.5
    ).numpy()
    share = np.isclose(dropped, 2 * weights).mean()
    assert (np.isclose(dropped, 2 * weights) | (dropped == 0)).all()
    assert 0.35 < share < 0.65
    q = wg.tensor(numbers(20, 1, E))
    module = nn.MultiheadAttention(E, 1, dropout=0.5, dtype=wg.float64)
    dropped, weights = (m(q, q, q)[1].detach().numpy() for m in (module, copy.deepcopy(module).eval()))
    assert (np.isclose(dropped, 2 * weights) | (dropped == 0)).all()
    assert differ(dropped, weights)


def test_grouped_queries() -> None:
    q, k, v = numbers(2, 6, 4, 3), numbers(2, 2, 5, 3), numbers(2, 2, 5, 3, seed=1)
    weights = special.softmax(q @ k.repeat(3, 1).swapaxes(-1, -2) / np.sqrt(3), -1)
    check(F.scaled_dot_product_attention, (q, k, v), dict(enable_gqa=True), weights @ v.repeat(3, 1))


SIGMOID = special.expit
CELLS: list[tuple[Any, dict[str, Any]]] = [
    (nn.RNNCell, dict(bias=False)),
    (nn.GRUCell, dict(bias=False)),
    (nn.LSTMCell, dict(bias=False)),
]


@pytest.mark.parametrize(("kind", "settings"), CELLS)
def test_cells_without_biases(kind: Any, settings: dict[str, Any]) -> None:
    x, h = numbers(3, 4), numbers(3, 5, seed=2)

    def call(x: wg.Tensor, h: wg.Tensor, **settings: Any) -> Any:
        start = (h, h) if kind is nn.LSTMCell else h
        return made(kind(4, 5, dtype=wg.float64, **settings), x, start)

    _, state = run(call, (x, h), settings)
    assert set(state) == {"weight_ih", "weight_hh"}
    a, b = x @ state["weight_ih"].T, h @ state["weight_hh"].T
    if kind is nn.RNNCell:
        expected: Any = np.tanh(a + b)
    elif kind is nn.GRUCell:
        (r, z, n), (s, y, m) = np.split(a, 3, -1), np.split(b, 3, -1)
        update = SIGMOID(z + y)
        expected = (1 - update) * np.tanh(n + SIGMOID(r + s) * m) + update * h
    else:
        i, f, g, o = np.split(a + b, 4, -1)
        c = SIGMOID(f) * h + SIGMOID(i) * np.tanh(g)
        expected = (SIGMOID(o) * np.tanh(c), c)
    check(lambda *args, **k: call(*args, **k)[0], (x, h), settings, expected)


STACKED = [(nn.RNN, dict(dropout=0.5)), (nn.GRU, dict(dropout=0.5)), (nn.LSTM, dict(dropout=0.5))]


@pytest.mark.parametrize(("kind", "settings"), STACKED)
def test_dropout_between_layers(kind: Any, settings: dict[str, Any]) -> None:
    """What the second layer sees of the first is zero or twice as large; what comes out of it is not."""
    wg.manual_seed(0)
    stack = kind(3, 200, num_layers=2, dtype=wg.float64, **settings)
    x = wg.tensor(numbers(1, 1, 3))
    with wg.no_grad():
        for name, p in stack.named_parameters():
            if name.endswith("_l1") and name.startswith("weight_ih"):
                p.copy_(wg.eye(200, dtype=wg.float64).repeat(p.shape[0] // 200, 1))
            elif name.endswith("_l1"):
                p.zero_()
    single = kind(3, 200, dtype=wg.float64)
    single.load_state_dict({k: v for k, v in stack.state_dict().items() if k.endswith("_l0")})
    first = single(x)[0].detach().numpy().ravel()
    zero = stack(x)[0].detach().numpy().ravel() == 0
    assert 60 < zero.sum() < 140
    assert (first != 0).all()
    assert not (stack.eval()(x)[0].detach().numpy() == 0).any()

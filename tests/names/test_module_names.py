"""What programs for PyTorch touch of modules and of `nn`: files, buffers, lazy parameters, one device for
all."""

import copy
import warnings

import numpy as np
import pytest
import wengert as torch
from wengert import nn
from wengert.nn.attention import SDPBackend, sdpa_kernel
from wengert.nn.modules.batchnorm import _BatchNorm
from wengert.nn.modules.conv import _ConvNd
from wengert.nn.modules.linear import Linear
from wengert.nn.modules.module import Module
from wengert.nn.modules.utils import _pair, _single, _triple

FILES = {
    "activation": "ReLU Softmax PReLU MultiheadAttention",
    "batchnorm": "_BatchNorm _NormBase BatchNorm1d BatchNorm2d SyncBatchNorm LazyBatchNorm1d",
    "channelshuffle": "ChannelShuffle",
    "container": "Sequential ModuleList ModuleDict ParameterList ParameterDict",
    "conv": "_ConvNd _ConvTransposeNd Conv1d Conv2d ConvTranspose2d LazyConv2d",
    "distance": "PairwiseDistance CosineSimilarity",
    "dropout": "Dropout Dropout2d AlphaDropout",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": "_InstanceNorm InstanceNorm2d",
    "linear": "Linear Identity Bilinear LazyLinear",
    "loss": "_Loss _WeightedLoss CrossEntropyLoss",
    "module": "Module",
    "normalization": "LayerNorm GroupNorm RMSNorm",
    "padding": "ZeroPad2d",
    "pixelshuffle": "PixelShuffle",
    "pooling": "MaxPool2d AvgPool2d AdaptiveMaxPool2d MaxUnpool2d",
    "rnn": "RNNBase LSTM GRU LSTMCell RNNCellBase",
    "sparse": "Embedding EmbeddingBag",
    "transformer": "Transformer",
    "upsampling": "Upsample",
    "utils": "_ntuple _single _pair _triple _quadruple",
}


@pytest.mark.parametrize("file", FILES)
def test_files_of_layers(file: str) -> None:
    module = getattr(nn.modules, file)
    for name in FILES[file].split():
        assert getattr(module, name) is getattr(nn, name, getattr(module, name))
    with pytest.raises(AttributeError):
        module.Nothing  # noqa: B018


def test_classes_are_the_same_ones() -> None:
    assert Linear is nn.Linear is nn.modules.Linear
    assert Module is nn.Module
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU())
    assert [isinstance(m, _BatchNorm) for m in model] == [False, True, False]
    assert [isinstance(m, _ConvNd) for m in model] == [True, False, False]
    assert (_single(2), _pair(3), _triple((1, 2, 3))) == ((2,), (3, 3), (1, 2, 3))
    assert isinstance(nn.GRU(1, 2), nn.RNNBase)
    assert not isinstance(nn.Linear(1, 2), nn.RNNBase)


def test_registries_are_read_and_written() -> None:
    layer = nn.Linear(2, 3)
    assert list(layer._parameters) == ["weight", "bias"]
    layer._parameters["bias"] = None
    assert layer.bias is None
    layer._buffers["scale"] = torch.ones(1)
    assert list(layer.state_dict()) == ["weight", "scale"]
    model = nn.Sequential(layer)
    for name, child in list(model._modules.items()):
        if isinstance(child, nn.Linear):
            model._modules[name] = nn.Identity()
    assert isinstance(model[0], nn.Identity)
    assert model._get_name() == "Sequential"


class Named(nn.Module):
    """Saves something of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 3

    def get_extra_state(self) -> dict[str, int]:
        return {"steps": self.steps}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.steps = state["steps"]


def test_extra_state() -> None:
    saved = Named()
    saved.steps = 7
    made = Named()
    made.load_state_dict(saved.state_dict())
    assert made.steps == 7


def test_hooks_by_their_inner_names() -> None:
    model, log = nn.Linear(2, 1), []
    model._register_load_state_dict_pre_hook(lambda state, prefix, *rest: log.append(prefix))
    model._register_load_state_dict_pre_hook(lambda m, state, *rest: log.append(m is model), with_module=True)
    model._register_state_dict_hook(
        lambda m, state, prefix, meta: {prefix + k: v for k, v in state.items()} if prefix else None
    )
    seen = []
    model.register_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_out[0].shape))
    model.load_state_dict(model.state_dict())
    model(torch.ones(3, 2, requires_grad=True)).sum().backward()
    assert (log, seen) == (["", True], [(3, 1)])


def test_a_state_dict_hook_may_return_another_dict() -> None:
    model = nn.Linear(2, 1)
    handle = model._register_state_dict_hook(lambda m, state, prefix, meta: {"only": state["bias"]})
    assert list(model.state_dict()) == ["only"]
    handle.remove()
    assert list(model.state_dict()) == ["weight", "bias"]


def test_conversions_and_moves() -> None:
    model = nn.Linear(2, 1)
    assert model.type(torch.float64).weight.dtype == torch.float64
    assert model.to_empty(device="cpu").weight.shape == (1, 2)
    with pytest.raises(ValueError, match="WENGERT_CUDA=gpu"):
        model.cuda()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert model.compile(mode="default") is None
    added = nn.Module()
    added.register_module("inner", model)
    assert added.get_submodule("inner") is model


def test_buffers_are_registered_by_assignment() -> None:
    class Running(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean = nn.Buffer(torch.zeros(2))
            self.cache = nn.Buffer(torch.ones(1), persistent=False)

    model = Running()
    assert dict(model.named_buffers()).keys() == {"mean", "cache"}
    assert list(model.state_dict()) == ["mean"]
    assert list(copy.deepcopy(model).state_dict()) == ["mean"]
    assert not model.mean.requires_grad
    model.mean = torch.ones(2)
    assert list(model.state_dict()) == ["mean"]
    assert (model.mean + 1).tolist() == [2.0, 2.0]
    assert model.double().mean.dtype == torch.float64
    assert model.get_buffer("mean").tolist() == [1.0, 1.0]


def test_parameters_without_a_shape_yet() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.UninitializedParameter(dtype=torch.float64)
            self.count = nn.UninitializedBuffer(persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if nn.parameter.is_lazy(self.weight):
                self.weight.materialize((x.shape[-1],))
                self.count.materialize((), dtype=torch.float32)
                with torch.no_grad():
                    self.weight.fill_(2.0)
                    self.count.fill_(0.0)
            return x * self.weight

    model = Scale()
    with pytest.raises(RuntimeError, match="its shape is not known yet"):
        model.weight.shape  # noqa: B018
    out = model(torch.ones(3))
    out.sum().backward()
    assert (model.weight.dtype, model.weight.grad.tolist()) == (torch.float64, [1.0, 1.0, 1.0])
    assert type(model.weight) is nn.Parameter
    assert not nn.parameter.is_lazy(model.count)
    assert list(model.state_dict()) == ["weight"]
    frozen = nn.UninitializedParameter(requires_grad=False, device="cpu")
    frozen.materialize((2,))
    assert not frozen.requires_grad
    assert "Uninitialized" in repr(nn.UninitializedBuffer(device="cpu", dtype=torch.float32))


def test_data_parallel_on_one_device() -> None:
    inner = nn.Linear(3, 2)
    model = nn.DataParallel(inner, device_ids=[0], output_device=0, dim=0)
    x = torch.randn(4, 3)
    assert torch.equal(model(x), inner(x))
    assert model.module is inner
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    loaded = nn.parallel.DataParallel(nn.Linear(3, 2))
    loaded.load_state_dict(model.state_dict())
    assert torch.equal(loaded(x), inner(x))
    with pytest.raises(NotImplementedError, match="DataParallel: 2 devices given"):
        nn.DataParallel(inner, device_ids=[0, 1])
    parallel = nn.parallel.DistributedDataParallel(inner, device_ids=[0], broadcast_buffers=False)
    assert torch.equal(parallel(x), inner(x))
    with pytest.raises(ValueError, match="a process has one device"):
        nn.parallel.DistributedDataParallel(inner, device_ids=[0, 1])


def test_batch_norm_over_all_devices() -> None:
    x = torch.randn(4, 3, 5)
    sync, plain = nn.SyncBatchNorm(3, 1e-4, 0.2, True, True, None), nn.BatchNorm1d(3, 1e-4, 0.2)
    assert torch.equal(sync(x), plain(x))
    assert torch.equal(sync.running_var, plain.running_var)
    assert nn.SyncBatchNorm(3, affine=False, device="cpu", dtype=torch.float64).weight is None
    model = nn.Sequential(plain)
    assert nn.SyncBatchNorm.convert_sync_batchnorm(model, process_group=None) is model
    assert type(model[0]) is nn.SyncBatchNorm
    assert model[0].weight is plain.weight
    assert torch.equal(model(x), plain(x))


@pytest.mark.parametrize("backends", [SDPBackend.MATH, [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]])
def test_ways_of_attention(backends: object) -> None:
    q = torch.randn(1, 2, 4, 8)
    with sdpa_kernel(backends, set_priority=True):
        out = nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert torch.equal(out, nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True))
    with (
        pytest.raises(TypeError, match=r"members of SDPBackend, such as .*, expected, got 'flash'"),
        sdpa_kernel("flash"),
    ):
        pass
    with pytest.raises(ValueError, match="at least one"), sdpa_kernel([]):
        pass


def test_ways_of_attention_by_the_older_switches() -> None:
    with torch.backends.cuda.sdp_kernel(
        enable_flash=False, enable_math=True, enable_mem_efficient=False, enable_cudnn=True
    ):
        assert not torch.backends.cuda.flash_sdp_enabled()
        assert torch.backends.cuda.math_sdp_enabled()
    assert torch.backends.cuda.mem_efficient_sdp_enabled()
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    assert not torch.backends.cuda.mem_efficient_sdp_enabled()
    torch.backends.cuda.enable_mem_efficient_sdp(True)
    for name in ("flash", "math", "cudnn"):
        getattr(torch.backends.cuda, f"enable_{name}_sdp")(enabled=True)


def test_functional_call_where_it_first_was() -> None:
    model = nn.Linear(2, 1)
    out = nn.utils.stateless.functional_call(
        model, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, torch.ones(2)
    )
    assert out.tolist() == [2.0]


def test_layers_joined_for_evaluation() -> None:
    torch.manual_seed(0)
    for conv, bn, x in (
        (nn.Conv2d(2, 3, 3, bias=False), nn.BatchNorm2d(3), torch.randn(2, 2, 5, 5)),
        (nn.ConvTranspose1d(2, 3, 2), nn.BatchNorm1d(3, affine=False), torch.randn(2, 2, 5)),
    ):
        bn(conv(x))
        both = nn.Sequential(conv, bn).eval()
        joined = nn.utils.fuse_conv_bn_eval(conv, bn, transpose=isinstance(conv, nn.ConvTranspose1d))
        np.testing.assert_allclose(joined(x).detach().numpy(), both(x).detach().numpy(), atol=1e-5)
        assert joined.weight.requires_grad
        weight, _ = nn.utils.fuse_conv_bn_weights(
            conv.weight, conv.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
            transpose=isinstance(conv, nn.ConvTranspose1d),
        )  # fmt: skip
        assert torch.equal(weight, joined.weight)
    linear, bn, x = nn.Linear(3, 2), nn.BatchNorm1d(2), torch.randn(5, 3)
    bn(linear(x))
    with pytest.raises(RuntimeError, match="must be in evaluation"):
        nn.utils.fuse_linear_bn_eval(linear, bn)
    joined = nn.utils.fuse_linear_bn_eval(linear.eval(), bn.eval())
    np.testing.assert_allclose(joined(x).detach().numpy(), bn(linear(x)).detach().numpy(), atol=1e-5)
    with pytest.raises(ValueError, match="keeps no running statistics"):
        nn.utils.fuse_linear_bn_eval(linear, nn.BatchNorm1d(2, track_running_stats=False).eval())
    w, b = nn.utils.fuse_linear_bn_weights(
        linear_w=linear.weight, linear_b=linear.bias, bn_rm=bn.running_mean, bn_rv=bn.running_var, bn_eps=bn.eps,
        bn_w=bn.weight, bn_b=bn.bias,
    )  # fmt: skip
    assert torch.equal(w, joined.weight)
    assert torch.equal(b, joined.bias)
    assert nn.utils.skip_init(nn.Linear, 3, out_features=2).weight.shape == (2, 3)


def test_clipping_by_the_older_name() -> None:
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    (w * w / 2).sum().backward()
    total = nn.utils.clip_grad_norm([w], max_norm=1.0, norm_type=2.0, error_if_nonfinite=True, foreach=None)
    assert total.item() == 5.0
    np.testing.assert_allclose(w.grad.numpy(), [0.6, 0.8], rtol=1e-5)
    assert nn.utils.clip_grad.clip_grad_norm_ is nn.utils.clip_grad_norm_
    assert nn.utils.convert_parameters.parameters_to_vector is nn.utils.parameters_to_vector


def test_losses_of_a_program_s_own() -> None:
    from wengert.nn.modules.loss import _Loss, _WeightedLoss

    class Smooth(_WeightedLoss):
        def __init__(self, weight: object = None, reduction: str = "mean", smoothing: float = 0.1) -> None:
            super().__init__(weight=weight, reduction=reduction)
            self.smoothing = smoothing

        def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            return nn.functional.cross_entropy(
                x, target, self.weight, reduction=self.reduction, label_smoothing=self.smoothing
            )

    class Charbonnier(_Loss):
        def __init__(
            self, size_average: object = None, reduce: object = None, reduction: str = "mean"
        ) -> None:
            super().__init__(size_average=size_average, reduce=reduce, reduction=reduction)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return ((x - y).square() + 1e-6).sqrt().sum() if self.reduction == "sum" else (x - y).abs().mean()

    x, target = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    expected = nn.CrossEntropyLoss(label_smoothing=0.1, reduction="sum")(x, target)
    assert torch.equal(Smooth(reduction="sum")(x, target), expected)
    assert list(Smooth(torch.ones(3)).state_dict()) == ["weight"]
    assert Charbonnier(reduction="sum")(torch.ones(2), torch.ones(2)).item() == pytest.approx(2e-3)
    assert isinstance(nn.NLLLoss(), _WeightedLoss)
    assert not isinstance(nn.MSELoss(), _WeightedLoss)


def test_recurrent_layers_of_a_program_s_own() -> None:
    class RNNBase(nn.RNNBase):
        kind = "LSTM"

    class RNNCellBase(nn.RNNCellBase):
        kind = "GRU"

    settings = dict(num_layers=2, bias=False, batch_first=True, dropout=0.0, bidirectional=True, proj_size=2)
    own, torch_s = RNNBase(3, 4, **settings), nn.LSTM(3, 4, **settings)
    own.load_state_dict(torch_s.state_dict())
    x = torch.randn(2, 5, 3)
    assert torch.equal(own(x)[0], torch_s(x)[0])
    cell = RNNCellBase(3, 4, bias=False)
    assert [p.shape for p in cell.parameters()] == [(12, 3), (12, 4)]

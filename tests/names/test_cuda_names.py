"""`cuda`, `jit`, `hub`, `onnx` and their like without a card: programs ask, and are told."""

import time
import warnings
from typing import Any

import pytest
import wengert as torch
from wengert import nn


def test_streams_and_events_on_the_host() -> None:
    start, end = (
        torch.cuda.Event(enable_timing=True),
        torch.cuda.Event(True, blocking=False, interprocess=False),
    )
    start.record()
    time.sleep(0.002)
    end.record(torch.cuda.current_stream())
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 2.0
    assert end.query()
    end.wait()
    end.synchronize()
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        torch.cuda.Event().elapsed_time(end)
    with pytest.raises(RuntimeError, match="must be recorded"):
        start.elapsed_time(torch.cuda.Event(enable_timing=True))


def test_a_stream_changes_nothing() -> None:
    side = torch.cuda.Stream(device=None, priority=-1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x = torch.ones(2) * 2
    torch.cuda.current_stream().wait_stream(side)
    side.wait_event(side.record_event())
    assert isinstance(side.record_event(torch.cuda.Event()), torch.cuda.Event)
    side.synchronize()
    assert side.query()
    assert side == torch.cuda.default_stream(device=0)
    assert len({side, torch.cuda.Stream()}) == 1
    with side:
        pass
    torch.cuda.set_stream(side)
    with torch.cuda.StreamContext(side):
        assert x.tolist() == [2.0, 2.0]


def test_memory_is_zero_without_a_card() -> None:
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_max_memory_allocated()
    torch.cuda.reset_accumulated_memory_stats()
    assert torch.cuda.memory_cached() == torch.cuda.max_memory_reserved() == 0
    assert set(torch.cuda.memory_stats().values()) == {0}
    assert "0 bytes" in torch.cuda.memory_summary(device=None, abbreviated=True)
    with pytest.raises(torch.DeviceError, match=r"cuda\.mem_get_info: no GPU is called cuda here"):
        torch.cuda.mem_get_info(0)
    with pytest.raises(torch.DeviceError, match="no GPU is called cuda"):
        torch.cuda.get_device_properties(0)


def test_what_programs_do_around_devices() -> None:
    with torch.cuda.device(None), torch.cuda.device(-1), torch.cuda.device_of(torch.ones(1)):
        assert not torch.ones(1).is_gpu
    with pytest.raises(torch.DeviceError, match="no GPU is called cuda"):
        torch.cuda.device(0)
    assert not torch.cuda.can_device_access_peer(device=0, peer_device=1)
    assert not torch.cuda.is_current_stream_capturing()
    assert torch.cuda.get_arch_list() == []
    torch.cuda.seed()
    torch.cuda.seed_all()
    torch.cuda.set_rng_state_all(new_states=torch.cuda.get_rng_state_all())
    Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
    assert Tensor([1, 2]).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="WENGERT_CUDA=gpu"):
        torch.cuda.FloatTensor([1.0])
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert torch.accelerator.memory_allocated() == 0
    assert torch.accelerator.current_stream() == torch.cuda.current_stream()
    assert torch.backends.cuda.preferred_linalg_library(backend="magma") == "default"
    assert not torch.backends.cuda.is_flash_attention_available()


@pytest.mark.gpu
def test_the_peak_of_a_gpu_begins_anew() -> None:
    x = torch.zeros(1 << 16, device="gpu")
    del x
    torch.gpu.synchronize()
    torch.gpu.reset_peak(index=0)
    stats = torch.gpu.memory_stats()
    assert stats["peak_bytes"] == stats["live_bytes"]


def test_scripted_functions_are_functions() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @torch.jit.script
        def fused_gelu(x: Any) -> Any:
            return x * 0.5 * (1.0 + torch.erf(x / 1.41421))

        model = torch.jit.script(nn.Linear(2, 1))
    assert fused_gelu(torch.zeros(1)).item() == 0.0
    assert isinstance(model, nn.Linear)
    assert not isinstance(model, torch.jit.ScriptModule)
    assert not isinstance(fused_gelu, torch.jit.ScriptFunction)
    assert torch.jit.freeze(model) is torch.jit.optimize_for_inference(mod=model) is model


def test_what_is_compiled_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.jit.scripts, "_warned", [])
    with pytest.warns(UserWarning, match=r"jit\.script: operations run as they are called"):
        torch.jit.script(len)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.jit.script(len)


class Decorated(nn.Module):
    """With the marks that compiled modules have."""

    __constants__ = ("scale",)
    scale: torch.jit.Final[int]

    def __init__(self) -> None:
        super().__init__()
        self.scale = 3
        self.names = torch.jit.annotate(list[int], the_value=[])

    @torch.jit.script_method
    def twice(self, x: Any) -> Any:
        return 2 * x

    @torch.jit.export
    def forward(self, x: Any) -> Any:
        if torch.jit.is_scripting():
            raise AssertionError
        futures = [torch.jit.fork(self.twice, x) for _ in range(2)]
        return sum(torch.jit.wait(future=f) for f in futures) * self.scale

    @torch.jit.unused
    def nothing(self) -> None: ...

    @torch.jit.ignore(drop=True)
    def more(self) -> None: ...


def test_marks_change_nothing() -> None:
    assert Decorated()(torch.ones(1)).item() == 12.0
    assert torch.jit.isinstance(obj=[1], target_type=list[int])
    assert torch.jit.script_if_tracing(fn=len)([1]) == 1
    assert not torch.jit.is_tracing()


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.jit.save(m=nn.ReLU(), f="a.pt"),
        lambda: torch.jit.load(f="a.pt"),
        lambda: torch.jit.trace(func=nn.ReLU(), example_inputs=(torch.ones(1),)),
        lambda: torch.jit.trace_module(mod=nn.ReLU(), inputs={}),
        lambda: torch.onnx.export(model=nn.ReLU(), args=(), f="a.onnx"),
        lambda: torch.onnx.dynamo_export(model=nn.ReLU()),
        lambda: torch.hub.load(repo_or_dir="pytorch/vision", model="resnet18", pretrained=True),
        lambda: torch.hub.list(github="pytorch/vision"),
        lambda: torch.hub.help(github="pytorch/vision", model="resnet18"),
        lambda: torch.hub.load_state_dict_from_url(url="https://example.org/a.pt"),
        lambda: torch.hub.download_url_to_file(url="https://example.org/a.pt", dst="a.pt"),
        lambda: torch.library.custom_op("mine::op", None, mutates_args=()),
        lambda: torch.library.Library("mine", "DEF"),
    ],
)
def test_what_is_not_here_raises_and_says_what_to_do(use: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"^(jit|onnx|hub|library)\.\w+: .*; \w+"):
        use()


def test_what_can_be_answered_is() -> None:
    assert not torch.onnx.is_in_onnx_export()
    before = torch.hub.get_dir()
    torch.hub.set_dir(d="~/models")
    assert torch.hub.get_dir().endswith("models")
    assert "~" not in torch.hub.get_dir()
    torch.hub.set_dir(before)
    assert torch.version.__version__ == torch.__version__
    assert torch.version.cuda is torch.version.hip is torch.version.git_version is None
    assert torch.__version__ in torch.__config__.show()
    assert "threads" in torch.__config__.parallel_info()
    assert torch.get_num_threads() > 0


def test_compile_wants_a_function() -> None:
    with pytest.raises(TypeError, match="compile: a function or a module expected, got int"):
        torch.compile(3)
    assert torch.compile(len)([1, 2]) == 2
    assert torch.compile(mode="max-autotune")(len)([1, 2]) == 2


def test_random_as_a_module() -> None:
    from wengert.random import fork_rng

    torch.random.manual_seed(3)
    assert torch.default_generator.initial_seed() == torch.initial_seed() == 3
    first = torch.rand(2)
    torch.default_generator.manual_seed(3)
    state = torch.default_generator.get_state()
    assert torch.equal(torch.rand(2), first)
    assert torch.equal(torch.randperm(5, generator=torch.default_generator), torch.randperm(5)) is False
    torch.default_generator.set_state(state)
    with fork_rng(devices=[], enabled=True):
        torch.rand(100)
    assert torch.equal(torch.rand(2), first)
    with fork_rng(enabled=False):
        assert not torch.equal(torch.rand(2), first)
    assert isinstance(torch.default_generator.seed(), int)
    torch.manual_seed(0)

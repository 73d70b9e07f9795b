"""Settings of `jit`, arguments that are no tensors, and what `why()` says."""

import contextlib
import copy
import enum
import functools
import inspect
import math
import pickle
import re
import sys
from fractions import Fraction

import numpy as np
import pytest
import wengert as wg
from wengert import nn


def test_static_arguments_say_themselves_which_are_equal():
    class Settings:
        def __init__(self, scale):
            self.scale = scale

        def __eq__(self, other):
            return isinstance(other, Settings) and self.scale == other.scale

        def __hash__(self):
            return hash(self.scale)

    def f(settings, x, /, y=1.0, *, mode="a"):
        return x * settings.scale * y

    for names in ({"static_argnums": 0}, {"static_argnums": (-3,)}, {"static_argnums": [0, 1]}):
        step = wg.jit(f, **names)
        for scale in (2.0, 2.0, 3.0, 2.0):
            assert step(Settings(scale), wg.ones(1)).tolist() == [scale]
        assert (step.traces, step.why()) == (2, [])
    named = wg.jit(lambda x, settings: x * settings.scale, static_argnames="settings")
    for settings in (Settings(2.0), Settings(2.0)):
        assert named(wg.ones(1), settings).tolist() == named(wg.ones(1), settings=settings).tolist() == [2.0]
    assert (named.traces, named.why()) == (2, [])

    class Model:
        @functools.partial(wg.jit, static_argnums=(0, 1))
        def step(self, settings, x):
            return x * settings.scale

    model = Model()
    assert [model.step(Settings(2.0), wg.ones(1)).item() for _ in range(3)] == [2.0] * 3
    assert (model.step.traces, model.step.why()) == (1, [])
    unnamed = wg.jit(f)
    assert unnamed(Settings(2.0), wg.ones(1)).tolist() == [2.0]
    assert "an argument of type Settings may change unnoticed" in unnamed.why()[0]


def test_static_numbers_of_other_kinds_have_other_programs():
    f = lambda x, n: x.int() * n if isinstance(n, int) else x * float(n)
    staged = wg.jit(f, static_argnums=1)
    x = wg.ones(2)
    for n in (1, 1.0, True, 0.0, -0.0, Fraction(1), 1):
        found, expected = staged(x, n), f(x, n)
        assert found.dtype == expected.dtype
        assert [math.copysign(1, v) for v in found.tolist()] == [
            math.copysign(1, v) for v in expected.tolist()
        ]


def test_an_object_that_is_static_is_looked_at():
    class Settings:
        scale = 2.0

        def __eq__(self, other):
            return self is other

        def __hash__(self):
            return id(self)

    step, settings = wg.jit(lambda s, x: x * s.scale, static_argnums=0), Settings()
    assert step(settings, wg.ones(1)).item() == 2.0
    settings.scale = 5.0
    assert [step(settings, wg.ones(1)).item() for _ in range(2)] == [5.0, 5.0]
    assert (step.traces, step.why()) == (2, [])


def test_functions_of_c_and_methods_are_arguments():
    step = wg.jit(lambda f, x: f(x))
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    x = wg.ones(1, 2)
    with wg.no_grad():
        for f in (wg.sin, wg.cos, wg.sin, layer.forward, other.forward, layer.forward):
            assert step(f, x).tolist() == f(x).tolist()
        layer.weight.fill_(3.0)
        assert step(layer.forward, x).tolist() == layer(x).tolist()
    assert (step.traces, step.why()) == (4, [])


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        (
            {"static_argnums": "x"},
            TypeError,
            "static_argnums is the number of an argument, or several, got 'x'",
        ),
        (
            {"static_argnums": 1.0},
            TypeError,
            "static_argnums is the number of an argument, or several, got 1.0",
        ),
        ({"static_argnames": 0}, TypeError, "static_argnames is the name of an argument, or several, got 0"),
        ({"donate_argnums": True}, TypeError, "donate_argnums is the number of an argument"),
        (
            {"static_argnums": 2},
            ValueError,
            "static_argnums=2, and the function has no argument 2; it has x, n",
        ),
        ({"static_argnames": "k"}, ValueError, "static_argnames='k', and the function has no argument 'k'"),
        (
            {"donate_argnums": (0, 5)},
            ValueError,
            r"donate_argnums=\(0, 5\), and the function has no argument 5",
        ),
    ],
)
def test_settings_name_arguments_that_there_are(settings, kind, text):
    with pytest.raises(kind, match=f"jit: {text}"):
        wg.jit(lambda x, n: x, **settings)
    takes_all = lambda *args, **kwargs: args[0]
    wg.jit(takes_all, static_argnums=9, static_argnames="anything", donate_argnums=3)


def test_compile_is_jit_with_the_settings_of_pytorch():
    f = lambda x, k: x * k.real
    assert wg.compile(f, disable=True) is f
    step = wg.compile(
        f, fullgraph=True, dynamic=None, options={}, backend="eager", static_argnums=1, check=True
    )
    assert (step(wg.ones(1), 2.0).item(), step._check) == (2.0, True)
    assert wg.compile(mode="default", max_traces=2)(f)._max_traces == 2
    with pytest.raises(TypeError, match="jit: unexpected argument 'staitc'"):
        wg.compile(f, staitc=1)
    with pytest.raises(TypeError, match="jit: unexpected argument 'staitc'"):
        wg.jit(staitc=1)


def changed():
    class Counter:
        calls = 0

        def step(self, x):
            self.calls += 1
            return x

    return Counter().step


def grown():
    seen = []
    return lambda x: seen.append(1) or x


@pytest.mark.parametrize(
    ("f", "texts"),
    [
        (lambda x: x * x.sum().item(), ["item(), which takes values out", "compute with the tensor"]),
        (lambda x: wg.tensor(x.numpy()), ["numpy(), which takes values out", "compute with the tensor"]),
        (lambda x: print(end="") or x, ["print(), which a program would not call again; call it outside"]),
        (lambda x: f"{x}" and x, ["a tensor as a string; return it and print it after the call"]),
        (changed(), ["calls, which the function reads and changes; return the new value"]),
        (grown(), ["an object of type list, which the function reads and changes"]),
        (lambda x: wg.rand(2, generator=wg.Generator()), ["a generator of the program's own; draw without"]),
        (lambda x: wg.manual_seed(0) and x, ["a new seed of the random numbers; set it before the call"]),
        (lambda x: [iter([x])], ["a result of type list_iterator; return tensors"]),
    ],
)
def test_a_reason_names_the_line_and_what_to_write(f, texts):
    step = wg.jit(f)
    step(wg.ones(2))
    (reason,) = step.why()
    assert all(text in reason for text in texts), reason
    code = getattr(f, "__code__", None)
    first = code.co_firstlineno
    line = int(re.search(r"test_settings.py:(\d+)\)$", reason)[1])
    assert first <= line <= first + 2, (reason, first)


def test_what_is_imported_meanwhile_is_no_part_of_the_program(tmp_path, monkeypatch):
    class Finder:
        def find_spec(self, name, path=None, target=None):
            return None

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "wengert.fft", raising=False)
    monkeypatch.delitem(vars(wg), "fft", raising=False)
    step = wg.jit(lambda x: wg.fft.fft(x).real)
    step(wg.ones(4))
    assert (step.traces, step.why()) == (1, [])


def test_a_module_that_is_compiled_is_a_module():
    wg.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    model, x = copy.deepcopy(plain), wg.randn(5, 3)
    assert wg.compile(model, mode="reduce-overhead") is model
    model.compile()
    for k in range(3):
        for each in (plain, model):
            each.zero_grad()
            each(x * k).square().sum().backward()
        assert model[0].weight.grad.tolist() == plain[0].weight.grad.tolist()
    assert (model.forward.traces, model.forward.why()) == (1, [])
    assert list(model.state_dict()) == list(plain.state_dict())
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with wg.no_grad():
            other[0].weight.zero_()
        assert model(x).tolist() == plain(x).tolist() != other(x).tolist()
    model.register_forward_hook(lambda module, args, out: out * 2)
    assert model(x).tolist() == (plain(x) * 2).tolist()
    assert wg.compile(plain, disable=True) is plain
    assert "forward" not in vars(plain)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, grid: nn.functional.grid_sample(x * 2, grid * 0.5, align_corners=False),
        lambda x, grid: wg.chain_matmul(x[0, 0] * 2, x[0, 0] * 3, grid[0, :, 0].mT * 4),
        lambda x, grid: wg.linalg.multi_dot([x[0, 0] * 2, x[0, 0] * 3, x[0, 0] * 4]),
        lambda x, grid: wg.numpy.block([[x[0, 0] * 2, x[0, 0] * 3], [x[0, 0] * 4, x[0, 0] * 5]]),
    ],
)
def test_what_calls_itself_keeps_nothing(f):
    wg.manual_seed(0)
    x, grid = wg.randn(1, 1, 2, 2), wg.rand(1, 2, 2, 2)
    step, expected = wg.jit(f), f(x, grid).tolist()
    for _ in range(3):
        assert step(x, grid).tolist() == expected
    assert (step.traces, step.why()) == (1, [])


def test_a_shallow_copy_of_a_compiled_module_is_staged_for_itself():
    class Scaled(nn.Module):
        factor = 2.0

        def forward(self, x):
            return x * self.factor

    model = wg.compile(Scaled())
    copied = copy.copy(model)
    copied.factor = 10.0
    for _ in range(2):
        assert (model(wg.ones(1)).item(), copied(wg.ones(1)).item()) == (2.0, 10.0)
    assert copied.forward.traces == model.forward.traces == 1


def test_a_program_of_an_autocast_region_runs_in_such_a_region():
    staged = wg.jit(lambda x, w: x @ w)
    x, w = wg.ones(2, 3), wg.ones(3, 2)
    with wg.autocast("cpu", dtype=wg.bfloat16):
        run = staged.lower(x, w).compile()
        assert run(x, w).dtype == wg.bfloat16
    assert run(x, w).dtype == wg.bfloat16
    with wg.autocast("cpu", dtype=wg.float16), pytest.raises(TypeError, match="under other settings"):
        run(x, w)
    plain = staged.lower(x, w).compile()
    with wg.autocast("cpu", dtype=wg.bfloat16), pytest.raises(TypeError, match="under other settings"):
        plain(x, w)


def test_the_warning_belongs_to_the_line_of_the_call():
    calls = []
    for region in (contextlib.nullcontext(), wg.autocast("cpu", dtype=wg.bfloat16)):
        staged = wg.jit(lambda x: (calls.append(1), x)[1], max_traces=1)
        with region, pytest.warns(UserWarning, match="runs as Python from now on") as found:
            staged(wg.ones(1))
        assert found[0].filename == __file__


def test_equal_arguments_of_different_types_have_programs_of_their_own():
    class First(enum.IntEnum):
        X = 1

    class Second(enum.IntEnum):
        Y = 1

    one = wg.ones(1)
    f = wg.jit(lambda x, e: x * 2 if isinstance(e, First) else x * 3)
    assert [f(one, e).item() for e in (First.X, Second.Y, First.X, Second.Y)] == [2, 3, 2, 3]
    g = wg.jit(lambda d: next(v * 9 if isinstance(k, bool) else v * k for k, v in d.items()))
    assert [g({k: one}).item() for k in (1, True, 1.0, 1, True)] == [1, 9, 1, 1, 9]
    h = wg.jit(lambda d: next(v / (v * k) for k, v in d.items()))
    assert [h({k: one}).item() for k in (0.0, -0.0, 0.0)] == [math.inf, -math.inf, math.inf]
    assert (f.why(), g.why(), h.why()) == ([], [], [])


def test_where_an_argument_stands_in_a_graph():
    def f(x):
        return x.detach() * (2 if x.is_leaf else 3) * (5 if x.retains_grad else 1)

    def kept(x):
        y = x * 1
        y.retain_grad()
        return y

    staged = wg.jit(f)
    for make in (lambda x: x, lambda x: x * 1, kept):
        for x in (wg.ones(1), wg.ones(1, requires_grad=True)):
            for y in (make(x), make(x)) if x.requires_grad else (x, x):
                assert staged(y).item() == f(y).item()
    assert "is_leaf of an argument" in staged.why()[0]


def test_private_slots_and_attributes_of_partial_functions_are_compared():
    class Kept:
        __slots__ = ("__number", "__tensor")

        def __init__(self, number):
            self.set(number, wg.ones(1))

        def set(self, number, tensor):
            self.__number, self.__tensor = number, tensor

        def get(self):
            return self.__number * self.__tensor

    kept, scaled = Kept(2.0), functools.partial(lambda x: x)
    scaled.by = 1.0
    f = wg.jit(lambda x: scaled(x) * scaled.by * kept.get())
    assert [f(wg.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
    kept.set(3.0, wg.ones(1))
    assert f(wg.ones(1)).item() == 3.0
    kept.set(3.0, wg.full((1,), 5.0))
    assert f(wg.ones(1)).item() == 15.0
    scaled.by = 7.0
    assert f(wg.ones(1)).item() == 105.0


def test_a_copy_of_an_optimiser_in_a_function_is_one():
    optimizer, copies = wg.optim.SGD([wg.ones(2, requires_grad=True)], lr=0.1), []

    @wg.jit
    def f(x):
        copies.append(copy.deepcopy(optimizer))
        return x * 2

    f(wg.ones(1))
    assert type(copies[0]) is type(optimizer) is wg.optim.SGD
    assert type(pickle.loads(pickle.dumps(copies[0]))) is wg.optim.SGD


def test_why_says_what_it_was_about():
    array, objects, one = np.ones(2, dtype=np.float32), np.array([wg.ones(1)], dtype=object), wg.ones(2)
    memory = bytearray(b"x")
    weight = wg.ones(2)

    def hooked(x):
        weight.requires_grad_(not weight.requires_grad)
        return x * 2

    leaf = wg.ones(2, requires_grad=True)
    for function, argument, reason in (
        (lambda x: wg.from_numpy(array).add_(x), one, "an object of type ndarray"),
        (lambda x: x * len(objects), one, "an array of Python objects, which cannot be compared"),
        (lambda x: x * len(memory), one, "give what is read of it as tensors and numbers"),
        (hooked, one, "the memory, history or hooks of a tensor"),
        (lambda x: (x * x).sum().backward(), leaf, "take its gradient by grad(), or detach it"),
    ):
        staged = wg.jit(function)
        staged(argument)
        assert reason in staged.why()[0]


def test_lists_that_are_one_are_told_from_lists_that_are_equal():
    def by_identity(a, b):
        return a[0] * (2 if a is b else 3)

    f, given = wg.jit(by_identity), [wg.ones(2)]
    for other in (list(given), given, list(given), given):
        assert f(given, other).tolist() == by_identity(given, other).tolist()
    assert f.traces == 2


def test_settings_and_callers_that_library_code_reads_are_refused():
    def by_setting(x):
        return x * (2 if np.geterr()["over"] == "warn" else 3)

    def by_caller(x):
        return x * (2 if inspect.currentframe() is None else 3)

    f = wg.jit(by_setting)
    assert f(wg.ones(1)).item() == 2
    with np.errstate(over="ignore"):
        assert f(wg.ones(1)).item() == 3
    assert "geterr" in f.why()[0]
    f = wg.jit(by_caller)
    f(wg.ones(1))
    assert "currentframe" in f.why()[0]

"""Programs ahead of calls, in JAX's words."""

import pickle

import numpy as np
import pytest
import wengert as wg
from wengert.jit import ShapeDtypeStruct


def test_a_lowered_program_runs_for_its_arguments_alone() -> None:
    scale = {"by": 2.0}
    step = wg.jit(lambda x: x * scale["by"])
    lowered = step.lower(wg.ones(3))
    assert step.traces == 1
    run = lowered.compile()
    assert run(wg.tensor([1.0, 2.0, 3.0])).tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(TypeError, match="this program was made for other arguments"):
        run(wg.ones(4))
    with pytest.raises(TypeError, match="this program was made for other arguments"):
        run(wg.ones(3, dtype=wg.float64))
    scale["by"] = 3.0
    with pytest.raises(RuntimeError, match="this program does not hold any more"):
        run(wg.ones(3))
    assert step.traces == 1


def test_lower_makes_a_program_of_what_is_read_now() -> None:
    scale = {"by": 2.0}
    step = wg.jit(lambda x: x * scale["by"] if scale["by"] < 3 else x + 1)
    assert step.lower(wg.ones(3)).compile()(wg.ones(3)).tolist() == [2.0] * 3
    scale["by"] = 3.0
    lowered = step.lower(wg.ones(3))
    assert lowered.compile()(wg.ones(3)).tolist() == [2.0] * 3
    assert step.traces == 2
    assert step.operations(wg.ones(3)) == ["add"]
    scale["by"] = 2.0
    assert step.operations(wg.ones(3)) == ["mul"]
    assert "mul" in str(step.program(wg.ones(3)))
    assert step.traces == 2


def test_a_compiled_program_is_part_of_what_is_around_it() -> None:
    run = wg.jit(lambda x: (x * 2).sin()).lower(wg.ones(3)).compile()
    outer = wg.jit(lambda x: run(x) + 1)
    for x in (wg.tensor([1.0, 2.0, 3.0]), wg.tensor([0.1, 0.2, 0.3])):
        assert outer(x).tolist() == ((x * 2).sin() + 1).tolist()
    assert outer.operations(wg.ones(3)) == ["mul", "sin", "add"]
    with wg.FlopCounter() as counter:
        run(wg.ones(3))
    assert counter.total >= 3
    for change in (wg.grad(lambda x: run(x).sum()), wg.vmap(run)):
        with pytest.raises(TypeError, match="this program was made for other arguments"):
            change(wg.ones(3) if change.__name__ == "grad" else wg.ones(2, 3))
    with wg.amp.autocast("cpu"), pytest.raises(TypeError, match="under other settings"):
        run(wg.ones(3))


def test_analyses_have_the_names_of_jax() -> None:
    lowered = wg.jit(lambda x: (x @ x).exp()).lower(wg.ones(8, 8))
    assert lowered.cost_analysis() == {"flops": 2.0 * 8**3 + 64, "bytes accessed": 4.0 * 64 * 5}
    assert lowered.memory_analysis() == {"peak_memory_in_bytes": 2 * 4 * 64}
    assert "matmul(%arg0, %arg0)" in lowered.as_text()


def test_what_makes_no_program_cannot_be_lowered() -> None:
    with pytest.raises(ValueError, match=r"there is no program for these arguments.*item\(\)"):
        wg.jit(lambda x: x * x.sum().item()).lower(wg.ones(2))


def test_make_graph_returns_the_program() -> None:
    graph = wg.make_graph(wg.grad(lambda x: x.sin().sum()))(wg.ones(3))
    assert "cos" in graph.names or len(graph.names) > 0
    assert str(graph).splitlines()[1] == "  argument 0: float32[3] = %arg0"
    with pytest.raises(TypeError, match="make_graph: a function expected, got int"):
        wg.make_graph(3)


def test_eval_shape_gives_shapes_and_dtypes() -> None:
    jax = pytest.importorskip("jax")

    def f(x, y):
        return {"product": x @ y, "sums": [x.sum(), y.mean(0)]}

    kinds = [((3, 4), "float32"), ((4, 5), "float32")]
    ours = wg.eval_shape(f, *(ShapeDtypeStruct(s, getattr(wg, d)) for s, d in kinds))
    theirs = jax.eval_shape(f, *(jax.ShapeDtypeStruct(s, d) for s, d in kinds))

    def plain(tree):
        if isinstance(tree, dict):
            return {k: plain(v) for k, v in tree.items()}
        if isinstance(tree, list):
            return [plain(v) for v in tree]
        return tuple(tree.shape), str(tree.dtype).removeprefix("wengert.")

    assert plain(ours) == plain(theirs)
    with pytest.raises(TypeError, match="eval_shape: a function expected, got int"):
        wg.eval_shape(3)


def test_eval_shape_of_huge_arguments_takes_no_memory() -> None:
    wg.memory.reset_peak()
    before = wg.memory.live_bytes()
    huge = ShapeDtypeStruct((1 << 20, 1 << 20), wg.float64)
    found = wg.eval_shape(lambda x, scale: x[:2, :3].T * scale, huge, scale=2)
    assert found == ShapeDtypeStruct((3, 2), wg.float64)
    assert wg.memory.peak_bytes() - before < 1000


def test_shapes_are_tuples_of_integers() -> None:
    assert ShapeDtypeStruct([np.int64(2), 3], wg.float32) == ShapeDtypeStruct((2, 3), wg.float32)
    assert repr(ShapeDtypeStruct((), wg.int32)) == "ShapeDtypeStruct(shape=(), dtype=wengert.int32)"
    made = ShapeDtypeStruct(shape=(2, 3), dtype=wg.float32)
    assert pickle.loads(pickle.dumps(made)) == made
    assert type(wg.tree.tree_map(lambda x: x, made)) is ShapeDtypeStruct
    for shape in (3, (2.0,), "ab", None):
        with pytest.raises(
            TypeError, match=r"^ShapeDtypeStruct: shape is a tuple of integers, such as \(3,\)"
        ):
            ShapeDtypeStruct(shape, wg.float32)
    with pytest.raises(ValueError, match=r"sizes of a shape are at least 0, got \(-1,\)$"):
        ShapeDtypeStruct((-1,), wg.float32)


def test_eval_shape_of_a_function_that_writes() -> None:
    given = ShapeDtypeStruct((3,), wg.float32)
    assert wg.eval_shape(lambda x: x.clone().add_(1), given) == given
    assert wg.eval_shape(lambda x: x.add_(1), given) == given

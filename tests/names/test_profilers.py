"""`profiler` and `autograd.profiler`: which operations run how often, and what a program calls its parts."""

import pytest
import wengert as torch
from wengert import nn
from wengert.autograd.profiler import EventList
from wengert.profiler import ProfilerActivity, profile, record_function, schedule


def counts(prof: torch.autograd.profiler.profile) -> dict[str, int]:
    return {row.key: row.count for row in prof.key_averages()}


def test_a_program_as_in_pytorch() -> None:
    model = nn.Linear(4, 2)
    cpu = [ProfilerActivity.CPU]
    with (
        profile(activities=cpu, record_shapes=True, profile_memory=True) as prof,
        record_function("model_inference", args="x"),
    ):
        model(torch.randn(3, 4))
    table = prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10)
    lines = table.splitlines()
    assert lines[0].split() == ["name", "self", "self", "%", "total", "mean", "calls", "flops"]
    assert {"model_inference", "linear"} <= {line.split()[0] for line in lines[1:]}
    assert counts(prof)["linear"] == 1


def test_forward_and_backward_are_counted() -> None:
    x = torch.ones(8, 8, requires_grad=True)
    with torch.autograd.profiler.profile() as prof:
        (x @ x).sum().backward()
    found = {row.key: row for row in prof.key_averages()}
    assert (found["matmul"].count, found["matmul (backward)"].count) == (1, 2)
    assert found["matmul (backward)"].flops == 2 * 2 * 8**3
    assert all(row.cpu_time_total > 0 for row in prof.key_averages())
    assert found["matmul (backward)"].cpu_time == pytest.approx(found["matmul (backward)"].cpu_time_total / 2)
    total = prof.total_average()
    assert total.count == sum(row.count for row in prof.key_averages())
    assert prof.self_cpu_time_total == total.self_cpu_time_total


def test_parts_hold_operations() -> None:
    @record_function("outer")
    def outer() -> None:
        for _ in range(2):
            with record_function("inner"):
                torch.ones(3).exp()

    with torch.autograd.profiler.profile() as prof:
        outer()
    rows = {row.key: row for row in prof.key_averages()}
    assert (rows["outer"].count, rows["inner"].count, rows["exp"].count) == (1, 2, 2)
    assert rows["outer"].is_user_annotation
    assert not rows["exp"].is_user_annotation
    assert rows["outer"].cpu_time_total >= rows["inner"].cpu_time_total
    assert rows["inner"].cpu_time_total >= rows["exp"].cpu_time_total
    assert rows["inner"].self_cpu_time_total <= rows["inner"].cpu_time_total


def test_nothing_is_counted_outside() -> None:
    prof = torch.autograd.profiler.profile(enabled=False)
    with prof, record_function("part"):
        torch.ones(2).exp()
    assert counts(prof) == {}
    with torch.autograd.profiler.profile(use_cuda=True) as prof:
        pass
    torch.ones(2).exp()
    assert counts(prof) == {}


@pytest.mark.parametrize("column", ["self_cpu_time_total", "cpu_time", "count", "flops", "cuda_time_total"])
def test_rows_are_sorted(column: str) -> None:
    x, y = torch.ones(2), torch.ones(50, 50)
    with torch.autograd.profiler.profile() as prof:
        for _ in range(3):
            x.exp()
        y @ y
    assert EventList(prof.key_averages()[:1]).table().count("\n") == 1
    first = prof.table(sort_by=column, row_limit=1).splitlines()[1].split()[0]
    assert first in ("exp", "matmul")
    if column in ("count", "flops"):
        assert first == {"count": "exp", "flops": "matmul"}[column]
    assert len(prof.table(row_limit=-1).splitlines()) == 3
    with pytest.raises(ValueError, match="sort_by is one of"):
        prof.key_averages().table("colour")


def test_a_schedule_times_its_active_steps() -> None:
    told = []
    plan = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1)
    names = [plan(i).name for i in range(7)]
    assert names == ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE"]
    x = torch.ones(2)
    with profile(schedule=plan, on_trace_ready=lambda p: told.append((p.step_num, counts(p)))) as prof:
        for _ in range(7):
            x.exp()
            prof.step()
    assert told == [(5, {"exp": 2})]


def test_without_a_schedule_all_steps_count() -> None:
    told, x = [], torch.ones(2)
    prof = profile(
        on_trace_ready=lambda p: told.append(counts(p)), with_stack=True, with_modules=True, with_flops=True
    )
    prof.start()
    for _ in range(3):
        x.exp()
        prof.step()
    prof.stop()
    assert told == [{"exp": 3}]


def test_what_is_not_kept_raises() -> None:
    with profile() as prof:
        pass
    with pytest.raises(NotImplementedError, match="export_chrome_trace"):
        prof.export_chrome_trace("trace.json")
    with pytest.raises(NotImplementedError, match="tensorboard_trace_handler"):
        torch.profiler.tensorboard_trace_handler("runs")
    with pytest.raises(TypeError, match="kinds of ProfilerActivity"):
        profile(activities=["cpu"])
    with pytest.raises(ValueError, match="at least one of them active"):
        schedule(wait=0, warmup=0, active=0)


def test_counters_nest_with_profiles() -> None:
    x = torch.ones(2, 2)
    with torch.FlopCounter() as counter, torch.autograd.profiler.profile() as prof:
        x @ x
    assert counter.total == 16
    assert counts(prof) == {"matmul": 1}
    assert all(row.seconds > 0 for row in counter.rows)


def test_backward_has_rows_of_its_own() -> None:
    model, x = nn.Linear(4, 2), torch.randn(3, 4)
    with profile() as prof:
        model(x).sum().backward()
    assert counts(prof)["linear"] == counts(prof)["linear (backward)"] == 1

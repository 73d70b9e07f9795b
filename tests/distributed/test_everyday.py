"""PyTorch's everyday functions: what each writes, against NumPy on what all ranks have."""

from pathlib import Path

import pytest
import wengert as wg
from distributed.running import failing, run
from wengert import distributed


def program(name: str) -> str:
    """The text of a program beside this file."""
    return Path(__file__).with_name(name).read_text()


def test_what_they_write(tmp_path: Path) -> None:
    assert run(3, program("everyday.py"), tmp_path) == ["all of it\n"] * 3


def test_calls_that_cannot_be(tmp_path: Path) -> None:
    out = run(2, program("refused.py"), tmp_path)
    assert out[0] == out[1].replace(
        "rank 0 is expected, but MPI numbers this one 1", "rank 1 is expected, but MPI numbers this one 0"
    )
    assert out[0].splitlines() == [
        "ValueError: there is no default group of ranks; call wengert.distributed.init_process_group() first",
        "ValueError: there is no default group of ranks; call wengert.distributed.init_process_group() first",
        "ValueError: init_process_group: backend is one of mpi, gloo, nccl, ucc, cpu:gloo,cuda:nccl, "
        "got 'carrier pigeons'",
        "ValueError: init_process_group: 5 ranks are expected, but MPI runs 2; start the program with mpirun "
        "-n 5 "
        "python ..., which takes the place of torchrun",
        "ValueError: init_process_group: rank 1 is expected, but MPI numbers this one 0",
        "ValueError: timeout: a positive number of seconds or a timedelta expected, got 0",
        "RuntimeError: init_process_group: it was called before; destroy_process_group() undoes it",
        "TypeError: all_reduce: op= is a wengert.distributed.ReduceOp, got 'sum'",
        "TypeError: group= is what new_group returns, or None, got str",
        "ValueError: all_gather: tensor_list needs 2 tensors of wengert.float32 (2, 3), got "
        "wengert.float32 (2, 3)",
        "ValueError: all_gather: tensor_list needs 2 tensors of wengert.float32 (2, 3), got "
        "wengert.float32 (2, 3), wengert.float64 (2, 3)",
        "ValueError: all_gather_into_tensor: output_tensor needs 12 elements of wengert.float32, got "
        "6 of wengert.float32",
        "ValueError: reduce_scatter: input_list needs 2 tensors of wengert.float32 (3,), got "
        "wengert.float32 (2, 3), wengert.float32 (2, 3)",
        "ValueError: get_group_rank: the group has the ranks [0, 1] of the default group, got 2",
        "ValueError: broadcast: src= or group_src= expected, got both",
        "ValueError: broadcast: group_src= is a rank of 0..1, got 2",
        "ValueError: all_to_all_single: 3 rows of output cannot be cut into 2 equal parts",
        "ValueError: all_to_all_single: output_split_sizes need 2 numbers whose sum is 3, got [1, 1]",
        "ValueError: all_gather_object: a list of 2 places expected, got 1",
        "ValueError: new_group: different ranks of 0..1 expected, got [0, 0]",
        "ValueError: new_group: different ranks of 0..1 expected, got [2]",
        "ValueError: get_global_rank: the group has the ranks 0..1, got 2",
        "ValueError: get_group_rank: the group has the ranks [0, 1] of the default group, got 2",
        "TimeoutError: wait: the operation was not done after 0.01 s",
        "ValueError: all_gather: tensor_list needs 2 tensors of wengert.float32 (2, 3), got "
        "wengert.float32 (2, 3)",
        "ValueError: all_to_all: output_tensor_list needs a tensor for each of 2 ranks, got 1",
        "TypeError: all_to_all: tensors of one dtype expected, got ['wengert.float32', 'wengert.float64']",
        "ValueError: all_to_all: rank 0 sends 6 to rank 0, which expects 3",
        "ValueError: all_to_all: rank 0 sends 3 to rank 0, which expects 6",
        *(
            f"RuntimeError: {name}: this tensor is part of a computation that is differentiated, and {name} has "
            "no derivative; wengert.psum and its kin have, or give it tensor.detach()"
            for name in (
                "all_reduce",
                "broadcast",
                "all_gather",
                "reduce_scatter_tensor",
                "scatter",
                *["all_reduce"] * 4,
            )
        ),
        *(
            f"TypeError: {name}: tensors expected, got {kind}; wengert.tensor(...) makes one of an array, and "
            "all_gather_object and broadcast_object_list send other objects"
            for name, kind in (("all_reduce", "ndarray"), ("all_reduce", "list"), ("all_gather", "ndarray"))
        ),
    ]


def test_what_fails_beside_the_program_is_raised_where_it_is_waited_for(tmp_path: Path) -> None:
    text = """
distributed.init_process_group(timeout=1)
work = distributed.all_reduce(wg.ones(2 + rank), async_op=True)
"""
    ran = failing(2, text + "work.wait()\n", tmp_path)
    assert ran.code == 1
    assert ran.err.count("Traceback") == 1
    assert f"  rank 0: psum of float32[2], at {tmp_path}/script.py, line 4\n" in ran.err
    assert f"  rank 1: psum of float32[3], at {tmp_path}/script.py, line 4\n" in ran.err
    # Nobody waits: the end of the program does.
    ran = failing(2, text, tmp_path)
    assert ran.code == 1
    assert f"  rank 1: psum of float32[3], at {tmp_path}/script.py, line 4\n" in ran.err


def test_torchrun_in_the_environment(tmp_path: Path) -> None:
    ran = failing(1, "distributed.init_process_group()\n", tmp_path, WORLD_SIZE="4")
    assert ran.code == 1
    assert "4 ranks are expected, but MPI runs 1; start the program with mpirun -n 4 python" in ran.err


def test_each_rank_reads_its_share(tmp_path: Path) -> None:
    text = """
from wengert.utils.data import DataLoader
from wengert.utils.data.distributed import DistributedSampler
data = list(range(10))
loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data, shuffle=False))
print([batch.tolist() for batch in loader])
# Workers are forked from ranks, and end without a word to MPI.
print([batch.tolist() for batch in DataLoader(data, batch_size=5, num_workers=2)])
group.barrier()
"""
    whole = "[[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]\n"
    assert run(2, text, tmp_path) == [
        "[[0, 2], [4, 6], [8]]\n" + whole,
        "[[1, 3], [5, 7], [9]]\n" + whole,
    ]


def test_groups_that_nobody_holds_are_freed(tmp_path: Path) -> None:
    text = """
d = distributed
d.init_process_group()
held = []
# More than MPI has communicators.
for i in range(1100):
    pair = d.new_group([0, 1])
    if i % 100 == 0:
        d.all_reduce(wg.ones(2), group=pair, async_op=True).wait()
        held.append(pair)
    d.new_group([0])
for pair in held:
    d.barrier(pair)
print(len(held), len(group._parts) < 200)
"""
    assert run(2, text, tmp_path) == ["11 True\n"] * 2


def test_what_is_missing_names_what_is_there() -> None:
    for name, hint in {
        "send": "wengert.ppermute",
        "irecv": "wengert.ppermute",
        "gather_object": "all_gather_object",
        "init_device_mesh": "wengert.distributed.mesh",
    }.items():
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; .*{hint}"):
            getattr(distributed, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        distributed.nothing  # noqa: B018
    assert distributed.DistributedDataParallel is wg.nn.parallel.DistributedDataParallel


def test_groups_that_are_none() -> None:
    outside = distributed.GroupMember.NON_GROUP_MEMBER
    weights = [wg.ones(1, requires_grad=True)]
    for call in (
        lambda g: distributed.DataParallel(wg.nn.Linear(1, 1), g),
        lambda g: distributed.DistributedDataParallel(wg.nn.Linear(1, 1), process_group=g),
        lambda g: distributed.optim.ZeroRedundancyOptimizer(weights, wg.optim.SGD, process_group=g, lr=0.1),
        lambda g: distributed.checkpoint.save({}, "nowhere", process_group=g),
        lambda g: wg.nn.SyncBatchNorm(3, process_group=g),
    ):
        for wrong, said in ((outside, "NON_GROUP_MEMBER, which is no group"), ("all", "got str")):
            with pytest.raises(TypeError, match=f"process_group= is a group of ranks.*{said}"):
                call(wrong)
    for function in (distributed.get_global_rank, distributed.get_group_rank):
        with pytest.raises(TypeError, match="this rank is not in the group"):
            function(outside, 0)


def test_groups_by_hand(tmp_path: Path) -> None:
    run(3, program("groups.py"), tmp_path)

"""`grain=`: losses, gradients, random numbers and statistics have the same bits on any number of ranks."""

from pathlib import Path

import pytest
from distributed.running import run

TRAINED = """
import numpy as np
from wengert import nn
from wengert.distributed import DataParallel

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(6, 16), nn.BatchNorm1d(16)
        self.drop, self.out, self.never = nn.Dropout(0.3), nn.Linear(16, 3), nn.Linear(2, 2)
        self.scale = nn.Parameter(wg.ones(3).bfloat16())

    def forward(self, x):
        return self.out(self.drop(self.norm(self.first(x)).relu())) * self.scale

wg.manual_seed(rank)  # rank 0 decides
model = DataParallel(Net(), grain=GRAIN)
adam = wg.optim.Adam(model.parameters(), lr=0.01)
scaler = wg.amp.GradScaler(init_scale=8.0, growth_interval=2)
drawn = np.random.default_rng(0)
for step in range(4):
    x, y = drawn.normal(size=(48, 6)).astype("f4"), drawn.integers(0, 3, 48)
    x, y = (wg.tensor(a[48 // size * rank : 48 // size * (rank + 1)]) for a in (x, y))

    def loss_of(x, y):
        return scaler.scale(nn.functional.cross_entropy(model(x + 0.1 * wg.randn_like(x)), y))

    adam.zero_grad()
    loss = model.backward(loss_of, x, y)
    if step == 2:
        loss = loss + model.backward(loss_of, x, y)  # gradients add up
    scaler.step(adam)
    scaler.update()
    print(loss.item().hex(), scaler.get_scale())
assert model.module.never.weight.grad is None
assert model.module.norm.num_batches_tracked.item() == 5
for name, value in model.state_dict().items():
    print(name, value.double().flatten().tolist())
"""


@pytest.mark.parametrize(("grain", "counts"), [(4, (1, 2, 4)), (6, (1, 3))])
def test_bits_do_not_depend_on_ranks(tmp_path: Path, grain: int, counts: tuple[int, ...]) -> None:
    found = []
    for count in counts:
        folder = tmp_path / str(count)
        folder.mkdir()
        found += run(count, TRAINED.replace("GRAIN", str(grain)), folder)
    assert len(found) == sum(counts)
    assert "module.norm.running_var" in found[0]
    for text in found[1:]:
        assert text == found[0]


MEANS = """
from wengert.distributed import DataParallel
from wengert.distributed._grain import Tree

# The tree adds neighbours first, and the average over shards is that over the batch.
class Pair(str):
    def __add__(self, other):
        return Pair(f"({self}{other})")

for count, expected in [(1, "0"), (3, "((01)2)"), (4, "((01)(23))"), (7, "(((01)(23))((45)6))")]:
    tree = Tree()
    for i in range(count):
        tree.add([Pair(i)])
    assert tree.total() == [expected]
    # As the core's sums do, which add up what the ranks have.
    x = wg.randn(count, 50)
    tree = Tree()
    for row in x:
        tree.add([row])
    assert wg.vmap(lambda x: wg.psum(x, "i"), axis_name="i", out_axes=None)(x).equal(tree.total()[0])
x = wg.randn(8, 3)
net = wg.nn.Linear(3, 2)
loss = DataParallel(net, grain=4).backward(lambda x: net(x).square().mean(), x)
grads = [p.grad for p in net.parameters()]
net.zero_grad()
whole = net(x).square().mean()
whole.backward()
assert wg.allclose(loss, whole, rtol=1e-6)
for p, g in zip(net.parameters(), grads):
    assert wg.allclose(p.grad, g, rtol=1e-5)
# A function without arguments draws its own data, others in every shard and step.
seen = []
model = DataParallel(net, grain=4)
for _ in range(2):
    model.backward(lambda: (seen.append(wg.randn(3)), net(seen[-1]).sum())[1])
assert len({tuple(s.tolist()) for s in seen}) == 8
for wrong in (lambda: model.backward(lambda x: net(x).sum(), wg.ones(6, 3)),
              lambda: DataParallel(net).backward(lambda: None)):
    try:
        wrong()
    except (ValueError, RuntimeError) as error:
        print(error)
"""


def test_shards_of_a_batch(tmp_path: Path) -> None:
    (text,) = run(1, MEANS, tmp_path)
    assert text == (
        "DataParallel.backward: a tensor of shape (6, 3) is not divided into 4 equal parts along axis 0, one "
        "for each shard of this rank\n"
        "DataParallel.backward: pass grain= to DataParallel, the number of shards\n"
    )


WRONG = """
from wengert.distributed import DataParallel
for grain in (3, 6, 1):
    try:
        DataParallel(wg.nn.Linear(2, 2), grain=grain)
    except ValueError as error:
        print(error)
"""


def test_ranks_that_do_not_fit(tmp_path: Path) -> None:
    for text in run(2, WRONG, tmp_path):
        lines = text.splitlines()
        assert len(lines) == 3
        assert lines[0] == (
            "DataParallel: grain=3 on 2 ranks; each rank needs 1, 2, 4, 8, ... shards, the same number on all"
        )


PROBED = """
from wengert.distributed import DataParallel
try:
    DataParallel(wg.nn.Linear(2, 2), grain=2)
except RuntimeError as error:
    print(error)
"""

PROCESSOR = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""


@pytest.mark.parametrize(
    ("lower", "higher", "flag"), [("baseline", "avx2", "avx2"), ("avx2", "", "avx512dq")]
)
def test_ranks_with_other_bits_are_named(tmp_path: Path, lower: str, higher: str, flag: str) -> None:
    if flag not in PROCESSOR:
        pytest.skip(f"no {flag} on this processor")
    # As on two machines: one rank uses fewer instructions.
    first = f'os.environ["WENGERT_ISA"] = "{lower}" if os.environ["PMI_RANK"] == "1" else "{higher}"'
    for found in run(2, PROBED, tmp_path, first=first):
        assert found.startswith("DataParallel: rank 1 computes other bits than rank 0"), found

"""Training that goes on from its last checkpoint."""

import os
import pathlib
import sys

import wengert as wg
import wengert.distributed as dist
from wengert import nn
from wengert.distributed import DataParallel, checkpoint

rank, size = dist.world().rank, dist.world().size

folder = pathlib.Path(sys.argv[1])
(folder / f"pid{rank}").write_text(str(os.getpid()))
wg.manual_seed(0)
model = DataParallel(nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.2), nn.Linear(64, 4)), grain=2)
adam = wg.optim.Adam(model.parameters(), lr=0.01)
losses, step = [], 0
if found := checkpoint.latest(folder / "run"):
    state = checkpoint.load(found)
    model.load_state_dict(state["model"])
    adam.load_state_dict(state["adam"])
    wg.set_rng_state(state["random"])
    losses, step = state["losses"], state["step"]
while step < int(os.environ["STEPS"]):
    adam.zero_grad()
    losses.append(model.backward(lambda: model(wg.randn(8, 4)).square().mean()).item())
    adam.step()
    step += 1
    state = {"model": model.state_dict(), "adam": adam.state_dict(), "random": wg.get_rng_state()}
    checkpoint.save({**state, "losses": losses, "step": step}, folder / f"run/step-{step}", keep=2)
print(*[x.hex() for x in losses])

"""A training step on a GPU passes the door, too: its list of operations, run again, gives the same bits."""

import wengert as wg
from ops.test_script import script_of
from wengert import nn


def test_a_step_on_a_gpu_is_run_again():
    wg.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, 3)).to("gpu")
    optimizer = wg.optim.AdamW(model.parameters(), lr=0.01)
    scaler = wg.amp.GradScaler(init_scale=2.0**8)
    x, target = wg.randn(5, 6, device="gpu"), wg.tensor([0, 1, 2, 1, 0], dtype=wg.int32, device="gpu")

    def step():
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), target)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()

    def memory():
        states = (entry[name] for entry in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq"))
        return [*model.parameters(), *states]

    def bits():
        return [value.detach().cpu().numpy().tobytes() for value in memory()]

    step()
    before = [value.detach().clone() for value in memory()]

    def restored(f):
        with wg.no_grad():
            for value, old in zip(memory(), before, strict=True):
                value.copy_(old)
        f()
        return bits()

    wg.manual_seed(1)
    script = script_of(step)
    after = bits()
    assert restored(script.run) == after
    assert restored(lambda: script.run(seed=2)) != after

"""Every example runs and learns, in its default or a short form; what each of them shows is checked."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wengert as wg
from programs import FOLDER, PYTORCH, ROOT, module
from support import array

# The programs that are a PyTorch program but for their imports.
PORTS = ("moons", "gpt", "dqn")
# What each program is called with here; programs that are not named run as they are.
SHORT = {
    "moons": ["--steps", "100"],
    "gpt": ["--preset", "tiny", "--steps", "30", "--every", "10", "--bytes", "200000", "--sample", "40"],
    "dqn": ["--steps", "400"],
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(path), *SHORT.get(path.stem, [])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert done.stderr == ""
    for picture in tmp_path.glob("*.png"):
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert path.stem not in ("moons", "gpt") or (tmp_path / f"{path.stem}.png").exists()


# ---- two moons -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_moons_are_told_apart(seed: int, tmp_path: Path) -> None:
    losses, accuracies = module("moons").main(["--seed", str(seed), "--out", str(tmp_path)])
    assert accuracies[-1] >= 0.99
    assert losses[-1] < 0.05 < losses[0]


def test_scalars_and_tensors_give_the_same_numbers() -> None:
    moons = module("moons")
    wg.manual_seed(3)
    points, labels = moons.make_moons(20, 0.1, 3)
    network = moons.Network()
    numbers = moons.ScalarNetwork(network)
    assert sum(p.numel() for p in network.parameters()) == len(numbers.parameters()) == 337
    one, _ = moons.train(network, moons.tensor_loss, points, labels, 6)
    many, _ = moons.train(numbers, moons.scalar_loss, points, labels, 6)
    np.testing.assert_allclose(one, many, rtol=1e-5)
    for layer, neurons in zip(network.layers, numbers.layers, strict=True):
        weights = [[w.item() for w in neuron.weights] for neuron in neurons]
        np.testing.assert_allclose(array(layer.weight.detach()), weights, rtol=1e-4, atol=1e-6)


# ---- the same program in PyTorch
# -------------------------------------------------------------------------------------


def test_moons_take_the_same_path_as_in_pytorch() -> None:
    """The losses there are in `pytorch_losses.json`, made by `python tools/torch_losses.py`."""
    losses = module("torch_losses", "tools").moons_losses(wg, module("moons"))
    np.testing.assert_allclose(losses, PYTORCH["moons"], rtol=0, atol=1e-6)


def test_the_readme_names_the_version_of_pytorch() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    version = ".".join(PYTORCH["torch"].split(".")[:2])
    assert f"the losses are those of PyTorch {version} within 1e-6" in text


# ---- DQN -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [[], ["--tau", "0.02"]])
def test_dqn_finds_the_best_actions_everywhere(extra: list[str]) -> None:
    dqn = module("dqn")
    _, values, exact = dqn.main(extra)
    right, cells, error = dqn.judge(values, exact)
    assert right == cells == 37
    assert error < 0.1
    way, total = dqn.greedy_way(values)
    assert (len(way) - 1, total, way[-1]) == (13, -13.0, dqn.GOAL)


def test_dqn_gives_the_same_numbers_again() -> None:
    dqn = module("dqn")
    first, again = (dqn.main(["--steps", "300"])[1] for _ in range(2))
    assert np.array_equal(first, again)


def learner(*arguments: str) -> Any:
    """A learner that has seen a few transitions."""
    dqn = module("dqn")
    made = dqn.Learner(dqn.parse(["--batch", "8", "--sync", "3", *arguments]))
    for i in range(20):
        made.memory.add(i, i % 4, -1.0, i + 1, float(i % 5 == 0))
    return made


def test_target_network_gets_no_gradient() -> None:
    made = learner()
    loss = made.loss(made.memory.draw(made.rng, 8))
    loss.backward()
    assert all(p.grad is None for p in made.target.parameters())
    assert all(p.grad is not None for p in made.online.parameters())
    # The targets are constants: without no_grad the same loss would reach both networks.
    assert all(
        g is None
        for g in wg.autograd.grad(
            made.loss(made.memory.draw(made.rng, 8)), made.target.parameters(), allow_unused=True
        )
    )


def test_target_network_follows() -> None:
    made = learner()
    for update in range(1, 7):
        made.update()
        same = all(
            np.array_equal(array(p.detach()), array(q.detach()))
            for p, q in zip(made.target.parameters(), made.online.parameters(), strict=True)
        )
        assert same == (update % 3 == 0)
        # The copy has memory of its own.
        assert made.target.hidden.weight.data_ptr() != made.online.hidden.weight.data_ptr()
    slow = learner("--tau", "0.25")
    before = array(slow.target.hidden.weight.detach()).copy()
    slow.update()
    after, online = array(slow.target.hidden.weight.detach()), array(slow.online.hidden.weight.detach())
    np.testing.assert_allclose(after, 0.75 * before + 0.25 * online, atol=1e-7)


# ---- one import ----------------------------------------------------------------------------------

# What the ports use of the library, all of it under the same name in PyTorch (2.3 or later) and with the same
# meaning. A program with a name that is not here would no longer be a PyTorch program; add one only after
# looking it up there.
IMPORTS = {
    "wengert": ("torch", None),
    "wengert.distributed": ("dist", None),
    "wengert.nn": ("nn", None),
    "wengert.nn.functional": ("F", None),
    "wengert.nn.parallel": (None, "DistributedDataParallel"),
    "wengert.utils.checkpoint": (None, "checkpoint"),
}
IN_PYTORCH = {
    "torch": """
        amp.GradScaler arange autocast bfloat16 cat device float16
        from_numpy int32 load long
        manual_seed multinomial nn.utils.clip_grad_norm_ no_grad ones optim.Adam optim.AdamW optim.SGD randint relu save
        stack tensor topk tril zeros
        """,
    "nn": """
        Dropout Embedding LayerNorm Linear Module ModuleDict ModuleList init.normal_ init.uniform_ init.zeros_
        utils.clip_grad_value_
        """,
    "dist": "all_reduce get_rank get_world_size init_process_group",
    "F": "cross_entropy dropout gelu relu scaled_dot_product_attention smooth_l1_loss softmax",
}
# What tensors have here and not in PyTorch; everything else that a tensor has, it has there as well.
OURS_ALONE = set(
    """
    gelu gelu_ gelu_exact gelu_tanh gpu is_gpu maximum_ minimum_ power power_ silu silu_ softplus softplus_
    """.split()
)


def chain(node: ast.AST) -> list[str] | None:
    """`torch.nn.utils` as a list of names; None for anything that does not start with a name."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else None


@pytest.mark.parametrize("name", PORTS)
def test_only_the_import_differs_from_pytorch(name: str) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for imported in node.names:
                if imported.name.split(".")[0] == "wengert":
                    assert IMPORTS[imported.name] == (imported.asname, None)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "wengert":
            for imported in node.names:
                whole = IMPORTS.get(f"{node.module}.{imported.name}")
                assert whole == (imported.asname, None) or IMPORTS[node.module] == (None, imported.name)
        elif isinstance(node, ast.Attribute) and id(node) not in inner:
            names = chain(node)
            if names and names[0] in IN_PYTORCH:
                assert ".".join(names[1:]) in IN_PYTORCH[names[0]].split(), names
        if isinstance(node, ast.Attribute) and (chain(node) or [""])[0] not in (*IN_PYTORCH, "np"):
            assert node.attr not in OURS_ALONE
        if isinstance(node, ast.Call):
            # Both spellings work here; PyTorch's own is `dim`.
            assert not {"axis", "keepdims"} & {keyword.arg for keyword in node.keywords}


def test_every_listed_name_is_used() -> None:
    text = "\n".join((FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in PORTS)
    for root, names in IN_PYTORCH.items():
        unused = [name for name in names.split() if f"{root}.{name}" not in text]
        assert not unused, unused

"""Writes `torch_*.pt`, which `test_torch_files.py` reads. Run it with an interpreter that has PyTorch."""

import datetime
from collections import Counter, OrderedDict, defaultdict, deque
from pathlib import Path

import torch

HERE = Path(__file__).parent / "files"


def main() -> None:
    HERE.mkdir(exist_ok=True)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) / 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    model(torch.eye(3)[:2]).square().sum().backward()
    optimizer.step()
    x = torch.arange(12.0).reshape(3, 4)
    found = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "views": (x, x.t(), x[1:, ::2]),
        "kinds": [
            torch.tensor([1.5, -2.0], dtype=dtype)
            for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.complex64)
        ]
        + [
            torch.tensor([1, 100], dtype=dtype)
            for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32)
        ],
        "flags": torch.tensor([True, False]),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "leaf": torch.zeros(1, requires_grad=True),
        "empty": torch.empty(0, 3),
        "number": torch.tensor(2.5),
        "expanded": torch.tensor([7.0]).expand(3),
        "plain": [torch.Size([2, 3]), torch.device("cpu"), torch.float16, {1, 2}, (None, "text", 1e300)],
    }
    torch.save(found, HERE / "torch_archive.pt")
    torch.save(found, HERE / "torch_row.pt", _use_new_zipfile_serialization=False)
    torch.save(model, HERE / "torch_module.pt")
    torch.save(torch.nn.ReLU(), HERE / "torch_module_row.pt", _use_new_zipfile_serialization=False)
    scale, marked = torch.nn.Parameter(torch.ones(2)), torch.arange(3.0)
    scale.rank, scale.like, marked.note = 3, torch.zeros(1), "kept elsewhere"
    things = {
        "bytes": [b"ab\xff", b"", bytearray(b"x\x80"), bytearray()],
        "dates": [
            datetime.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=datetime.UTC),
            datetime.date(2021, 1, 1),
            datetime.time(1, 2),
            datetime.timedelta(1, 2, 3),
        ],
        "containers": [
            OrderedDict(a=1),
            {1, 2},
            set(),
            frozenset([1]),
            Counter("aab"),
            defaultdict(int, a=1),
            deque([1, 2], 3),
            range(3),
        ],
        "numbers": [2**100, -(2**70), 1 + 2j],
        "parameter": scale,
        "buffer": torch.nn.Buffer(torch.ones(1)),
        "marked": marked,
    }
    torch.save(things, HERE / "torch_things.pt")
    torch.save(things, HERE / "torch_things_row.pt", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    main()

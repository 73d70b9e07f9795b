"""Writes `torch_*.pt`, which `test_torch_files.py` reads. Run it with an interpreter that has PyTorch."""

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


if __name__ == "__main__":
    main()

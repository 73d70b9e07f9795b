"""A language model by nn.TransformerEncoder: positions by sines, a causal mask, SGD with a schedule."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int = 64):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[: x.size(0)]


class TransformerModel(nn.Module):
    def __init__(self, ntoken: int, d_model: int, nhead: int, d_hid: int, nlayers: int):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d_model)
        encoder_layers = nn.TransformerEncoderLayer(d_model, nhead, d_hid, 0.0)
        self.transformer_encoder = nn.TransformerEncoder(encoder_layers, nlayers)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.d_model = d_model
        self.linear = nn.Linear(d_model, ntoken)

    def forward(self, src: Tensor) -> Tensor:
        src = self.pos_encoder(self.embedding(src) * math.sqrt(self.d_model))
        mask = nn.Transformer.generate_square_subsequent_mask(len(src), dtype=src.dtype)
        return self.linear(self.transformer_encoder(src, mask))


def main() -> list[float]:
    rng = np.random.default_rng(5)
    text = b"in the beginning the reverse pass began with the last of the sums " * 3
    characters = sorted(set(text))
    data = torch.tensor([characters.index(c) for c in text], dtype=torch.long)
    model = TransformerModel(len(characters), 12, 3, 16, 2).double()
    for name, p in model.named_parameters():
        if "norm" not in name:
            p.data.copy_(torch.from_numpy(rng.uniform(-0.25, 0.25, tuple(p.shape))))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.95)
    losses = []
    for step in range(20):
        starts = rng.integers(0, len(data) - 13, 6)
        batch = torch.stack([data[i : i + 13] for i in starts.tolist()], dim=1)
        output = model(batch[:-1])
        loss = F.cross_entropy(output.view(-1, len(characters)), batch[1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
        if step % 4 == 3:
            scheduler.step()
            losses.append(scheduler.get_last_lr()[0])
    model.eval()
    with torch.no_grad():
        losses += model(data[:5].unsqueeze(1))[-1, 0].softmax(-1).topk(3).values.tolist()
    return losses


if __name__ == "__main__":
    print(main())

"""A vision transformer: patches, a class token, attention over einsum, label smoothing, a cosine schedule."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import einsum, nn


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.norm = nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, _ = x.shape
        qkv = self.to_qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (t.reshape(b, n, self.heads, -1).permute(0, 2, 1, 3) for t in qkv)
        dots = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        out = einsum("b h i j, b h j d -> b h i d", dots.softmax(dim=-1), v)
        return self.to_out(out.permute(0, 2, 1, 3).flatten(2))


class FeedForward(nn.Sequential):
    def __init__(self, dim, hidden):
        super().__init__(nn.LayerNorm(dim), nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))


class ViT(nn.Module):
    def __init__(self, *, image_size=8, patch_size=4, num_classes=3, dim=12, depth=2, heads=3, channels=2):
        super().__init__()
        self.patch_size = patch_size
        patches = (image_size // patch_size) ** 2
        self.embed = nn.Linear(channels * patch_size**2, dim)
        self.pos_embedding = nn.Parameter(torch.zeros(1, patches + 1, dim))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(nn.ModuleList([Attention(dim, heads), FeedForward(dim, 2 * dim)]))
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        p = self.patch_size
        b, c, h, w = img.shape
        x = img.unfold(2, p, p).unfold(3, p, p)
        x = x.permute(0, 2, 3, 4, 5, 1).reshape(b, (h // p) * (w // p), p * p * c)
        x = self.embed(x)
        x = torch.cat([self.cls_token.expand(b, -1, -1), x], dim=1)
        x += self.pos_embedding[:, : x.shape[1]]
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        return self.mlp_head(x[:, 0])


def main():
    rng = np.random.default_rng(7)
    model = ViT().type(torch.float64)
    state = {}
    for key, value in model.state_dict().items():
        if value.dim() == 1:
            state[key] = torch.zeros_like(value) if key.endswith("bias") else value
        else:
            state[key] = torch.from_numpy(0.25 * rng.standard_normal(tuple(value.shape)))
    print(model.load_state_dict(state, strict=True))
    shapes = rng.standard_normal((3, 2, 8, 8))
    labels = rng.integers(0, 3, 96)
    images = torch.from_numpy(shapes[labels] + rng.standard_normal((96, 2, 8, 8)))
    labels = torch.from_numpy(labels)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 0.5]).double())
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=18, eta_min=1e-4)
    losses = []
    for _ in range(3):
        for i in torch.from_numpy(rng.permutation(96)).split(16):
            logits = model(images[i])
            loss = criterion(logits, labels[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
    with torch.inference_mode():
        logits = model(images)
        losses.append(F.cross_entropy(logits, labels).item())
        losses.append((logits.argmax(1) == labels).double().mean().item())
    return losses


if __name__ == "__main__":
    print(main())

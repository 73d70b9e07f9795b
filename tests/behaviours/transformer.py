"""A pre-norm transformer block without dropout, with attention spelled out, in one piece or in tiles of
queries, or as one operation.
"""

import math

import wengert as wg
from wengert import nn
from wengert.nn import functional as F
from wengert.utils.checkpoint import checkpoint


def spelled_out(q: wg.Tensor, k: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
    """Attention by other operations, which keep the matrix of its probabilities."""
    return ((q * (1 / math.sqrt(q.shape[-1]))) @ k.transpose(-2, -1)).softmax(-1) @ v


class Block(nn.Module):
    """Attention and a network of four times the width, each behind a layer norm and beside the identity."""

    def __init__(
        self,
        width: int,
        heads: int,
        tile: int | None = None,
        checkpoint_attention: bool = False,
        fused: bool = False,
    ) -> None:
        """`tile` queries at a time, all of them if None; `fused` takes the library's attention."""
        super().__init__()
        self.heads, self.tile, self.checkpoint_attention = heads, tile, checkpoint_attention
        self.fused = fused
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, q: wg.Tensor, k: wg.Tensor, v: wg.Tensor) -> wg.Tensor:
        """Softmax attention of `(batch, heads, sequence, width / heads)`."""
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v)
        if self.tile is None:
            return spelled_out(q, k, v)
        tiles = [checkpoint(spelled_out, part, k, v) for part in q.split(self.tile, dim=2)]
        return wg.cat(tiles, dim=2)

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """Of `(batch, sequence, width)`."""
        n, s, d = x.shape
        split = self.qkv(self.norm1(x)).reshape(n, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        parts = split.unbind(0)
        attended = checkpoint(self.attention, *parts) if self.checkpoint_attention else self.attention(*parts)
        x = x + self.out(attended.transpose(1, 2).reshape(n, s, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Tower(nn.Module):
    """Blocks, each in a checkpoint on request, `segments` of them together on request."""

    def __init__(self, depth: int, width: int, heads: int, **options: object) -> None:
        """All blocks alike."""
        super().__init__()
        self.blocks = nn.ModuleList([Block(width, heads, **options) for _ in range(depth)])
        self.checkpointed = False

    def forward(self, x: wg.Tensor) -> wg.Tensor:
        """Of `(batch, sequence, width)`."""
        for block in self.blocks:
            x = checkpoint(block, x) if self.checkpointed else block(x)
        return x

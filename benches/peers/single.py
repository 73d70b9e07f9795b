"""Large work on one thread: matrix products by size and dtype, and what a layer costs."""

from clock import Row, Target
from large import AHEAD, BEST_PRODUCT, BOTH, TORCH, block, block_jax, convolution, product_row
from libraries import pair, torchlike

ROWS = [
    *(product_row(n, "float32", AHEAD) for n in (16, 64, 128, 256)),
    *(product_row(n, "float32", BEST_PRODUCT) for n in (512, 1024, 2048)),
    product_row(1024, "bfloat16", Target(ratio=1 / 0.8, of=TORCH)),
    product_row(1024, "float64", BEST_PRODUCT),
    Row(f"transformer block, d=256, 8x128, {BOTH}", Target(ratio=0.8), pair(block, block_jax)),
    Row(f"conv2d 3x3, 32->64, 8x32x32, {BOTH}", Target(ratio=1.2, of=TORCH), torchlike(convolution)),
]

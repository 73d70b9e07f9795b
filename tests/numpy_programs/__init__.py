"""Programs for NumPy, autograd and JAX, and parts of them, under `wengert.numpy` and `wengert.scipy`."""

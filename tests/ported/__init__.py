"""Programs written for PyTorch, JAX and autograd that run here under those names, and the losses they had
there."""

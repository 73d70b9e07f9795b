"""The benchmarks of the GPU: `python -m benches.gpu`."""

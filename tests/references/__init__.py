"""Layers, optimisers, schedules and functions written out in NumPy, to compare with."""

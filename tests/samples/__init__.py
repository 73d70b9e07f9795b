"""A record of every operation, by subject, and calls of layers and losses; `op_samples.py` gathers the
records."""

"""Continues a recorded run with the same bits, or branches it with something changed; checkpoints and their files."""

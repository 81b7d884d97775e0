"""Checks and compares run folders that exist: the audit recomputes every figure, the difference says where two part."""

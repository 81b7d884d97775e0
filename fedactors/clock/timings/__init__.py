"""Timing policies: when the server aggregates, and how much an old update counts. One file per paper."""

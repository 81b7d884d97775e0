"""Recordings of real devices, read into columns of integers.

One file per format. Each reader raises a `TraceError` for what it cannot understand, repairs what it can, and lists in
the result what it repaired and how often. The scenario chooses what "available" means, never a reader.

This package simulates no time (that is `clock`), draws no random number and imports neither torch nor ray.
"""

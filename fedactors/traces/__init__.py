"""Recordings of real devices, read into columns of integers.

One file per format. Each reader refuses what it cannot understand with one `TraceError`, repairs what it can,
and says in the result what it repaired and how often. What "available" means is the scenario's choice, never a
reader's.

This package knows nothing of time passing (that is `clock`), draws no random number and imports neither torch
nor ray.
"""

"""Papers' experiments as grids of scenarios: runs them, prints the paper's figures beside ours, and which claims hold.

An experiment is a scenario file under `scenarios/papers/`, the values of its axes as overrides, and claims about the
table that comes out. Each has a reduced twin. It computes nothing itself: every number is that of an ordinary run.
"""

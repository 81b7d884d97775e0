"""Joins Plans to the fleet: prepares a scenario, then runs, replays, checks or verifies it, and records what happened.

`record` writes the run folder, `resume` continues or branches a recorded run, `inspect` checks and compares
run folders. Heavy imports happen when training begins, so replaying and checking never load torch or ray.
"""

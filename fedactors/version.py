"""The version of the package, and that of what it computes."""

VERSION = "0.1.0"
ENGINE = "2"
"""Goes up whenever the same scenario, seed and libraries give other bits: earlier results then are of other code."""

"""The version of the package, and that of what it computes."""

VERSION = "0.1.0"
ENGINE = "2"
"""Goes up when sound scenarios give other bits with the same seed and libraries: earlier ones are of other code then.

It stays where a fault of one option is mended: results with that option change then, and CHANGELOG says so.
"""

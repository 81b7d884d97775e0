"""Behaviours of devices: SimPy processes that say when a device is on, by anything that happens to it.

Unlike a recording, a behaviour can depend on what the server asks of the device: a battery drains with the work that it
is given, a household shares one line. One file per behaviour; users write theirs in a file of their own.
"""

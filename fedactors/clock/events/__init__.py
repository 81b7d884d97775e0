"""Devices and their trips as SimPy processes: each stage, each step and each edge of a window meanwhile is an event.

Used for devices whose availability is a process that the user writes (`fedactors.clock.behaviours`), since what such a
process does may depend on the work that the server gave the device; and for all devices with `clock: events`, the plain
reference of the arithmetic in `fedactors.clock.trip` and `fedactors.clock.cohort`: both give the same Plans. Who is on
between trips is looked up in the recordings, unless a process of the user decides it.
"""

"""One file per algorithm, reading like the paper's pseudo-code; and the policies that compose with any of them.

An algorithm has two halves. The client half (`correction`, `prox`, `upload`, `keep`) is tensor arithmetic on one client
or on rows of many; the server half (`start`, `contribute`, `aggregate`, `idle`, `members_changed`) is tensor arithmetic
on the server's state. Neither depends on time, actors or devices. Modules here import torch for annotations only, so
that the clock gets an algorithm's payload without importing torch.
"""

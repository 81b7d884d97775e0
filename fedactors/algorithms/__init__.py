"""One file per algorithm, reading like the paper's pseudo-code; and the policies that compose with any of them.

An algorithm has two halves. The client half (`correction`, `prox`, `upload`) is tensor arithmetic on one client or on
rows of many; the server half (`broadcast`, `aggregate`) is tensor arithmetic on the server's state. Neither knows
about time, actors or devices. Modules here import torch for annotations only, so that the clock can ask an algorithm
for its payload without paying for torch.
"""

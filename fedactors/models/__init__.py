"""Models as descriptions that know their shapes and costs, and as pure functions of their parameter tensors.

Descriptions import no torch; `network` and `losses`, which compute, import it when they are imported themselves.
"""

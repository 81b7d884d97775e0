"""Optimisers of clients and of the server, as pure functions of parameters, gradients and state."""

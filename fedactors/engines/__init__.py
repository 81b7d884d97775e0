"""Engines: each takes the local steps of a batch of clients, in its own way. `engine_choice` says which one a run uses.

`sequential` is the reference; every other engine is compared with it in tests. Engines know models, optimisers and
batches of clients; they know nothing of algorithms, time or actors.
"""

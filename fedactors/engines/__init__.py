"""Engines: each takes the local steps of a batch of clients in its own way. `engine_choice` says which one a run uses.

`base` is the seam. `sequential` is the reference; every other engine is compared with it in tests. Engines depend on
models, optimisers and batches of clients, never on algorithms, time or actors.
"""

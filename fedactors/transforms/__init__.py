"""Transforms of what travels between clients and server: compression, clipping, noise, with any algorithm.

One file for each transform. A transform is a pure function of vectors, and says how many bits it sends: the clock
charges them. `chain` puts several in a row. Options can be imported without torch.
"""

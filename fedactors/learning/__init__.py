"""What is learned, on what, and how one local step is computed.

Descriptions (models, data sets, partitions) import no torch, because the clock needs their sizes; what
computes imports torch when it is itself imported. Nothing here knows time, Ray or SimPy.
"""

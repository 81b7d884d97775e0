"""Trains clients, the server and a central learner by the rules of an algorithm, and evaluates models.

Nothing here knows time, Ray or SimPy: a chunk of clients and the models they start from go in, weighted sums come out.
"""

"""Trains clients, the server and a central learner by the rules of an algorithm, and evaluates models.

Nothing here depends on time, Ray or SimPy: from a chunk of clients and the models they start from to weighted sums.
"""

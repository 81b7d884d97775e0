"""Partitions of samples over clients, their sizes, and splits between clients and a central learner."""

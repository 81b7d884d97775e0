"""fedactors: federated learning simulated on actors, with participation that emerges from timing."""

"""What trips consume: the times of their stages, the tariffs of the devices, and what a run may spend."""

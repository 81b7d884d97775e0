"""How calls and values travel between the driver and actors."""

"""The files of a run folder: how they are read as plain data, and what is in each. Nothing in them is trusted."""

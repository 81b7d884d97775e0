"""One file per data set that a scenario can name."""

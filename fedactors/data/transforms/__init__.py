"""Transforms of torchvision that a scenario names, applied when the data are loaded: see `torchvision_transforms`."""

"""One file per format of recording; each registers itself in `fedactors.traces.format_registry`."""

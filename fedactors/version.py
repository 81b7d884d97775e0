"""The version of this package, for files that record it and must not import the package's entry points."""

__version__ = "0.1.0"

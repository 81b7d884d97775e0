"""The command line: `main` has the parser and the entry point, every other module a family of commands."""

from fedactors.cli.main import console, main, parser

__all__ = ["console", "main", "parser"]

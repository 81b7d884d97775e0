"""The command line: `main` has the parser and the entry point, every other module a family of commands."""

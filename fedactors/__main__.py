"""`python -m fedactors` is the command `fedactors`."""

from fedactors.cli.main import console

console()

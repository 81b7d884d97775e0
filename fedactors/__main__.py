"""`python -m fedactors` is the command `fedactors`."""

from fedactors.cli import console

console()

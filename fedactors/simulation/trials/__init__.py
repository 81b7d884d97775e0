"""Tries code of the user that a scenario names, on a little data, before anything runs."""

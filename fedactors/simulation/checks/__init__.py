"""Checks a scenario before it runs: what does not fit together, and what it will take in time and memory."""

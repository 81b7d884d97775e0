"""What a scenario learns and what is measured: the key `task`."""

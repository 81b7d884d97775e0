"""What becomes of the objective, and of what clients keep, when devices join the population and leave it."""

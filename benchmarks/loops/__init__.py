"""Hand-written loops over a cohort, each a function `(Work) -> (weighted sum of updates, mean loss)`."""

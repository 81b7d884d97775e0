"""Many runs of one scenario with something varied: comparisons in pairs, and sweeps over grids and lists.

A study decides which scenarios to run, runs what is not yet there, and works out figures from the run folders alone.
Each of its runs is an ordinary run. It never looks into one that is in progress.
"""

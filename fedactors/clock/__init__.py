"""Virtual time: who is there, how long a trip takes, and the Plans that follow. No gradients, no wall clock.

The clock replays availability through SimPy and yields one `Plan` per aggregation. A device that takes part is a SimPy
process whose trip was planned by integer arithmetic over its windows; everybody else is a row in a column. This
package imports neither torch nor ray, and no event here waits for anything that is computed elsewhere.
"""

"""Virtual time: which devices are on, how long a trip takes, and the Plans that follow. No gradients, no wall clock.

The clock replays availability through SimPy and yields one `Plan` per aggregation. The end of a trip is computed by
integer arithmetic over the windows of its device; a device that does not take part is only a row of the columns. A
synchronous round is one SimPy event, its closing; where every update counts by itself, the end of each trip is one.
Trips at constant rates are planned a cohort at a time (`cohort`), those over links and processors that vary one by one
(`varying`); `trip` is the reference of both. This package imports neither torch nor ray, and no event here waits for
anything that is computed elsewhere.
"""

"""Virtual time: who is there, how long a trip takes, and the Plans that follow. No gradients, no wall clock.

The clock replays availability through SimPy and yields one `Plan` per aggregation. When the trip of a device that takes
part ends is worked out by integer arithmetic over its windows; everybody else is a row in a column. A round of a cohort
is one SimPy event, its closing; where every update counts by itself, so is the end of each trip. Plain trips are
planned a cohort at a time (`cohort`), those over links and processors that vary one by one (`varying`), and all of them
as `trip` says. This package imports neither torch nor ray, and no event here waits for anything that is computed
elsewhere.
"""

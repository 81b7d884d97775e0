"""Virtual time: who is there, how long a trip takes, and the Plans that follow. No gradients, no wall clock.

The clock replays availability through SimPy and yields one `Plan` per aggregation. A device that takes part is one
SimPy event, the end of a trip that was planned by integer arithmetic over its windows; everybody else is a row in a
column. Plain trips are planned a cohort at a time (`cohort`), those over links and processors that vary one by one
(`varying`), and all of them as `trip` says. This
package imports neither torch nor ray, and no event here waits for anything that is computed elsewhere.
"""

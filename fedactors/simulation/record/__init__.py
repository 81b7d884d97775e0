"""What a run writes down while it goes on: totals, digests, metrics, and the files of its folder."""

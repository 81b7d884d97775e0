"""Shows what a run left. Reads records only: nothing here computes, trains or knows a clock."""

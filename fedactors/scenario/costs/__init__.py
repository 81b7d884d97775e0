"""Options of what a run costs: energy, carbon, and the traffic of secure aggregation."""

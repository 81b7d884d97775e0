"""The fleet on Ray: starting or joining a cluster, placing actors on nodes, watching that they answer."""

"""Pictures of who holds what, drawn from the figures of `data describe`."""

"""Speed of whole simulations, ours beside others'; see README.md."""

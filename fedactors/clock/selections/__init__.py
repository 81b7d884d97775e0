"""Selection policies: which clients the server asks. One file per paper."""
